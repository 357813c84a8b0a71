// What a case gets: devices that were opened for it, and the small helpers that most cases need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "hal/conformance/blocker.h"
#include "hal/conformance/case.h"
#include "hal/conformance/check.h"
#include "hal/conformance/conformance.h"
#include "hal/conformance/pinned_words.h"
#include "keel/base/bytes.h"
#include "keel/base/deadline.h"
#include "keel/base/mutex.h"
#include "keel/hal/command.h"
#include "keel/hal/event.h"
#include "keel/hal/graph.h"
#include "keel/hal/instrumented.h"
#include "keel/hal/memory.h"
#include "keel/hal/module.h"
#include "keel/hal/standard_kernels.h"
#include "keel/hal/stream.h"

namespace keel::hal::conformance {

// The bound of waits that must succeed: far more than any of them takes, also under a sanitizer.
inline Deadline InTime() { return Deadline::After(std::chrono::seconds(30)); }

// `count` bytes that differ from place to place and from seed to seed.
std::vector<std::byte> Pattern(std::size_t count, std::uint32_t seed);

// Where two buffers first differ, if they do.
testing::AssertionResult SameBytes(const std::vector<std::byte>& want,
                                   const std::vector<std::byte>& got);

// Thread-safe, apart from Finish().
class CaseContext {
 public:
  // Opens as many devices as the case needs.
  static Result<std::unique_ptr<CaseContext>> Create(const Case& test, const Join& join);
  ~CaseContext();
  CaseContext(const CaseContext&) = delete;
  CaseContext& operator=(const CaseContext&) = delete;

  const Join& join() const { return join_; }
  int device_count() const { return static_cast<int>(devices_.size()); }
  InstrumentedDevice& device(int i = 0) { return *devices_.at(static_cast<std::size_t>(i)); }
  std::shared_ptr<Device> shared(int i = 0) { return devices_.at(static_cast<std::size_t>(i)); }
  const Capabilities& capabilities(int i = 0) { return device(i).capabilities(); }
  // The smallest size of virtual memory; not zero even without it.
  Bytes granule(int i = 0);

  Result<Stream> NewStream(int i = 0) { return Stream::Create(shared(i)); }
  Result<Event> NewEvent(int i = 0) { return Event::Create(shared(i)); }
  Result<PlainMemory> NewPlain(Bytes size, int i = 0) {
    return PlainMemory::Create(shared(i), size);
  }
  Result<PinnedWords> NewWords(std::size_t count, int i = 0) {
    return PinnedWords::Create(shared(i), count);
  }
  // A standard kernel, from a module that lives as long as the context.
  Result<KernelHandle> Kernel(std::string_view name, int i = 0);
  // Keeps the stream busy until the blocker is released or destroyed.
  Result<Blocker> Block(StreamHandle stream, int i = 0);

  // Copies from and to pageable memory, on a stream of the context's own, and waits.
  Status WriteBytes(DeviceAddress to, const std::vector<std::byte>& bytes, int i = 0);
  Result<std::vector<std::byte>> ReadBytes(DeviceAddress from, std::size_t count, int i = 0);
  template <class T>
  Status Write(DeviceAddress to, const std::vector<T>& values, int i = 0) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return WriteBytes(to, bytes, i);
  }
  template <class T>
  Result<std::vector<T>> Read(DeviceAddress from, std::size_t count, int i = 0) {
    static_assert(std::is_trivially_copyable_v<T>);
    KEEL_ASSIGN(const std::vector<std::byte> bytes, ReadBytes(from, count * sizeof(T), i));
    std::vector<T> values(count);
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  // Whether `count` words at the address all have this value.
  testing::AssertionResult HoldsWord(DeviceAddress address, std::size_t count, std::uint32_t value,
                                     int i = 0);
  testing::AssertionResult HoldsBytes(DeviceAddress address, const std::vector<std::byte>& bytes,
                                      int i = 0);
  // That the device still allocates, runs and copies: after something was refused.
  testing::AssertionResult Works(int i = 0);

  // Launches of the standard kernels that cases use most.
  Status LaunchFill(StreamHandle stream, DeviceAddress out, std::uint32_t value, std::uint64_t n,
                    int i = 0);

  // Runs a helper (KEEL_CONFORMANCE_HELPER) in a process of its own. A failure there is one here.
  void RunHelper(const std::string& full_name, const std::string& argument, int descriptor);

  // Closes all devices, and opens them again. Nothing of the case may still be alive.
  Status Reopen();

  // Ends the case: gives back what the context made and, for a case that keeps its devices, fails
  // when something is still alive or could not be given back.
  void Finish();

 private:
  CaseContext(const Case& test, const Join& join) : test_(test), join_(join) {}
  Status Open();
  void CloseOwn();
  Result<StreamHandle> CopyStream(int i) KEEL_EXCLUDES(mutex_);

  const Case& test_;
  const Join& join_;
  std::vector<std::shared_ptr<InstrumentedDevice>> devices_;

  Mutex mutex_;
  std::map<int, Module> modules_ KEEL_GUARDED_BY(mutex_);
  std::map<int, Stream> copy_streams_ KEEL_GUARDED_BY(mutex_);
};

}  // namespace keel::hal::conformance
