#include "task/callable_store.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "base/loaded_library.h"
#include "base/ranges.h"
#include "keel/base/mutex.h"
#include "task/stored_callable.h"

namespace keel::task {

// --- One callable ------------------------------------------------------------------------------

StoredCallable::~StoredCallable() {
  orchestration_ = {};
  if (buffer_) on_->Free(buffer_);
}

Status StoredCallable::Load(const std::shared_ptr<OwnStream>& on, bool on_device,
                            Deadline deadline) {
  const ScopedRange range("load a callable");
  on_ = on;
  const std::shared_ptr<hal::Device>& device = on_->memory().device();
  for (std::size_t i = 0; i < image_.part_count(); ++i) {
    Result<hal::Module> module = hal::Module::Load(device, image_.part(i));
    if (!module.ok()) return std::move(module).status().Annotate(fmt::format("part {}", i));
    modules_.push_back(*std::move(module));
  }
  for (const Image::Kernel& kernel : image_.kernels()) {
    Result<hal::KernelHandle> found = modules_[kernel.part].Find(kernel.name);
    if (!found.ok()) {
      return std::move(found).status().Annotate(fmt::format("part {}", kernel.part));
    }
    kernels_.push_back(*found);
  }
  if (image_.orchestration().empty()) return OkStatus();
  return (on_device ? LoadOnDevice(deadline) : LoadOnHost()).Annotate("the orchestration code");
}

Status StoredCallable::LoadOnHost() {
  KEEL_ASSIGN(library_, LoadLibraryImage(image_.orchestration(), "the image's shared object"));
  function_ =
      reinterpret_cast<hal::OrchestrationFunction>(dlsym(library_.get(), hal::kOrchestrationEntry));
  if (function_ == nullptr) {
    return InvalidArgument(fmt::format("it exports no function '{}'", hal::kOrchestrationEntry));
  }
  return OkStatus();
}

Status StoredCallable::LoadOnDevice(Deadline deadline) {
  std::vector<std::byte> bytes(image_.bytes().begin(), image_.bytes().end());
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    std::memcpy(bytes.data() + image_.table_offset() + i * sizeof(std::uint64_t),
                &kernels_[i].value, sizeof(std::uint64_t));
  }
  memory::DeviceMemory& memory = on_->memory();
  KEEL_ASSIGN(buffer_, on_->Allocate(Bytes(bytes.size())));
  KEEL_TRY(memory.CopyToDevice(on_->get(), buffer_, bytes.data(), Bytes(bytes.size()), deadline));
  KEEL_TRY(memory.device()->SynchronizeStream(on_->get(), deadline));
  KEEL_ASSIGN(orchestration_,
              hal::Module::Load(memory.device(), hal::ModuleSource::Device(
                                                     buffer_ + Bytes(image_.orchestration_offset()),
                                                     Bytes(image_.orchestration().size()))));
  KEEL_ASSIGN(entry_, orchestration_.Find(hal::kOrchestrationEntry));
  return OkStatus();
}

// --- The store ---------------------------------------------------------------------------------

struct CallableStore::State {
  // One content. It is there from the first registration's begin to the last one's end.
  struct Entry {
    explicit Entry(Image content) : image(std::move(content)) {}
    const Image image;
    std::shared_ptr<StoredCallable> callable;  // null while it is being made
    Status error;                              // why it could not be; the entry is gone then
    std::uint64_t count = 1;                   // registrations, those that wait for it included
  };

  State(std::shared_ptr<OwnStream> on_stream, bool device, HashFunction function)
      : stream(std::move(on_stream)), on_device(device), hash(function) {}

  template <class Match>
  auto FindLocked(const Image& image, Match match) KEEL_REQUIRES(mutex) {
    const auto [begin, end] = entries.equal_range(hash(image));
    const auto found =
        std::find_if(begin, end, [&](const auto& known) { return match(*known.second); });
    return found == end ? entries.end() : found;
  }
  Result<std::shared_ptr<StoredCallable>> WaitLocked(const std::shared_ptr<Entry>& entry,
                                                     Deadline deadline) KEEL_REQUIRES(mutex);

  const std::shared_ptr<OwnStream> stream;
  const bool on_device;
  const HashFunction hash;

  Mutex mutex;
  CondVar made;  // or failed
  std::multimap<std::uint64_t, std::shared_ptr<Entry>> entries KEEL_GUARDED_BY(mutex);
};

Result<std::shared_ptr<StoredCallable>> CallableStore::State::WaitLocked(
    const std::shared_ptr<Entry>& entry, Deadline deadline) {
  // Before waiting: whoever made it may unregister it before this thread wakes.
  ++entry->count;
  while (entry->callable == nullptr && entry->error.ok()) {
    if (deadline.Passed()) {
      --entry->count;
      return DeadlineExceeded("the same callable is being registered by another thread");
    }
    if (deadline.never()) {
      made.Wait(mutex);
    } else {
      made.WaitUntil(mutex, deadline.when());
    }
  }
  if (!entry->error.ok()) return entry->error;
  return entry->callable;
}

// Those that somebody has. A memory's address is no other's while its store is alive, which holds
// it.
struct CallableStore::Shared {
  using Key = std::pair<const memory::DeviceMemory*, Orchestration>;

  // Null: there is none.
  std::shared_ptr<State> FindLocked(const Key& key) KEEL_REQUIRES(mutex) {
    std::erase_if(all, [](const auto& known) { return known.second.expired(); });
    const auto known = all.find(key);
    return known == all.end() ? nullptr : known->second.lock();
  }

  Mutex mutex;
  std::map<Key, std::weak_ptr<State>> all KEEL_GUARDED_BY(mutex);
};

Result<std::unique_ptr<CallableStore>> CallableStore::Share(
    const std::shared_ptr<memory::DeviceMemory>& memory, Orchestration where) {
  static PerProcess<Shared> process;
  Shared& shared = process.Get();
  const Shared::Key key(memory.get(), where);
  std::shared_ptr<State> state;  // destroyed without the lock, as what follows
  {
    const MutexLock lock(shared.mutex);
    state = shared.FindLocked(key);
  }
  if (state == nullptr) {
    // Without the lock: the device is asked for a stream, and others may have other devices.
    KEEL_ASSIGN(const auto fresh, Create(memory, where));
    const MutexLock lock(shared.mutex);
    state = shared.FindLocked(key);
    if (state == nullptr) {
      state = fresh->state_;
      shared.all[key] = state;
    }
  }
  return std::unique_ptr<CallableStore>(new CallableStore(std::move(state)));
}

Result<std::unique_ptr<CallableStore>> CallableStore::Create(
    std::shared_ptr<memory::DeviceMemory> memory, Orchestration where, HashFunction hash) {
  const bool on_device = where == Orchestration::kDevice;
  if (!on_device && where != Orchestration::kHost) {
    return InvalidArgument("a store of callables must be told who runs orchestration code");
  }
  if (on_device && !memory->device()->capabilities().orchestration) {
    return Unimplemented(
        fmt::format("device {} does not run orchestration code; let the host run it",
                    memory->name().ToString()));
  }
  KEEL_ASSIGN(std::shared_ptr<OwnStream> stream, OwnStream::Create(std::move(memory)));
  return std::unique_ptr<CallableStore>(
      new CallableStore(MakeSharedHere<State>(std::move(stream), on_device, hash)));
}

CallableStore::CallableStore(std::shared_ptr<State> state) : state_(std::move(state)) {}
CallableStore::~CallableStore() = default;

Result<std::shared_ptr<StoredCallable>> CallableStore::Register(const Image& image,
                                                                Deadline deadline) {
  State& state = *state_;
  auto entry = std::make_shared<State::Entry>(image);
  for (bool mine = false; !mine;) {
    const MutexLock lock(state.mutex);
    const auto known = state.FindLocked(image, [&](const State::Entry& other) {
      return std::ranges::equal(other.image.bytes(), image.bytes());
    });
    mine = known == state.entries.end();
    if (mine) {
      state.entries.emplace(state.hash(image), entry);
      continue;
    }
    // A copy: the entry may leave the map while this waits.
    const std::shared_ptr<State::Entry> other = known->second;
    Result<std::shared_ptr<StoredCallable>> callable = state.WaitLocked(other, deadline);
    // The other's time was over, and this one's is not.
    if (callable.status().code() == StatusCode::kDeadlineExceeded && !deadline.Passed()) continue;
    return callable;
  }
  auto callable = std::make_shared<StoredCallable>(image);
  const Status status = callable->Load(state.stream, state.on_device, deadline);
  // What was made of it goes before anybody is told that it failed, and tries again.
  if (!status.ok()) callable = nullptr;
  const MutexLock lock(state.mutex);
  if (status.ok()) {
    entry->callable = callable;
    if (callable->buffer()) uploads_.fetch_add(1, std::memory_order_relaxed);
  } else {
    entry->error = status;
    state.entries.erase(
        state.FindLocked(image, [&](const State::Entry& other) { return &other == entry.get(); }));
  }
  state.made.NotifyAll();
  if (!status.ok()) return status;
  return callable;
}

Status CallableStore::Unregister(const std::shared_ptr<StoredCallable>& callable) {
  if (callable == nullptr) return InvalidArgument("no callable was given");
  std::shared_ptr<State::Entry> gone;  // outside of the lock
  const MutexLock lock(state_->mutex);
  const auto found = state_->FindLocked(
      callable->image(), [&](const State::Entry& entry) { return entry.callable == callable; });
  if (found == state_->entries.end()) return NotFound("the callable is not registered");
  if (--found->second->count > 0) return OkStatus();
  gone = std::move(found->second);
  state_->entries.erase(found);
  return OkStatus();
}

std::uint64_t CallableStore::uploads() const { return uploads_.load(std::memory_order_relaxed); }

std::size_t CallableStore::size() const {
  const MutexLock lock(state_->mutex);
  return static_cast<std::size_t>(std::ranges::count_if(
      state_->entries, [](const auto& entry) { return entry.second->callable != nullptr; }));
}

}  // namespace keel::task
