// CallableStore: the callables of one device, once for each content, counted.
//
// Two images are the same callable if their hash, their length and their bytes are equal. The first
// registration loads the kernels and, for orchestration on the device, uploads the image: one
// buffer, in one copy, with the table of kernel addresses filled in; the orchestration code is
// loaded from its offset in that buffer. For orchestration on the host the code is loaded on the
// host, and nothing is uploaded but what LoadModule does with the kernels. Of an image without
// orchestration code only the kernels are loaded: its function is somebody else's.
//
// A StoredCallable is alive while somebody holds it: the store while it is registered, and each
// task that runs it. When the last one lets go everything is given back. Registering a callable
// that is registered no more makes a new one, also while tasks still run the old one.
//
// Any thread. Registrations of different images do not wait for each other; of equal ones, the
// first does the work and the others wait for its outcome; but its deadline is not theirs. A
// registration that failed leaves nothing.
//
// Share gives objects that stand for one and the same store: engines of one memory have one each.
// The store lives as long as one of them, or a callable that came from it. It is of one memory, and
// what is opened anew after a device was lost is another one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "keel/base/bytes.h"
#include "keel/base/deadline.h"
#include "keel/base/result.h"
#include "keel/memory/process_memory.h"
#include "keel/task/image.h"
#include "keel/task/orchestrator.h"

namespace keel::task {

class StoredCallable;  // stored_callable.h

class CallableStore {
 public:
  // `where` is kDevice or kHost. kUnimplemented: kDevice on a device that cannot.
  // `hash` is another one in tests only.
  using HashFunction = std::uint64_t (*)(const Image& image);
  static Result<std::unique_ptr<CallableStore>> Create(
      std::shared_ptr<memory::DeviceMemory> memory, Orchestration where,
      HashFunction hash = [](const Image& image) { return image.hash(); });
  // Of the process's one store of that memory, for that `where`.
  static Result<std::unique_ptr<CallableStore>> Share(
      const std::shared_ptr<memory::DeviceMemory>& memory, Orchestration where);
  // What was registered stays, if the store does.
  ~CallableStore();

  // One more count of the image's callable.
  Result<std::shared_ptr<StoredCallable>> Register(const Image& image, Deadline deadline);
  // One less. kNotFound: it is not registered.
  Status Unregister(const std::shared_ptr<StoredCallable>& callable);

  std::uint64_t uploads() const;  // ever, by this object
  std::size_t size() const;       // distinct callables now, whoever registered them

 private:
  struct State;
  struct Shared;
  explicit CallableStore(std::shared_ptr<State> state);
  const std::shared_ptr<State> state_;
  std::atomic<std::uint64_t> uploads_{0};
};

}  // namespace keel::task
