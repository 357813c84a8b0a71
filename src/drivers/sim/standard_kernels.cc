// The kernels of keel/hal/standard_kernels.h for the simulated device: the common bodies, fed from
// a KernelContext.

#include "keel/hal/standard_kernels.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <thread>

#include "drivers/shared/standard_kernels_body.h"
#include "drivers/sim/kernel_registry.h"

namespace keel::sim {
namespace {

using P = KernelParameter;

// The whole grid is one worker.
constexpr kernels::Worker kAlone{0, 1};

// The kernels' body knows addresses; only the context knows what they mean.
class Machine {
 public:
  explicit Machine(KernelContext& context) : context_(context) {}

  static void Add(kernels::U64* to, kernels::U64 value) { std::atomic_ref(*to).fetch_add(value); }
  static void Publish(kernels::U64* to, kernels::U64 value) {
    std::atomic_ref(*to).store(value, std::memory_order_release);
  }
  static kernels::U64 Load(const kernels::U64* from) {
    return std::atomic_ref(*const_cast<kernels::U64*>(from)).load(std::memory_order_acquire);
  }
  static kernels::U64 Fetch(const kernels::U64* from) { return *from; }
  static kernels::Row FetchRow(kernels::Worker /*worker*/, const kernels::Row* from) {
    return *from;
  }
  template <class T>
  static T LoadPassing(const T* from) {
    return *from;
  }
  template <class T>
  static void StorePassing(T* to, T value) {
    *to = value;
  }
  static void Gather() {}
  static kernels::U64 Arrive(kernels::U64* at) { return std::atomic_ref(*at).fetch_add(1) + 1; }
  static kernels::U64 NowMicros() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<kernels::U64>(
        std::chrono::duration_cast<std::chrono::microseconds>(now).count());
  }
  // A real device's kernel would burn a core of its own; this one shares the host's.
  static void Pause() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

  static constexpr bool kRefuses = true;
  kernels::U8* Write(kernels::U64 address, kernels::U64 size) {
    return reinterpret_cast<kernels::U8*>(
        context_.Translate(DeviceAddress(address), Bytes(size), hal::Access::kWrite));
  }
  const kernels::U8* Read(kernels::U64 address, kernels::U64 size) {
    return reinterpret_cast<const kernels::U8*>(
        context_.Translate(DeviceAddress(address), Bytes(size), hal::Access::kRead));
  }

 private:
  KernelContext& context_;
};

// Argument i as the body wants it.
template <class T>
T* Data(KernelContext& context, std::size_t i) {
  return context.Buffer<T>(i).data();
}

// Argument i, a count of elements, no further than the buffers that the launch declared.
std::uint64_t Count(KernelContext& context, std::size_t i,
                    std::initializer_list<std::size_t> available) {
  return std::min<std::uint64_t>(context.Value<std::uint64_t>(i), std::min(available));
}

void Fill(KernelContext& context) {
  kernels::Fill(kAlone, Data<kernels::U32>(context, 0), context.Value<std::uint32_t>(1),
                Count(context, 2, {context.Buffer<kernels::U32>(0).size()}));
}

void Add(KernelContext& context) {
  kernels::Add(kAlone, Data<const float>(context, 0), Data<const float>(context, 1),
               Data<float>(context, 2),
               Count(context, 3,
                     {context.Buffer<float>(0).size(), context.Buffer<float>(1).size(),
                      context.Buffer<float>(2).size()}));
}

void Axpy(KernelContext& context) {
  kernels::Axpy(
      kAlone, Data<const float>(context, 0), Data<float>(context, 1), context.Value<float>(2),
      Count(context, 3, {context.Buffer<float>(0).size(), context.Buffer<float>(1).size()}));
}

void Reduce(KernelContext& context) {
  if (context.Buffer<kernels::U64>(1).empty()) return;
  kernels::Reduce<Machine>(kAlone, Data<const kernels::U32>(context, 0),
                           Data<kernels::U64>(context, 1),
                           Count(context, 2, {context.Buffer<kernels::U32>(0).size()}));
}

void Compare(KernelContext& context) {
  if (context.Buffer<kernels::U64>(2).empty()) return;
  kernels::Compare<Machine>(
      kAlone, Data<const kernels::U8>(context, 0), Data<const kernels::U8>(context, 1),
      Data<kernels::U64>(context, 2),
      Count(context, 3,
            {context.Buffer<kernels::U8>(0).size(), context.Buffer<kernels::U8>(1).size()}));
}

void Spin(KernelContext& context) {
  if (context.Buffer<kernels::U64>(0).empty()) return;
  kernels::Spin<Machine>(Data<kernels::U64>(context, 0), context.Value<std::uint64_t>(1),
                         context.Value<std::uint64_t>(2));
}

void Store(KernelContext& context) {
  static_assert(sizeof(kernels::StoredWords) == hal::kernels::kStoredWords * sizeof(kernels::U64));
  const auto value = context.Value<kernels::StoredWords>(0);
  kernels::Store(
      kAlone, value, Data<kernels::U64>(context, 1),
      Count(context, 2, {context.Buffer<kernels::U64>(1).size(), hal::kernels::kStoredWords}));
}

// The copies' first arguments, no further than the buffers that the launch declared.
struct Table {
  const kernels::Piece* pieces = nullptr;
  const kernels::Row* rows = nullptr;
  std::uint64_t count = 0;
  bool ok = true;  // no piece is of a row that there is not
};
Table TableOf(KernelContext& context, std::uint64_t direct) {
  const std::span<const kernels::Piece> pieces = context.Buffer<const kernels::Piece>(0);
  const std::span<const kernels::Row> rows = context.Buffer<const kernels::Row>(1);
  Table table{pieces.data(), rows.data(), Count(context, 2, {pieces.size()})};
  for (std::uint64_t i = 0; i < table.count; ++i) {
    table.ok &= (i < direct ? i : pieces[i].row) < rows.size();
  }
  return table;
}

void CopyTable(KernelContext& context) {
  Machine machine(context);
  const Table table = TableOf(context, 0);
  if (!table.ok) return;
  kernels::CopyTable(kAlone, kAlone, machine, table.pieces, table.rows, table.count, 0);
}

void CopyIn(KernelContext& context) {
  Machine machine(context);
  const auto direct = context.Value<std::uint64_t>(3);
  const Table table = TableOf(context, direct);
  if (!table.ok) return;
  kernels::CopyIn(
      kAlone, kAlone, machine, table.pieces, table.rows, table.count, direct,
      Data<const kernels::U64>(context, 4), Data<kernels::U64>(context, 5),
      Count(context, 6,
            {context.Buffer<kernels::U64>(4).size(), context.Buffer<kernels::U64>(5).size()}));
}

void CopyInRows(KernelContext& context) {
  static_assert(sizeof(kernels::RowValues::row) == hal::kernels::kMostRows * sizeof(kernels::Row));
  Machine machine(context);
  const auto rows = context.Value<kernels::RowValues>(0);
  const std::span<const kernels::Piece> pieces = context.Buffer<const kernels::Piece>(1);
  const auto direct = context.Value<std::uint64_t>(3);
  const std::uint64_t count = Count(context, 2, {std::max<std::size_t>(pieces.size(), direct)});
  const std::uint64_t rows_out = Count(context, 5, {context.Buffer<kernels::Row>(4).size()});
  if (direct > hal::kernels::kMostRows || rows_out > hal::kernels::kMostRows - direct) return;
  for (std::uint64_t i = direct; i < count; ++i) {
    if (pieces[i].row >= direct) return;
  }
  kernels::CopyInRows(kAlone, kAlone, machine, rows, pieces.data(), count, direct,
                      Data<kernels::Row>(context, 4), rows_out);
}

void CopyInSmall(KernelContext& context) {
  static_assert(kernels::kTogether == hal::kernels::kRowsTogether);
  Machine machine(context);
  const auto rows = context.Value<kernels::RowValues>(0);
  const auto count = context.Value<std::uint64_t>(1);
  const std::uint64_t rows_out = Count(context, 3, {context.Buffer<kernels::Row>(2).size()});
  if (count > hal::kernels::kMostRows || rows_out > hal::kernels::kMostRows - count) return;
  kernels::CopyInSmall(kAlone, kAlone, machine, rows, count, Data<kernels::Row>(context, 2),
                       rows_out);
}

void CopyOut(KernelContext& context) {
  Machine machine(context);
  const auto direct = context.Value<std::uint64_t>(3);
  const Table table = TableOf(context, direct);
  if (!table.ok || context.Buffer<kernels::U64>(4).empty()) return;
  if (context.Buffer<kernels::U64>(5).empty()) return;
  if (!kernels::CopyTable(kAlone, kAlone, machine, table.pieces, table.rows, table.count, direct)) {
    return;
  }
  // The one worker counts for each block of the grid.
  const kernels::U64 blocks = context.dims().grid[0];
  for (kernels::U64 i = 0; i < blocks; ++i) {
    kernels::MarkTogether<Machine>({i, blocks}, Data<kernels::U64>(context, 4),
                                   Data<kernels::U64>(context, 5));
  }
}

void CopyOutSmall(KernelContext& context) {
  Machine machine(context);
  const Table table = TableOf(context, context.Value<std::uint64_t>(2));
  // The one worker is each block of the grid in turn.
  const kernels::U64 blocks = context.dims().grid[0];
  if (!table.ok || context.Buffer<kernels::U64>(3).size() < blocks) return;
  if (context.Buffer<kernels::U64>(4).size() < blocks) return;
  for (kernels::U64 i = 0; i < blocks; ++i) {
    const kernels::Worker block{i, blocks};
    kernels::CopyOutSmall(block, kAlone, block, kAlone, machine, table.pieces, table.rows,
                          table.count, Data<kernels::U64>(context, 3),
                          Data<kernels::U64>(context, 4));
  }
}

void Mark(KernelContext& context) {
  const std::uint64_t marks = Count(
      context, 2, {context.Buffer<kernels::U64>(0).size(), context.Buffer<kernels::U64>(1).size()});
  const auto by = context.Value<std::uint64_t>(3);
  if (by == 0) return;
  kernels::Mark<Machine>(kAlone, Data<kernels::U64>(context, 0), Data<kernels::U64>(context, 1),
                         marks, by);
}

// Whether argument i has room for a matrix.
bool Holds(KernelContext& context, std::size_t i, std::uint64_t rows, std::uint64_t columns) {
  return columns == 0 || rows <= context.Buffer<float>(i).size() / columns;
}

void MatMul(KernelContext& context) {
  const auto m = context.Value<std::uint64_t>(4);
  const auto n = context.Value<std::uint64_t>(5);
  const auto k = context.Value<std::uint64_t>(6);
  if (!Holds(context, 0, m, k) || !Holds(context, 1, k, n) || !Holds(context, 2, m, n)) return;
  kernels::MatMul(kAlone, Data<const float>(context, 0), Data<const float>(context, 1),
                  Data<float>(context, 2), context.Value<std::uint32_t>(3), m, n, k);
}

void Relu(KernelContext& context) {
  kernels::Relu(
      kAlone, Data<const float>(context, 0), Data<float>(context, 1),
      Count(context, 2, {context.Buffer<float>(0).size(), context.Buffer<float>(1).size()}));
}

void ReluGrad(KernelContext& context) {
  kernels::ReluGrad(
      kAlone, Data<const float>(context, 0), Data<float>(context, 1),
      Count(context, 2, {context.Buffer<float>(0).size(), context.Buffer<float>(1).size()}));
}

void Mse(KernelContext& context) {
  if (context.Buffer<float>(3).empty()) return;
  kernels::Mse(kAlone, Data<const float>(context, 0), Data<const float>(context, 1),
               Data<float>(context, 2), Data<float>(context, 3), context.Value<float>(4),
               Count(context, 5,
                     {context.Buffer<float>(0).size(), context.Buffer<float>(1).size(),
                      context.Buffer<float>(2).size()}));
}

constexpr P kFillParameters[] = {P::Out(), P::Value<std::uint32_t>(), P::Value<std::uint64_t>()};
constexpr P kAddParameters[] = {P::In(), P::In(), P::Out(), P::Value<std::uint64_t>()};
constexpr P kAxpyParameters[] = {P::In(), P::InOut(), P::Value<float>(), P::Value<std::uint64_t>()};
constexpr P kReduceParameters[] = {P::In(), P::InOut(), P::Value<std::uint64_t>()};
constexpr P kCompareParameters[] = {P::In(), P::In(), P::InOut(), P::Value<std::uint64_t>()};
constexpr P kSpinParameters[] = {P::InOut(), P::Value<std::uint64_t>(), P::Value<std::uint64_t>()};
constexpr P kStoreParameters[] = {P::Value<kernels::StoredWords>(), P::Out(),
                                  P::Value<std::uint64_t>()};
constexpr P kCopyTableParameters[] = {P::In(), P::In(), P::Value<std::uint64_t>()};
constexpr P kCopyInParameters[] = {
    P::In(), P::In(),  P::Value<std::uint64_t>(), P::Value<std::uint64_t>(),
    P::In(), P::Out(), P::Value<std::uint64_t>()};
constexpr P kCopyOutParameters[] = {
    P::In(), P::In(), P::Value<std::uint64_t>(), P::Value<std::uint64_t>(), P::InOut(), P::Out()};
constexpr P kCopyInRowsParameters[] = {
    P::Value<kernels::RowValues>(), P::In(),  P::Value<std::uint64_t>(),
    P::Value<std::uint64_t>(),      P::Out(), P::Value<std::uint64_t>()};
constexpr P kCopyInSmallParameters[] = {P::Value<kernels::RowValues>(), P::Value<std::uint64_t>(),
                                        P::Out(), P::Value<std::uint64_t>()};
constexpr P kCopyOutSmallParameters[] = {P::In(), P::In(), P::Value<std::uint64_t>(), P::InOut(),
                                         P::Out()};
constexpr P kMarkParameters[] = {P::InOut(), P::Out(), P::Value<std::uint64_t>(),
                                 P::Value<std::uint64_t>()};
constexpr P kMatMulParameters[] = {P::In(),
                                   P::In(),
                                   P::Out(),
                                   P::Value<std::uint32_t>(),
                                   P::Value<std::uint64_t>(),
                                   P::Value<std::uint64_t>(),
                                   P::Value<std::uint64_t>()};
constexpr P kReluParameters[] = {P::In(), P::Out(), P::Value<std::uint64_t>()};
constexpr P kReluGradParameters[] = {P::In(), P::InOut(), P::Value<std::uint64_t>()};
constexpr P kMseParameters[] = {P::In(),  P::In(),           P::Out(),
                                P::Out(), P::Value<float>(), P::Value<std::uint64_t>()};

constexpr KernelDefinition kDefinitions[] = {
    {hal::kernels::kFill, Fill, kFillParameters},
    {hal::kernels::kAdd, Add, kAddParameters},
    {hal::kernels::kAxpy, Axpy, kAxpyParameters},
    {hal::kernels::kReduce, Reduce, kReduceParameters},
    {hal::kernels::kCompare, Compare, kCompareParameters},
    {hal::kernels::kSpin, Spin, kSpinParameters},
    {hal::kernels::kStore, Store, kStoreParameters},
    {hal::kernels::kCopyTable, CopyTable, kCopyTableParameters},
    {hal::kernels::kCopyIn, CopyIn, kCopyInParameters},
    {hal::kernels::kCopyInRows, CopyInRows, kCopyInRowsParameters},
    {hal::kernels::kCopyInSmall, CopyInSmall, kCopyInSmallParameters},
    {hal::kernels::kCopyOut, CopyOut, kCopyOutParameters},
    {hal::kernels::kCopyOutSmall, CopyOutSmall, kCopyOutSmallParameters},
    {hal::kernels::kMark, Mark, kMarkParameters},
    {hal::kernels::kMatMul, MatMul, kMatMulParameters},
    {hal::kernels::kRelu, Relu, kReluParameters},
    {hal::kernels::kReluGrad, ReluGrad, kReluGradParameters},
    {hal::kernels::kMse, Mse, kMseParameters},
};

}  // namespace

std::span<const KernelDefinition> StandardKernelDefinitions() { return kDefinitions; }

}  // namespace keel::sim
