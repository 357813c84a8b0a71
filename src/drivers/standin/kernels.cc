// Modules, and the kernels that the stand-in can run: the standard ones, with pointers that are
// plain values, as they are to a real device.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "drivers/shared/standard_kernels_body.h"
#include "drivers/standin/process.h"
#include "keel/hal/standard_kernels.h"

namespace keel::standin {
namespace {

using kernels::U32;
using kernels::U64;
using kernels::U8;
using P = sim::KernelParameter;

// The whole grid is one worker.
constexpr kernels::Worker kAlone{0, 1};

class Machine {
 public:
  explicit Machine(sim::KernelContext& context) : context_(context) {}

  static void Add(U64* to, U64 value) { std::atomic_ref(*to).fetch_add(value); }
  static void Publish(U64* to, U64 value) {
    std::atomic_ref(*to).store(value, std::memory_order_release);
  }
  static U64 Load(const U64* from) {
    return std::atomic_ref(*const_cast<U64*>(from)).load(std::memory_order_acquire);
  }
  static U64 Fetch(const U64* from) { return *from; }
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
  static U64 Arrive(U64* at) { return std::atomic_ref(*at).fetch_add(1) + 1; }
  static U64 NowMicros() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<U64>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
  }
  static void Pause() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

  static constexpr bool kRefuses = true;
  U8* Write(U64 address, U64 size) { return At(address, size, hal::Access::kWrite); }
  const U8* Read(U64 address, U64 size) { return At(address, size, hal::Access::kRead); }

  // Argument i is the address of `count` elements; null where the device may not do that.
  template <class T>
  T* Argument(std::size_t i, U64 count, hal::Access access) {
    U64 size = 0;
    // More than there are addresses is not mapped either.
    if (__builtin_mul_overflow(count, sizeof(T), &size)) size = ~U64{0};
    return reinterpret_cast<T*>(At(context_.Value<U64>(i), size, access));
  }

 private:
  U8* At(U64 address, U64 size, hal::Access access) {
    return reinterpret_cast<U8*>(context_.Translate(DeviceAddress(address), Bytes(size), access));
  }

  sim::KernelContext& context_;
};

void Fill(sim::KernelContext& context) {
  Machine machine(context);
  const auto n = context.Value<U64>(2);
  if (n == 0) return;
  U32* const out = machine.Argument<U32>(0, n, hal::Access::kWrite);
  if (out != nullptr) kernels::Fill(kAlone, out, context.Value<U32>(1), n);
}

void Add(sim::KernelContext& context) {
  Machine machine(context);
  const auto n = context.Value<U64>(3);
  if (n == 0) return;
  const float* const a = machine.Argument<float>(0, n, hal::Access::kRead);
  const float* const b = machine.Argument<float>(1, n, hal::Access::kRead);
  float* const c = machine.Argument<float>(2, n, hal::Access::kWrite);
  if (a != nullptr && b != nullptr && c != nullptr) kernels::Add(kAlone, a, b, c, n);
}

void Axpy(sim::KernelContext& context) {
  Machine machine(context);
  const auto n = context.Value<U64>(3);
  if (n == 0) return;
  const float* const x = machine.Argument<float>(0, n, hal::Access::kRead);
  float* const y = machine.Argument<float>(1, n, hal::Access::kReadWrite);
  if (x != nullptr && y != nullptr) kernels::Axpy(kAlone, x, y, context.Value<float>(2), n);
}

void Reduce(sim::KernelContext& context) {
  Machine machine(context);
  const auto n = context.Value<U64>(2);
  if (n == 0) return;
  const U32* const x = machine.Argument<U32>(0, n, hal::Access::kRead);
  U64* const total = machine.Argument<U64>(1, 1, hal::Access::kReadWrite);
  if (x != nullptr && total != nullptr) kernels::Reduce<Machine>(kAlone, x, total, n);
}

void Compare(sim::KernelContext& context) {
  Machine machine(context);
  const auto n = context.Value<U64>(3);
  if (n == 0) return;
  const U8* const a = machine.Argument<U8>(0, n, hal::Access::kRead);
  const U8* const b = machine.Argument<U8>(1, n, hal::Access::kRead);
  U64* const differing = machine.Argument<U64>(2, 1, hal::Access::kReadWrite);
  if (a != nullptr && b != nullptr && differing != nullptr) {
    kernels::Compare<Machine>(kAlone, a, b, differing, n);
  }
}

void Spin(sim::KernelContext& context) {
  Machine machine(context);
  const U64* const flag = machine.Argument<U64>(0, 1, hal::Access::kRead);
  if (flag == nullptr) return;
  kernels::Spin<Machine>(flag, context.Value<U64>(1), context.Value<U64>(2));
}

void Store(sim::KernelContext& context) {
  Machine machine(context);
  const U64 n = std::min<U64>(context.Value<U64>(2), hal::kernels::kStoredWords);
  if (n == 0) return;
  U64* const to = machine.Argument<U64>(1, n, hal::Access::kWrite);
  if (to != nullptr) kernels::Store(kAlone, context.Value<kernels::StoredWords>(0), to, n);
}

// The copies' first arguments; no rows where the device may not read them.
struct Table {
  const kernels::Piece* pieces = nullptr;
  const kernels::Row* rows = nullptr;
  U64 count = 0;
};
Table TableOf(sim::KernelContext& context, Machine& machine, U64 direct) {
  Table table{.count = context.Value<U64>(2)};
  table.pieces = machine.Argument<kernels::Piece>(0, table.count, hal::Access::kRead);
  if (table.pieces == nullptr) return table;
  U64 rows = 0;
  for (U64 i = 0; i < table.count; ++i) {
    rows = std::max(rows, (i < direct ? i : table.pieces[i].row) + 1);
  }
  table.rows = machine.Argument<kernels::Row>(1, rows, hal::Access::kRead);
  return table;
}

void CopyTable(sim::KernelContext& context) {
  Machine machine(context);
  if (context.Value<U64>(2) == 0) return;
  const Table table = TableOf(context, machine, 0);
  if (table.rows == nullptr) return;
  kernels::CopyTable(kAlone, kAlone, machine, table.pieces, table.rows, table.count, 0);
}

void CopyIn(sim::KernelContext& context) {
  Machine machine(context);
  const auto direct = context.Value<U64>(3);
  const auto words = context.Value<U64>(6);
  if (context.Value<U64>(2) == 0) return;
  const Table table = TableOf(context, machine, direct);
  if (table.rows == nullptr) return;
  const U64* far = nullptr;
  U64* near = nullptr;
  if (words != 0) {
    far = machine.Argument<U64>(4, words, hal::Access::kRead);
    near = machine.Argument<U64>(5, words, hal::Access::kWrite);
    if (far == nullptr || near == nullptr) return;
  }
  kernels::CopyIn(kAlone, kAlone, machine, table.pieces, table.rows, table.count, direct, far, near,
                  words);
}

void CopyInRows(sim::KernelContext& context) {
  Machine machine(context);
  const auto rows = context.Value<kernels::RowValues>(0);
  const auto count = context.Value<U64>(2);
  const auto direct = context.Value<U64>(3);
  const auto rows_out = context.Value<U64>(5);
  const kernels::Piece* pieces = nullptr;
  kernels::Row* near = nullptr;
  if (count > direct) {
    pieces = machine.Argument<kernels::Piece>(1, count, hal::Access::kRead);
    if (pieces == nullptr) return;
  }
  if (rows_out != 0) {
    near = machine.Argument<kernels::Row>(4, rows_out, hal::Access::kWrite);
    if (near == nullptr) return;
  }
  kernels::CopyInRows(kAlone, kAlone, machine, rows, pieces, count, direct, near, rows_out);
}

void CopyInSmall(sim::KernelContext& context) {
  Machine machine(context);
  const auto rows = context.Value<kernels::RowValues>(0);
  const auto rows_out = context.Value<U64>(3);
  kernels::Row* near = nullptr;
  if (rows_out != 0) {
    near = machine.Argument<kernels::Row>(2, rows_out, hal::Access::kWrite);
    if (near == nullptr) return;
  }
  kernels::CopyInSmall(kAlone, kAlone, machine, rows, context.Value<U64>(1), near, rows_out);
}

void CopyOut(sim::KernelContext& context) {
  Machine machine(context);
  const auto direct = context.Value<U64>(3);
  if (context.Value<U64>(2) == 0) return;
  const Table table = TableOf(context, machine, direct);
  U64* const arrived = machine.Argument<U64>(4, 1, hal::Access::kReadWrite);
  U64* const seen = machine.Argument<U64>(5, 1, hal::Access::kWrite);
  if (table.rows == nullptr || arrived == nullptr || seen == nullptr) return;
  if (!kernels::CopyTable(kAlone, kAlone, machine, table.pieces, table.rows, table.count, direct)) {
    return;
  }
  // The one worker counts for each block of the grid.
  const U64 blocks = context.dims().grid[0];
  for (U64 i = 0; i < blocks; ++i) {
    kernels::MarkTogether<Machine>({i, blocks}, arrived, seen);
  }
}

void CopyOutSmall(sim::KernelContext& context) {
  Machine machine(context);
  if (context.Value<U64>(2) == 0) return;
  const Table table = TableOf(context, machine, context.Value<U64>(2));
  // The one worker is each block of the grid in turn.
  const U64 blocks = context.dims().grid[0];
  U64* const counts = machine.Argument<U64>(3, blocks, hal::Access::kReadWrite);
  U64* const seen = machine.Argument<U64>(4, blocks, hal::Access::kWrite);
  if (table.rows == nullptr || counts == nullptr || seen == nullptr) return;
  for (U64 i = 0; i < blocks; ++i) {
    const kernels::Worker block{i, blocks};
    kernels::CopyOutSmall(block, kAlone, block, kAlone, machine, table.pieces, table.rows,
                          table.count, counts, seen);
  }
}

void Mark(sim::KernelContext& context) {
  Machine machine(context);
  const auto marks = context.Value<U64>(2);
  const auto by = context.Value<U64>(3);
  if (marks == 0 || by == 0) return;
  U64* const counts = machine.Argument<U64>(0, marks, hal::Access::kReadWrite);
  U64* const seen = machine.Argument<U64>(1, marks, hal::Access::kWrite);
  if (counts == nullptr || seen == nullptr) return;
  kernels::Mark<Machine>(kAlone, counts, seen, marks, by);
}

// More than there are addresses where it overflows.
U64 Product(U64 rows, U64 columns) {
  U64 product = 0;
  return __builtin_mul_overflow(rows, columns, &product) ? ~U64{0} : product;
}

void MatMul(sim::KernelContext& context) {
  Machine machine(context);
  const auto m = context.Value<U64>(4);
  const auto n = context.Value<U64>(5);
  const auto k = context.Value<U64>(6);
  if (m == 0 || n == 0) return;
  const float* const a = machine.Argument<float>(0, Product(m, k), hal::Access::kRead);
  const float* const b = machine.Argument<float>(1, Product(k, n), hal::Access::kRead);
  float* const c = machine.Argument<float>(2, Product(m, n), hal::Access::kWrite);
  if (c == nullptr || (k != 0 && (a == nullptr || b == nullptr))) return;
  kernels::MatMul(kAlone, a, b, c, context.Value<U32>(3), m, n, k);
}

void Relu(sim::KernelContext& context) {
  Machine machine(context);
  const auto n = context.Value<U64>(2);
  if (n == 0) return;
  const float* const x = machine.Argument<float>(0, n, hal::Access::kRead);
  float* const y = machine.Argument<float>(1, n, hal::Access::kWrite);
  if (x != nullptr && y != nullptr) kernels::Relu(kAlone, x, y, n);
}

void ReluGrad(sim::KernelContext& context) {
  Machine machine(context);
  const auto n = context.Value<U64>(2);
  if (n == 0) return;
  const float* const y = machine.Argument<float>(0, n, hal::Access::kRead);
  float* const gradient = machine.Argument<float>(1, n, hal::Access::kReadWrite);
  if (y != nullptr && gradient != nullptr) kernels::ReluGrad(kAlone, y, gradient, n);
}

void Mse(sim::KernelContext& context) {
  Machine machine(context);
  const auto n = context.Value<U64>(5);
  if (n == 0) return;
  const float* const y = machine.Argument<float>(0, n, hal::Access::kRead);
  const float* const target = machine.Argument<float>(1, n, hal::Access::kRead);
  float* const gradient = machine.Argument<float>(2, n, hal::Access::kWrite);
  float* const loss = machine.Argument<float>(3, 1, hal::Access::kWrite);
  if (y == nullptr || target == nullptr || gradient == nullptr || loss == nullptr) return;
  kernels::Mse(kAlone, y, target, gradient, loss, context.Value<float>(4), n);
}

constexpr P kWord = P::Value<U64>();
constexpr P kHalf = P::Value<U32>();
constexpr P kFillParameters[] = {kWord, kHalf, kWord};
constexpr P kAddParameters[] = {kWord, kWord, kWord, kWord};
constexpr P kAxpyParameters[] = {kWord, kWord, kHalf, kWord};
constexpr P kThreeWords[] = {kWord, kWord, kWord};
constexpr P kCompareParameters[] = {kWord, kWord, kWord, kWord};
constexpr P kStoreParameters[] = {P::Value<kernels::StoredWords>(), kWord, kWord};
constexpr P kCopyInParameters[] = {kWord, kWord, kWord, kWord, kWord, kWord, kWord};
constexpr P kCopyOutParameters[] = {kWord, kWord, kWord, kWord, kWord, kWord};
constexpr P kCopyInRowsParameters[] = {
    P::Value<kernels::RowValues>(), kWord, kWord, kWord, kWord, kWord};
constexpr P kCopyInSmallParameters[] = {P::Value<kernels::RowValues>(), kWord, kWord, kWord};
constexpr P kCopyOutSmallParameters[] = {kWord, kWord, kWord, kWord, kWord};
constexpr P kMarkParameters[] = {kWord, kWord, kWord, kWord};
constexpr P kMatMulParameters[] = {kWord, kWord, kWord, kHalf, kWord, kWord, kWord};
constexpr P kMseParameters[] = {kWord, kWord, kWord, kWord, kHalf, kWord};

constexpr sim::KernelDefinition kDefinitions[] = {
    {hal::kernels::kFill, Fill, kFillParameters},
    {hal::kernels::kAdd, Add, kAddParameters},
    {hal::kernels::kAxpy, Axpy, kAxpyParameters},
    {hal::kernels::kReduce, Reduce, kThreeWords},
    {hal::kernels::kCompare, Compare, kCompareParameters},
    {hal::kernels::kSpin, Spin, kThreeWords},
    {hal::kernels::kStore, Store, kStoreParameters},
    {hal::kernels::kCopyTable, CopyTable, kThreeWords},
    {hal::kernels::kCopyIn, CopyIn, kCopyInParameters},
    {hal::kernels::kCopyInRows, CopyInRows, kCopyInRowsParameters},
    {hal::kernels::kCopyInSmall, CopyInSmall, kCopyInSmallParameters},
    {hal::kernels::kCopyOut, CopyOut, kCopyOutParameters},
    {hal::kernels::kCopyOutSmall, CopyOutSmall, kCopyOutSmallParameters},
    {hal::kernels::kMark, Mark, kMarkParameters},
    {hal::kernels::kMatMul, MatMul, kMatMulParameters},
    {hal::kernels::kRelu, Relu, kThreeWords},
    {hal::kernels::kReluGrad, ReluGrad, kThreeWords},
    {hal::kernels::kMse, Mse, kMseParameters},
};

}  // namespace

Status RegisterStandinKernels() { return sim::RegisterKernels(kKernelSet, kDefinitions); }

bool HasBody(const KernelEntry& entry) {
  const auto* definition =
      std::find_if(std::begin(kDefinitions), std::end(kDefinitions),
                   [&](const sim::KernelDefinition& one) { return one.name == entry.name; });
  return definition != std::end(kDefinitions) &&
         std::equal(definition->parameters.begin(), definition->parameters.end(),
                    entry.parameter_sizes.begin(), entry.parameter_sizes.end(),
                    [](const P& parameter, std::uint32_t size) { return parameter.size == size; });
}

Cause LoadModule(void** module, std::span<const KernelEntry> kernels) {
  Process& process = Process::Get();
  Context* context = nullptr;
  std::shared_ptr<hal::Device> device;
  if (const Cause cause = process.Current(&context, &device); cause != Cause::kOk) return cause;
  const auto loaded = device->LoadModule(hal::ModuleSource::Registered(std::string(kKernelSet)));
  if (!loaded.ok()) return Process::Judge(*context, loaded.status(), Cause::kIllegalState);
  auto object = std::make_shared<ModuleObject>();
  object->context = context;
  object->handle = *loaded;
  for (const KernelEntry& entry : kernels) {
    auto kernel = std::make_shared<KernelObject>();
    kernel->context = context;
    kernel->name = entry.name;
    kernel->sizes = entry.parameter_sizes;
    if (HasBody(entry)) {
      const auto found = device->FindKernel(*loaded, entry.name);
      if (!found.ok()) return Process::Judge(*context, found.status(), Cause::kIllegalState);
      kernel->handle = *found;
    }
    object->kernels[entry.name] = process.Insert(process.kernels, std::move(kernel));
  }
  *module = process.Insert(process.modules, std::move(object));
  return Cause::kOk;
}

Cause UnloadModule(void* module) {
  Process& process = Process::Get();
  std::shared_ptr<ModuleObject> object;
  std::shared_ptr<hal::Device> device;
  Cause cause = process.Find(process.modules, module, &object, &device);
  if (cause == Cause::kOk) {
    cause = Process::Judge(*object->context, device->UnloadModule(object->handle),
                           Cause::kIllegalState);
  }
  if (cause != Cause::kOk) return cause;
  for (const auto& [name, kernel] : object->kernels) process.Erase(process.kernels, kernel);
  process.Erase(process.modules, module);
  return cause;
}

Cause FindKernel(void** kernel, void* module, std::string_view name) {
  Process& process = Process::Get();
  std::shared_ptr<ModuleObject> object;
  const Cause cause = process.Find(process.modules, module, &object);
  if (cause != Cause::kOk) return cause;
  const auto found = object->kernels.find(name);
  if (found == object->kernels.end()) return Cause::kNotFound;
  *kernel = found->second;
  return Cause::kOk;
}

}  // namespace keel::standin
