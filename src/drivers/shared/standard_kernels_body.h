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
//   static Row FetchRow(Worker worker, const Row* from)          likewise, once for a group, whose
//                                                                workers all ask: the host's memory
//                                                                is far, and answers few at a time
//   static T LoadPassing(const T* from)                          one of very many: the device's
//   static void StorePassing(T* to, T value)                     caches should keep what else is
//                                                                in them rather than this
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
//   static constexpr bool kRefuses                               whether it ever says that
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
// Before a loop that is seldom run: code that is not run is fetched all the same.
#define KEEL_KERNEL_ROLLED _Pragma("nounroll")
#else
#define KEEL_KERNEL_UNFUSED
#define KEEL_KERNEL_UNROLLED
#define KEEL_KERNEL_ROLLED
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

// Neighbours copy neighbouring elements, and each has several on their way at a time: a store may
// change what a later load sees, so no compiler does it. How far apart those are is known to the
// compiler, so that their addresses take no registers and more groups have room on the device.
//
// The bytes only pass through the caches. Rows that fill those would drive out all else, and each
// kernel that follows, however little it does, would take longer.
template <class Machine, class T>
KEEL_KERNEL_FUNCTION void CopyAs(Worker worker, U8* to, const U8* from, U64 size) {
  constexpr U64 kNeighbours = 32;
  constexpr U64 kInFlight = 4;
  T* to_words = reinterpret_cast<T*>(to);
  const T* from_words = reinterpret_cast<const T*>(from);
  const U64 count = size / sizeof(T);
  U64 i = worker.index;
  if (worker.count % kNeighbours != 0) {
    for (; i < count; i += worker.count) to_words[i] = from_words[i];
    return;
  }
  i = i / kNeighbours * kNeighbours * kInFlight + i % kNeighbours;
  for (; i + (kInFlight - 1) * kNeighbours < count; i += worker.count * kInFlight) {
    T element[kInFlight];
    KEEL_KERNEL_UNROLLED
    for (U64 k = 0; k < kInFlight; ++k) {
      element[k] = Machine::LoadPassing(from_words + i + k * kNeighbours);
    }
    KEEL_KERNEL_UNROLLED
    for (U64 k = 0; k < kInFlight; ++k) {
      Machine::StorePassing(to_words + i + k * kNeighbours, element[k]);
    }
  }
  KEEL_KERNEL_ROLLED
  for (; i < count; i += kNeighbours) to_words[i] = from_words[i];
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
    CopyAs<Machine, Quad>(worker, to, from, size);
  } else if (width == 4) {
    CopyAs<Machine, U32>(worker, to, from, size);
  } else {
    CopyAs<Machine, U8>(worker, to, from, size);
  }
  return true;
}

// Each piece is one group's: it looks up one row, which may be kFar away in the host's memory, and
// copies with all its workers. Piece i is of row i for the first `direct` of them, so that both are
// on their way at once. False: the device may not do that.
template <bool kLastFirst = false, bool kFar = false, class Machine>
KEEL_KERNEL_FUNCTION bool CopyTable(Worker group, Worker worker, Machine& machine,
                                    const Piece* pieces, const Row* rows, U64 count, U64 direct) {
  for (U64 turn = group.index; turn < count; turn += group.count) {
    const U64 i = kLastFirst ? count - 1 - turn : turn;
    const U64 at = i < direct ? i : Machine::Fetch(&pieces[i].row);
    const U64 offset = Machine::Fetch(&pieces[i].offset);
    const U64 size = Machine::Fetch(&pieces[i].size);
    const Row row =
        kFar ? Machine::FetchRow(worker, &rows[at])
             : Row{Machine::Fetch(&rows[at].destination), Machine::Fetch(&rows[at].source)};
    if (row.destination == 0) continue;
    if (!CopyRange(worker, machine, row.destination + offset, row.source + offset, size)) {
      return false;
    }
  }
  return true;
}

// Each mark is one worker's. The counts are kept near, so that nothing far away is read. Whoever
// sees the last mark may take the memory of the counts away: each is written before its mark.
template <class Machine>
KEEL_KERNEL_FUNCTION void Mark(Worker worker, U64* counts, U64* seen, U64 marks, U64 by) {
  for (U64 i = worker.index; i < marks; i += worker.count) {
    const U64 next = counts[i] + by;
    counts[i] = next;
    Machine::Publish(seen + i, next / by);
  }
}

// By one worker of each group: the last group marks, and has nothing to write but the mark.
template <class Machine>
KEEL_KERNEL_FUNCTION void MarkTogether(Worker group, U64* count, U64* seen) {
  const U64 arrived = Machine::Arrive(count);
  if (arrived % group.count == 0) Machine::Publish(seen, arrived / group.count);
}

// The last group fetches the words. It has no piece where there are more groups than pieces.
//
// From the end: the beginnings of the rows come last, and are in the caches when the program
// begins. The copies out go the other way, and so read first what was copied in last.
template <class Machine>
KEEL_KERNEL_FUNCTION void CopyIn(Worker group, Worker worker, Machine& machine, const Piece* pieces,
                                 const Row* rows, U64 count, U64 direct, const U64* far, U64* near,
                                 U64 words) {
  if (group.index + 1 == group.count) {
    for (U64 i = worker.index; i < words; i += worker.count) near[i] = Machine::Fetch(far + i);
  }
  CopyTable<true, true>(group, worker, machine, pieces, rows, count, direct);
}

// Rows that are a value of the launch, with the sizes of their first pieces: nothing is looked up.
struct RowValues {
  Row row[96];
  U32 size[96];
};

// The rows behind the first `count`.
KEEL_KERNEL_FUNCTION void LeaveNear(Worker worker, const RowValues& rows, U64 count, Row* near,
                                    U64 rows_out) {
  // Word by word: of a whole row the compiler would make a copy of all that it could be.
  for (U64 i = worker.index; i < rows_out; i += worker.count) {
    near[i].destination = rows.row[count + i].destination;
    near[i].source = rows.row[count + i].source;
  }
}

// One piece to a group, from the end as well. The last one leaves the other rows near.
template <class Machine>
KEEL_KERNEL_FUNCTION void CopyInRows(Worker group, Worker worker, Machine& machine,
                                     const RowValues& rows, const Piece* pieces, U64 count,
                                     U64 direct, Row* near, U64 rows_out) {
  if (group.index + 1 == group.count) LeaveNear(worker, rows, direct, near, rows_out);
  for (U64 turn = group.index; turn < count; turn += group.count) {
    const U64 i = count - 1 - turn;
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

// --- Small rows ----------------------------------------------------------------------------------
//
// What a few small rows take is no copying but waiting, for the row and then for its bytes: each
// worker has those of several rows on their way at once, and no look-up hangs on another one.

// So many rows are on their way at once, by a team of workers.
constexpr U32 kTogether = 4;

struct Known {
  U64 destination;  // 0: left out
  U64 source;
  U32 size;
};
struct Range {
  U8* to;
  const U8* from;
  U32 size;  // 0: left out
};

// Each in elements of a quad.
KEEL_KERNEL_FUNCTION void CopyRanges(Worker mate, const Range (&range)[kTogether], U32 longest) {
  const U32 stride = static_cast<U32>(mate.count * sizeof(Quad));
  for (U32 at = static_cast<U32>(mate.index * sizeof(Quad)); at < longest; at += stride) {
    Quad element[kTogether] = {};
    KEEL_KERNEL_UNROLLED
    for (U32 k = 0; k < kTogether; ++k) {
      if (at < range[k].size) element[k] = *reinterpret_cast<const Quad*>(range[k].from + at);
    }
    KEEL_KERNEL_UNROLLED
    for (U32 k = 0; k < kTogether; ++k) {
      if (at < range[k].size) *reinterpret_cast<Quad*>(range[k].to + at) = element[k];
    }
  }
}

// A row that is aligned anyhow, and may be left out.
template <class Machine>
KEEL_KERNEL_FUNCTION void CopyAny(Worker mate, Machine& machine, Known row) {
  if (row.destination == 0) return;
  U8* to = machine.Write(row.destination, row.size);
  const U8* from = machine.Read(row.source, row.size);
  const U32 stride = static_cast<U32>(mate.count);
  U32 at = static_cast<U32>(mate.index);
  if (WidthOf(row.destination, row.source, row.size) == 1) {
    KEEL_KERNEL_ROLLED
    for (; at < row.size; at += stride) to[at] = from[at];
    return;
  }
  KEEL_KERNEL_ROLLED
  for (; at < row.size / sizeof(U32); at += stride) {
    reinterpret_cast<U32*>(to)[at] = reinterpret_cast<const U32*>(from)[at];
  }
}

// `known(i)` tells row i. False: the device may not do that.
template <class Machine, class Rows>
KEEL_KERNEL_FUNCTION bool CopyTogether(Worker team, Worker mate, Machine& machine, U64 n,
                                       Rows known) {
  const U32 count = static_cast<U32>(n);
  const U32 step = static_cast<U32>(team.count) * kTogether;
  for (U32 first = static_cast<U32>(team.index) * kTogether; first < count; first += step) {
    // The last one again where there are no more: nothing is asked before all are on their way.
    Known row[kTogether];
    KEEL_KERNEL_UNROLLED
    for (U32 k = 0; k < kTogether; ++k) row[k] = known(first + k < count ? first + k : count - 1);
    Range range[kTogether];
    U32 longest = 0;
    U32 alignment = 0;
    bool refused = false;
    KEEL_KERNEL_UNROLLED
    for (U32 k = 0; k < kTogether; ++k) {
      const auto [destination, source, size] = row[k];
      const bool there = first + k < count && destination != 0;
      const bool asks = there || !Machine::kRefuses;
      U8* to = asks ? machine.Write(destination, size) : nullptr;
      const U8* from = asks ? machine.Read(source, size) : nullptr;
      const bool allowed = !Machine::kRefuses || (to != nullptr && from != nullptr);
      refused |= there && !allowed;
      range[k] = {to, from, there && allowed ? size : 0};
      longest = range[k].size > longest ? range[k].size : longest;
      alignment |= static_cast<U32>(destination) | static_cast<U32>(source) | size;
    }
    if (refused) return false;
    if (alignment % sizeof(Quad) == 0) {
      CopyRanges(mate, range, longest);
      continue;
    }
    KEEL_KERNEL_ROLLED
    for (U32 i = first; i < count && i < first + kTogether; ++i) CopyAny(mate, machine, known(i));
  }
  return true;
}

// The last team leaves the other rows near. It has none of its own where there is a team too many.
template <class Machine>
KEEL_KERNEL_FUNCTION void CopyInSmall(Worker team, Worker mate, Machine& machine,
                                      const RowValues& rows, U64 count, Row* near, U64 rows_out) {
  if (team.index + 1 == team.count) LeaveNear(mate, rows, count, near, rows_out);
  CopyTogether(team, mate, machine, count, [&](U32 i) {
    return Known{rows.row[i].destination, rows.row[i].source, rows.size[i]};
  });
}

// Each group marks for itself: nobody waits for another one's count.
template <class Machine>
KEEL_KERNEL_FUNCTION void CopyOutSmall(Worker group, Worker worker, Worker team, Worker mate,
                                       Machine& machine, const Piece* pieces, const Row* rows,
                                       U64 count, U64* counts, U64* seen) {
  const U64 next = Machine::Fetch(counts + group.index) + 1;
  const bool allowed = CopyTogether(team, mate, machine, count, [&](U32 i) {
    return Known{Machine::Fetch(&rows[i].destination), Machine::Fetch(&rows[i].source),
                 static_cast<U32>(Machine::Fetch(&pieces[i].size))};
  });
  if (!allowed) return;
  Machine::Gather();
  if (worker.index != 0) return;
  counts[group.index] = next;
  Machine::Publish(seen + group.index, next);
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
