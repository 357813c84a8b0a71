// The standard kernels for HIP. A code object is for one architecture, so that none is part of Keel;
// whoever wants the demo, the benchmarks or the conformance suite on a device compiles this file,
//   hipcc --genco --offload-arch=gfx942 -o keel_kernels.co src/drivers/hip/standard_kernels.hip
// and names the result in KEEL_HIP_KERNELS. It needs no header of HIP.

#define KEEL_KERNEL_FUNCTION __attribute__((device)) inline
#include "../shared/standard_kernels_body.h"

namespace {

using keel::kernels::U64;
using keel::kernels::U8;

struct Machine {
  static __attribute__((device)) void Add(U64* to, U64 value) {
    __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
  }
  // The host writes too: what it wrote must not come from a cache.
  static __attribute__((device)) U64 Load(const U64* from) {
    return __hip_atomic_load(from, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  }
  static __attribute__((device)) U64 Fetch(const U64* from) {
    return *reinterpret_cast<const volatile U64*>(from);
  }
  static __attribute__((device)) keel::kernels::Row FetchRow(keel::kernels::Worker worker,
                                                             const keel::kernels::Row* from) {
    static __attribute__((shared)) U64 words[2];
    if (worker.index < 2) words[worker.index] = Fetch(&from->destination + worker.index);
    Gather();
    const keel::kernels::Row row{words[0], words[1]};
    Gather();  // before it is another one
    return row;
  }
  // Nobody has measured here what telling the caches would bring.
  template <class T>
  static __attribute__((device)) T LoadPassing(const T* from) {
    return *from;
  }
  template <class T>
  static __attribute__((device)) void StorePassing(T* to, T value) {
    *to = value;
  }
  static __attribute__((device)) void Gather() {
    // For everybody, and not only for the group: who publishes next releases what its own wave has
    // stored, and on some devices a release within a group waits for no store.
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  }
  static __attribute__((device)) U64 Arrive(U64* at) {
    return __hip_atomic_fetch_add(at, U64(1), __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT) + 1;
  }
  static __attribute__((device)) void Publish(U64* to, U64 value) {
    __hip_atomic_store(to, value, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
  }
  // A counter of 100 MHz, whatever the clock of the device does.
  static __attribute__((device)) U64 NowMicros() { return __builtin_readsteadycounter() / 100; }
  static __attribute__((device)) void Pause() { __builtin_amdgcn_s_sleep(8); }
  static constexpr bool kRefuses = false;
  __attribute__((device)) U8* Write(U64 address, U64) { return reinterpret_cast<U8*>(address); }
  __attribute__((device)) const U8* Read(U64 address, U64) {
    return reinterpret_cast<const U8*>(address);
  }
};

__attribute__((device)) keel::kernels::Worker Group() {
  const U64 threads = __builtin_amdgcn_workgroup_size_x();
  return {__builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_grid_size_x() / threads};
}
__attribute__((device)) keel::kernels::Worker Here() {
  return {__builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workgroup_size_x()};
}
__attribute__((device)) keel::kernels::Worker This() {
  const keel::kernels::Worker group = Group();
  const keel::kernels::Worker here = Here();
  return {group.index * here.count + here.index, here.count * group.count};
}

}  // namespace

#include "../shared/standard_kernels_entries.h"
