// Telling a forked child from its parent. A child has none of the parent's threads, its locks may
// be held for ever, what they guard may be half changed, and a vendor's library does not work in
// it. Whoever has such things remembers where it was made (Home) and steps aside in a child: it
// looks at nothing that a lock guards, and is not even destroyed there (DeleteHere).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace keel {

namespace internal {
extern std::atomic<std::uint64_t> fork_generation;
}  // namespace internal

// How many forks lie between this process and the one that loaded Keel. One relaxed load.
inline std::uint64_t ForkGeneration() {
  return internal::fork_generation.load(std::memory_order_relaxed);
}

// The process that it was made in.
class Home {
 public:
  // Whether that is this one, and not a parent. One relaxed load.
  bool here() const { return generation_ == ForkGeneration(); }

 private:
  std::uint64_t generation_ = ForkGeneration();
};

// The deleter of what threads change: deletes in the process where the deleter, and so the object,
// was made. In a forked child the object stays as it is, for ever, with everything that it holds:
// another thread of the parent may have been in the middle of changing it, so that no destructor
// can trust what it finds. The memory that it has is what this costs.
//
// For std::shared_ptr, whose counts a fork cannot tear. What users own in one piece (a public
// class) is safe to destroy in a child if all such state is behind a pointer that was made so.
class DeleteHere {
 public:
  template <class T>
  void operator()(T* object) const {
    if (home_.here()) delete object;
  }

 private:
  Home home_;
};

// The allocator of what is deleted so: neither destroyed nor freed in a forked child.
template <class T>
class AllocateHere {
 public:
  using value_type = T;
  AllocateHere() = default;
  template <class U>
  AllocateHere(const AllocateHere<U>& other) : home_(other.home()) {}  // NOLINT: as allocators do
  T* allocate(std::size_t count) { return std::allocator<T>().allocate(count); }
  void deallocate(T* memory, std::size_t count) {
    if (home_.here()) std::allocator<T>().deallocate(memory, count);
  }
  template <class U>
  void destroy(U* object) {
    if (home_.here()) std::destroy_at(object);
  }
  const Home& home() const { return home_; }
  friend bool operator==(const AllocateHere&, const AllocateHere&) { return true; }

 private:
  Home home_;
};

// As std::make_shared, for what DeleteHere is for.
template <class T, class... Arguments>
std::shared_ptr<T> MakeSharedHere(Arguments&&... arguments) {
  return std::allocate_shared<T>(AllocateHere<T>(), std::forward<Arguments>(arguments)...);
}

// One T for each process: a child, which can trust no lock of its parent, gets a T of its own.
// Never destroyed, so that static objects may use it to the end. Meant to be a static object
// itself; an owner that is not calls End().
template <class T>
class PerProcess {
 public:
  T& Get() {
    Slot* slot = slot_.load(std::memory_order_acquire);
    while (slot == nullptr || !slot->home.here()) {
      auto fresh = std::make_unique<Slot>();
      if (slot_.compare_exchange_strong(slot, fresh.get())) slot = fresh.release();
    }
    return slot->value;
  }
  // Deletes this process's T; its parent's stays as it is. Nobody may be in it.
  void End() {
    Slot* const slot = slot_.exchange(nullptr);
    if (slot != nullptr && slot->home.here()) delete slot;
  }

 private:
  struct Slot {
    Home home;
    T value;
  };
  std::atomic<Slot*> slot_{nullptr};
};

}  // namespace keel
