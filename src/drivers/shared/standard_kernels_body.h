// The bodies of keel/hal/standard_kernels.h: one source for every device.
//
// Each is written for one worker of many: worker `w` of `workers` handles the elements w,
// w + workers, w + 2 * workers, ... The simulated device runs it with one worker; a device that
// runs a grid of threads instantiates it once per thread. What differs between them (atomic
// addition, a clock, a look at memory that others write, the meaning of an address) comes in as
// `Machine`:
//   static void Add(std::uint64_t* to, std::uint64_t value)      atomically
//   static std::uint64_t Load(const std::uint64_t* from)         sees what others wrote
//   static std::uint64_t NowMicros()
//   static void Pause()
//   Bytes* / const Bytes* at an address: machine.Write(address, size), machine.Read(address, size),
//   null where the device may not do that
//
// It includes nothing, so that a device compiler needs no headers of any toolkit.
#pragma once

#ifndef KEEL_KERNEL_FUNCTION
#define KEEL_KERNEL_FUNCTION inline
#endif

namespace keel::kernels {

using U8 = unsigned char;
using U32 = unsigned int;
using U64 = unsigned long;
static_assert(sizeof(U8) == 1 && sizeof(U32) == 4 && sizeof(U64) == 8);

struct Worker {
  U64 index;
  U64 count;
};

KEEL_KERNEL_FUNCTION void Fill(Worker worker, U32* out, U32 value, U64 n) {
  for (U64 i = worker.index; i < n; i += worker.count) out[i] = value;
}

KEEL_KERNEL_FUNCTION void Add(Worker worker, const float* a, const float* b, float* c, U64 n) {
  for (U64 i = worker.index; i < n; i += worker.count) c[i] = a[i] + b[i];
}

// A product and a sum, never fused: the same bits on every device.
KEEL_KERNEL_FUNCTION void Axpy(Worker worker, const float* x, float* y, float a, U64 n) {
#ifdef __clang__
#pragma clang fp contract(off)
#endif
  for (U64 i = worker.index; i < n; i += worker.count) {
    const float product = a * x[i];
    y[i] = y[i] + product;
  }
}

template <class Machine>
KEEL_KERNEL_FUNCTION void Reduce(Worker worker, const U32* x, U64* total, U64 n) {
  U64 sum = 0;
  for (U64 i = worker.index; i < n; i += worker.count) sum += x[i];
  if (sum != 0) Machine::Add(total, sum);
}

template <class Machine>
KEEL_KERNEL_FUNCTION void Compare(Worker worker, const U8* a, const U8* b, U64* differing, U64 n) {
  U64 count = 0;
  for (U64 i = worker.index; i < n; i += worker.count) count += a[i] != b[i] ? 1 : 0;
  if (count != 0) Machine::Add(differing, count);
}

template <class Machine>
KEEL_KERNEL_FUNCTION void Spin(const U64* flag, U64 value, U64 limit_us) {
  const U64 start = Machine::NowMicros();
  while (Machine::Load(flag) != value && Machine::NowMicros() - start < limit_us) Machine::Pause();
}

// Rows of (destination, source, bytes). Words where everything is aligned to them, bytes otherwise.
template <class Machine>
KEEL_KERNEL_FUNCTION void CopyTable(Worker worker, Machine& machine, const U64* table, U64 rows) {
  for (U64 row = 0; row < rows; ++row) {
    const U64 size = table[3 * row + 2];
    if (size == 0) continue;
    U8* to = machine.Write(table[3 * row], size);
    const U8* from = machine.Read(table[3 * row + 1], size);
    if (to == nullptr || from == nullptr) return;
    if ((table[3 * row] | table[3 * row + 1] | size) % 8 == 0) {
      U64* to_words = reinterpret_cast<U64*>(to);
      const U64* from_words = reinterpret_cast<const U64*>(from);
      for (U64 i = worker.index; i < size / 8; i += worker.count) to_words[i] = from_words[i];
    } else {
      for (U64 i = worker.index; i < size; i += worker.count) to[i] = from[i];
    }
  }
}

}  // namespace keel::kernels
