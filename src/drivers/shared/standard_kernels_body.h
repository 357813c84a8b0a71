// The bodies of keel/hal/standard_kernels.h: one source for every device.
//
// Each is written for one worker of many: worker `w` of `workers` handles the elements w,
// w + workers, w + 2 * workers, ... The simulated device runs it with one worker; a device that
// runs a grid of threads instantiates it once per thread. What differs between them (atomic
// addition, a clock, a look at memory that others write, the meaning of an address) comes in as
// `Machine`:
//   static void Add(std::uint64_t* to, std::uint64_t value)      atomically
//   static std::uint64_t Load(const std::uint64_t* from)         sees what others wrote
//   static std::uint64_t Fetch(const std::uint64_t* from)        what was there before the kernel
//                                                                began; on its way at once
//   static void Publish(std::uint64_t* to, std::uint64_t value)  for the host to see, after all
//                                                                that was done before
//   static void Gather()                                         the group's workers wait for each
//                                                                other
//   static std::uint64_t Arrive(std::uint64_t* at)               counts one more, after all that
//                                                                was done before; what those that
//                                                                were counted did is seen then
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

// At the begin of a body: a product and a sum are never fused, so that bits are the same on every
// device. Other compilers are told by an option, -ffp-contract=off.
#ifdef __clang__
#define KEEL_KERNEL_UNFUSED _Pragma("clang fp contract(off)")
// Before a loop over an array that is to be in registers.
#define KEEL_KERNEL_UNROLLED _Pragma("unroll")
#else
#define KEEL_KERNEL_UNFUSED
#define KEEL_KERNEL_UNROLLED
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

KEEL_KERNEL_FUNCTION void Axpy(Worker worker, const float* x, float* y, float a, U64 n) {
  KEEL_KERNEL_UNFUSED
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

struct StoredWords {
  U64 word[510];
};

KEEL_KERNEL_FUNCTION void Store(Worker worker, const StoredWords& value, U64* to, U64 n) {
  for (U64 i = worker.index; i < n; i += worker.count) to[i] = value.word[i];
}

// A part of a row: `offset` bytes from where the row begins.
struct Piece {
  U64 row;
  U64 offset;
  U64 size;
};
struct Row {
  U64 destination;  // 0: left out
  U64 source;
};
// In registers, which a struct of two words is not.
using Quad = U64 __attribute__((vector_size(16)));

template <class T>
KEEL_KERNEL_FUNCTION void CopyAs(Worker worker, U8* to, const U8* from, U64 size) {
  T* to_words = reinterpret_cast<T*>(to);
  const T* from_words = reinterpret_cast<const T*>(from);
  const U64 count = size / sizeof(T);
  const U64 stride = worker.count;
  U64 i = worker.index;
  // Four on their way at a time: a store may change what a later load sees, so no compiler does it.
  for (; i + 3 * stride < count; i += 4 * stride) {
    const T first = from_words[i];
    const T second = from_words[i + stride];
    const T third = from_words[i + 2 * stride];
    const T fourth = from_words[i + 3 * stride];
    to_words[i] = first;
    to_words[i + stride] = second;
    to_words[i + 2 * stride] = third;
    to_words[i + 3 * stride] = fourth;
  }
  for (; i < count; i += stride) to_words[i] = from_words[i];
}

// As wide as the alignment of everything allows.
KEEL_KERNEL_FUNCTION U64 WidthOf(U64 destination, U64 source, U64 size) {
  const U64 alignment = destination | source | size;
  return alignment % 16 == 0 ? 16 : alignment % 4 == 0 ? 4 : 1;
}

// With all workers of a group. False: the device may not do that.
template <class Machine>
KEEL_KERNEL_FUNCTION bool CopyRange(Worker worker, Machine& machine, U64 destination, U64 source,
                                    U64 size) {
  U8* to = machine.Write(destination, size);
  const U8* from = machine.Read(source, size);
  if (to == nullptr || from == nullptr) return false;
  const U64 width = WidthOf(destination, source, size);
  if (width == 16) {
    CopyAs<Quad>(worker, to, from, size);
  } else if (width == 4) {
    CopyAs<U32>(worker, to, from, size);
  } else {
    CopyAs<U8>(worker, to, from, size);
  }
  return true;
}

// Each piece is one group's: it looks up one row, perhaps far away in the host's memory, and copies
// with all its workers. Piece i is of row i for the first `direct` of them, so that both are on
// their way at once. False: the device may not do that.
template <class Machine>
KEEL_KERNEL_FUNCTION bool CopyTable(Worker group, Worker worker, Machine& machine,
                                    const Piece* pieces, const Row* rows, U64 count, U64 direct) {
  for (U64 i = group.index; i < count; i += group.count) {
    const U64 row = i < direct ? i : Machine::Fetch(&pieces[i].row);
    const U64 row_destination = Machine::Fetch(&rows[row].destination);
    const U64 row_source = Machine::Fetch(&rows[row].source);
    const U64 offset = Machine::Fetch(&pieces[i].offset);
    const U64 size = Machine::Fetch(&pieces[i].size);
    if (row_destination == 0) continue;
    if (!CopyRange(worker, machine, row_destination + offset, row_source + offset, size)) {
      return false;
    }
  }
  return true;
}

// By one worker. The count is kept near, so that nothing far away is read. Whoever sees the word
// may take the memory of the count away: that is written first.
template <class Machine>
KEEL_KERNEL_FUNCTION void Mark(U64* count, U64* seen, U64 by) {
  const U64 next = *count + by;
  *count = next;
  Machine::Publish(seen, next / by);
}

// By one worker of each group: the last group marks, and has nothing to write but the mark.
template <class Machine>
KEEL_KERNEL_FUNCTION void MarkTogether(Worker group, U64* count, U64* seen) {
  const U64 arrived = Machine::Arrive(count);
  if (arrived % group.count == 0) Machine::Publish(seen, arrived / group.count);
}

// The last group fetches the words. It has no piece where there are more groups than pieces.
template <class Machine>
KEEL_KERNEL_FUNCTION void CopyIn(Worker group, Worker worker, Machine& machine, const Piece* pieces,
                                 const Row* rows, U64 count, U64 direct, const U64* far, U64* near,
                                 U64 words) {
  if (group.index + 1 == group.count) {
    for (U64 i = worker.index; i < words; i += worker.count) near[i] = Machine::Fetch(far + i);
  }
  CopyTable(group, worker, machine, pieces, rows, count, direct);
}

// Rows that are a value of the launch, with the sizes of their first pieces: nothing is looked up.
struct RowValues {
  Row row[96];
  U32 size[96];
};

// So many ranges are on their way at once, by a group.
constexpr U64 kTogether = 4;

struct Range {
  U8* to;
  const U8* from;
  U64 width;  // of an element: 16, 4 or 1
  U64 count;  // of elements; 0: left out
};

template <class Machine>
KEEL_KERNEL_FUNCTION Range RangeOf(Machine& machine, const RowValues& rows, U64 row) {
  const U64 destination = rows.row[row].destination;
  const U64 source = rows.row[row].source;
  const U64 size = rows.size[row];
  if (destination == 0) return {};
  U8* to = machine.Write(destination, size);
  const U8* from = machine.Read(source, size);
  if (to == nullptr || from == nullptr) return {};
  const U64 width = WidthOf(destination, source, size);
  return {to, from, width, width == 16 ? size / 16 : width == 4 ? size / 4 : size};
}

// `kWide`: the width is 16, and nothing is asked.
template <bool kWide>
KEEL_KERNEL_FUNCTION Quad LoadElement(const Range& range, U64 i) {
  if (kWide || range.width == 16) return reinterpret_cast<const Quad*>(range.from)[i];
  const U64 word =
      range.width == 4 ? reinterpret_cast<const U32*>(range.from)[i] : U64{range.from[i]};
  return Quad{word, 0};
}
template <bool kWide>
KEEL_KERNEL_FUNCTION void StoreElement(const Range& range, U64 i, Quad element) {
  if (kWide || range.width == 16) {
    reinterpret_cast<Quad*>(range.to)[i] = element;
  } else if (range.width == 4) {
    reinterpret_cast<U32*>(range.to)[i] = static_cast<U32>(element[0]);
  } else {
    range.to[i] = static_cast<U8>(element[0]);
  }
}

// Each worker has an element of each on its way before it stores the first.
template <bool kWide>
KEEL_KERNEL_FUNCTION void CopyRanges(Worker worker, const Range (&range)[kTogether], U64 longest) {
  for (U64 i = worker.index; i < longest; i += worker.count) {
    Quad element[kTogether] = {};
    KEEL_KERNEL_UNROLLED
    for (U64 k = 0; k < kTogether; ++k) {
      if (i < range[k].count) element[k] = LoadElement<kWide>(range[k], i);
    }
    KEEL_KERNEL_UNROLLED
    for (U64 k = 0; k < kTogether; ++k) {
      if (i < range[k].count) StoreElement<kWide>(range[k], i, element[k]);
    }
  }
}

// The rows of a group.
template <class Machine>
KEEL_KERNEL_FUNCTION void CopyRows(Worker worker, Machine& machine, const RowValues& rows,
                                   U64 first, U64 end) {
  Range range[kTogether] = {};
  U64 longest = 0;
  bool wide = true;
  KEEL_KERNEL_UNROLLED
  for (U64 k = 0; k < kTogether; ++k) {
    if (first + k < end) range[k] = RangeOf(machine, rows, first + k);
    longest = range[k].count > longest ? range[k].count : longest;
    wide = wide && (range[k].count == 0 || range[k].width == 16);
  }
  if (wide) {
    CopyRanges<true>(worker, range, longest);
  } else {
    CopyRanges<false>(worker, range, longest);
  }
}

// Rows that are a piece each go together; those of several pieces one piece to a group.
template <class Machine>
KEEL_KERNEL_FUNCTION void CopyInRows(Worker group, Worker worker, Machine& machine,
                                     const RowValues& rows, const Piece* pieces, U64 count,
                                     U64 direct, U64 together, Row* near, U64 rows_out) {
  if (together != 0) {
    for (U64 i = group.index * kTogether; i < direct; i += group.count * kTogether) {
      CopyRows(worker, machine, rows, i, direct);
    }
  } else {
    for (U64 i = group.index; i < count; i += group.count) {
      const U64 row = i < direct ? i : Machine::Fetch(&pieces[i].row);
      const U64 offset = i < direct ? 0 : Machine::Fetch(&pieces[i].offset);
      const U64 size = i < direct ? rows.size[i] : Machine::Fetch(&pieces[i].size);
      const U64 destination = rows.row[row].destination;
      if (destination == 0) continue;
      if (!CopyRange(worker, machine, destination + offset, rows.row[row].source + offset, size)) {
        return;
      }
    }
  }
  if (group.index + 1 != group.count) return;
  // Word by word: of a whole row the compiler would make a copy of all that it could be.
  for (U64 i = worker.index; i < rows_out; i += worker.count) {
    near[i].destination = rows.row[direct + i].destination;
    near[i].source = rows.row[direct + i].source;
  }
}

// The last group that is done marks the end.
template <class Machine>
KEEL_KERNEL_FUNCTION void CopyOut(Worker group, Worker worker, Machine& machine,
                                  const Piece* pieces, const Row* rows, U64 count, U64 direct,
                                  U64* arrived, U64* seen) {
  if (!CopyTable(group, worker, machine, pieces, rows, count, direct)) return;
  Machine::Gather();
  if (worker.index == 0) MarkTogether<Machine>(group, arrived, seen);
}

// An element of c is one worker's, whichever: how many there are changes no sum.
KEEL_KERNEL_FUNCTION void MatMul(Worker worker, const float* a, const float* b, float* c,
                                 U32 transposed, U64 m, U64 n, U64 k) {
  KEEL_KERNEL_UNFUSED
  const bool a_by_columns = (transposed & 1) != 0;
  const bool b_by_columns = (transposed & 2) != 0;
  const U64 a_down = a_by_columns ? 1 : k;
  const U64 a_right = a_by_columns ? m : 1;
  const U64 b_down = b_by_columns ? 1 : n;
  const U64 b_right = b_by_columns ? k : 1;
  for (U64 i = worker.index; i < m * n; i += worker.count) {
    const float* left = a + i / n * a_down;
    const float* right = b + i % n * b_right;
    float sum = 0;
    for (U64 p = 0; p < k; ++p) {
      const float product = left[p * a_right] * right[p * b_down];
      sum = sum + product;
    }
    c[i] = sum;
  }
}

KEEL_KERNEL_FUNCTION void Relu(Worker worker, const float* x, float* y, U64 n) {
  for (U64 i = worker.index; i < n; i += worker.count) y[i] = x[i] > 0 ? x[i] : 0;
}

KEEL_KERNEL_FUNCTION void ReluGrad(Worker worker, const float* y, float* gradient, U64 n) {
  for (U64 i = worker.index; i < n; i += worker.count) {
    if (!(y[i] > 0)) gradient[i] = 0;
  }
}

KEEL_KERNEL_FUNCTION void Mse(Worker worker, const float* y, const float* target, float* gradient,
                              float* loss, float scale, U64 n) {
  KEEL_KERNEL_UNFUSED
  const float twice = 2 * scale;
  for (U64 i = worker.index; i < n; i += worker.count) gradient[i] = twice * (y[i] - target[i]);
  if (worker.index != 0) return;
  float sum = 0;
  for (U64 i = 0; i < n; ++i) {
    const float difference = y[i] - target[i];
    const float square = difference * difference;
    sum = sum + square;
  }
  *loss = scale * sum;
}

}  // namespace keel::kernels
