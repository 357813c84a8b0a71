// The standard kernels for CUDA. tools/kernels/make_ptx.py compiles this file with clang alone, no
// toolkit, and writes standard_kernels_ptx.h.

#define KEEL_KERNEL_FUNCTION __attribute__((device)) inline
#include "../shared/standard_kernels_body.h"

namespace {

using keel::kernels::Quad;
using keel::kernels::Row;
using keel::kernels::U32;
using keel::kernels::U64;
using keel::kernels::U8;
using keel::kernels::Worker;

struct Machine {
  static __attribute__((device)) void Add(U64* to, U64 value) {
    __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
  }
  static __attribute__((device)) U64 Load(const U64* from) {
    return *reinterpret_cast<const volatile U64*>(from);
  }
  // Volatile, so that it stays where it is written and does not sink behind a branch.
  static __attribute__((device)) U64 Fetch(const U64* from) {
    U64 value;
    asm volatile("ld.u64 %0, [%1];" : "=l"(value) : "l"(from));
    return value;
  }
  static __attribute__((device)) Row FetchRow(Worker worker, const Row* from) {
    static __attribute__((shared)) U64 words[2];
    if (worker.index < 2) words[worker.index] = Fetch(&from->destination + worker.index);
    __nvvm_bar_sync(0);
    const Row row{words[0], words[1]};
    __nvvm_bar_sync(0);  // before it is another one
    return row;
  }
  // Only of quads: what is not aligned is seldom, and slow for other reasons.
  template <class T>
  static __attribute__((device)) T LoadPassing(const T* from) {
    return *from;
  }
  template <class T>
  static __attribute__((device)) void StorePassing(T* to, T value) {
    *to = value;
  }
  static __attribute__((device)) Quad LoadPassing(const Quad* from) {
    U64 low;
    U64 high;
    asm volatile("ld.cs.v2.u64 {%0, %1}, [%2];" : "=l"(low), "=l"(high) : "l"(from) : "memory");
    return Quad{low, high};
  }
  static __attribute__((device)) void StorePassing(Quad* to, Quad value) {
    asm volatile("st.cs.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(value[0]), "l"(value[1]) : "memory");
  }
  static __attribute__((device)) void Gather() { __nvvm_bar_sync(0); }
  static __attribute__((device)) U64 Arrive(U64* at) {
    U64 before;
    asm volatile("atom.acq_rel.gpu.add.u64 %0, [%1], 1;" : "=l"(before) : "l"(at) : "memory");
    return before + 1;
  }
  static __attribute__((device)) void Publish(U64* to, U64 value) {
    asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
  }
  static __attribute__((device)) U64 NowMicros() {
    U64 nanoseconds;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
    return nanoseconds / 1000;
  }
  static __attribute__((device)) void Pause() {}
  static constexpr bool kRefuses = false;
  __attribute__((device)) U8* Write(U64 address, U64) { return reinterpret_cast<U8*>(address); }
  __attribute__((device)) const U8* Read(U64 address, U64) {
    return reinterpret_cast<const U8*>(address);
  }
};

__attribute__((device)) keel::kernels::Worker Group() {
  return {U64(__nvvm_read_ptx_sreg_ctaid_x()), U64(__nvvm_read_ptx_sreg_nctaid_x())};
}
__attribute__((device)) keel::kernels::Worker Here() {
  return {U64(__nvvm_read_ptx_sreg_tid_x()), U64(__nvvm_read_ptx_sreg_ntid_x())};
}
__attribute__((device)) keel::kernels::Worker This() {
  const keel::kernels::Worker group = Group();
  const keel::kernels::Worker here = Here();
  return {group.index * here.count + here.index, here.count * group.count};
}

}  // namespace

#include "../shared/standard_kernels_entries.h"
