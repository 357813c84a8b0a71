// The kernels of keel/hal/standard_kernels.h for the simulated device.

#include "keel/hal/standard_kernels.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>

#include "drivers/sim/kernel_registry.h"

namespace keel::sim {
namespace {

using P = KernelParameter;

void Fill(KernelContext& context) {
  const auto out = context.Buffer<std::uint32_t>(0);
  const auto n = std::min<std::uint64_t>(context.Value<std::uint64_t>(2), out.size());
  std::fill_n(out.begin(), n, context.Value<std::uint32_t>(1));
}

void Add(KernelContext& context) {
  const auto a = context.Buffer<const float>(0);
  const auto b = context.Buffer<const float>(1);
  const auto c = context.Buffer<float>(2);
  const auto n = std::min({context.Value<std::uint64_t>(3), a.size(), b.size(), c.size()});
  for (std::uint64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}

void Axpy(KernelContext& context) {
  const auto x = context.Buffer<const float>(0);
  const auto y = context.Buffer<float>(1);
  const float a = context.Value<float>(2);
  const auto n = std::min({context.Value<std::uint64_t>(3), x.size(), y.size()});
  for (std::uint64_t i = 0; i < n; ++i) y[i] += a * x[i];
}

void Reduce(KernelContext& context) {
  const auto x = context.Buffer<const std::uint32_t>(0);
  const auto total = context.Buffer<std::uint64_t>(1);
  const auto n = std::min<std::uint64_t>(context.Value<std::uint64_t>(2), x.size());
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < n; ++i) sum += x[i];
  if (!total.empty()) std::atomic_ref(total[0]).fetch_add(sum);
}

void Compare(KernelContext& context) {
  const auto a = context.Buffer<const unsigned char>(0);
  const auto b = context.Buffer<const unsigned char>(1);
  const auto differing = context.Buffer<std::uint64_t>(2);
  const auto n = std::min({context.Value<std::uint64_t>(3), a.size(), b.size()});
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < n; ++i) count += a[i] != b[i] ? 1 : 0;
  if (!differing.empty()) std::atomic_ref(differing[0]).fetch_add(count);
}

void Spin(KernelContext& context) {
  const auto flag = context.Buffer<std::uint64_t>(0);
  const auto value = context.Value<std::uint64_t>(1);
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::microseconds(context.Value<std::uint64_t>(2));
  if (flag.empty()) return;
  while (std::atomic_ref(flag[0]).load(std::memory_order_acquire) != value &&
         std::chrono::steady_clock::now() < end) {
    // A real device's kernel would burn a core of its own; this one shares the host's.
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void CopyTable(KernelContext& context) {
  const auto table = context.Buffer<const std::uint64_t>(0);
  const auto rows = std::min<std::uint64_t>(context.Value<std::uint64_t>(1), table.size() / 3);
  for (std::uint64_t row = 0; row < rows; ++row) {
    const Bytes size(table[3 * row + 2]);
    if (size.empty()) continue;
    std::byte* to =
        context.Translate(DeviceAddress(table[3 * row]), size, hal::Access::kWrite);
    const std::byte* from =
        context.Translate(DeviceAddress(table[3 * row + 1]), size, hal::Access::kRead);
    if (to == nullptr || from == nullptr) return;
    std::memcpy(to, from, size.count());
  }
}

constexpr P kFillParameters[] = {P::Out(), P::Value<std::uint32_t>(), P::Value<std::uint64_t>()};
constexpr P kAddParameters[] = {P::In(), P::In(), P::Out(), P::Value<std::uint64_t>()};
constexpr P kAxpyParameters[] = {P::In(), P::InOut(), P::Value<float>(),
                                 P::Value<std::uint64_t>()};
constexpr P kReduceParameters[] = {P::In(), P::InOut(), P::Value<std::uint64_t>()};
constexpr P kCompareParameters[] = {P::In(), P::In(), P::InOut(), P::Value<std::uint64_t>()};
constexpr P kSpinParameters[] = {P::InOut(), P::Value<std::uint64_t>(), P::Value<std::uint64_t>()};
constexpr P kCopyTableParameters[] = {P::In(), P::Value<std::uint64_t>()};

constexpr KernelDefinition kDefinitions[] = {
    {hal::kernels::kFill, Fill, kFillParameters},
    {hal::kernels::kAdd, Add, kAddParameters},
    {hal::kernels::kAxpy, Axpy, kAxpyParameters},
    {hal::kernels::kReduce, Reduce, kReduceParameters},
    {hal::kernels::kCompare, Compare, kCompareParameters},
    {hal::kernels::kSpin, Spin, kSpinParameters},
    {hal::kernels::kCopyTable, CopyTable, kCopyTableParameters},
};

}  // namespace

std::span<const KernelDefinition> StandardKernelDefinitions() { return kDefinitions; }

}  // namespace keel::sim
