// A layer of a network with many sets of weights, of which a request uses one (a mixture of
// experts): y = max(x * w[expert], 0).
//
// (in f32 x[m][k], in f32 w[experts][k][n], out f32 y[m][n]; u64 expert)
// Kernel 0 is hal::kernels::kMatMul, kernel 1 hal::kernels::kRelu.
#include "keel/hal/orchestration.h"
#include "keel/task/arguments.h"

namespace {

using keel::Bytes;
using keel::DeviceAddress;
using keel::hal::KernelArg;
using keel::hal::LaunchDims;
using keel::task::ArgumentsView;
using keel::task::DataType;
using keel::task::Tensor;

constexpr int kInvalidArgument = 3;  // of StatusCode

KernelArg Out(const Tensor& tensor) {
  return KernelArg::Out(DeviceAddress(tensor.address), tensor.size());
}

}  // namespace

extern "C" [[gnu::visibility("default")]] int keel_orchestrate(keel::hal::OrchestrationCall* call) {
  const ArgumentsView view(call->arguments);
  if (view.tensor_count() != 3 || view.scalar_count() != 1) {
    return call->Fail(kInvalidArgument, "a layer takes x, w, y and the number of an expert");
  }
  const Tensor x = view.tensor(0);
  const Tensor w = view.tensor(1);
  const Tensor y = view.tensor(2);
  const auto expert = view.scalar<std::uint64_t>(0);
  const std::uint64_t m = x.shape[0];
  const std::uint64_t k = x.shape[1];
  const std::uint64_t n = y.shape[1];
  const bool floats =
      x.type == DataType::kFloat32 && w.type == DataType::kFloat32 && y.type == DataType::kFloat32;
  if (!floats || x.rank != 2 || w.rank != 3 || y.rank != 2 || w.shape[1] != k || w.shape[2] != n ||
      y.shape[0] != m) {
    return call->Fail(kInvalidArgument,
                      "a layer takes float32 x[m][k], w[experts][k][n] and y[m][n]");
  }
  if (expert >= w.shape[0]) return call->Fail(kInvalidArgument, "there is no such expert");

  constexpr std::uint32_t kBlock = 256;
  LaunchDims dims;
  dims.grid[0] = static_cast<std::uint32_t>((m * n + kBlock - 1) / kBlock);
  dims.block[0] = kBlock;
  const Bytes size(k * n * sizeof(float));
  const KernelArg product[] = {
      KernelArg::In(DeviceAddress(x.address), x.size()),
      KernelArg::In(DeviceAddress(w.address + expert * size.count()), size),
      Out(y),
      KernelArg::Value(std::uint32_t{0}),
      KernelArg::Value(m),
      KernelArg::Value(n),
      KernelArg::Value(k)};
  if (const int code = call->Launch(0, dims, product); code != 0) return code;
  // In place: each element is read by whoever writes it.
  const KernelArg rectified[] = {KernelArg::In(DeviceAddress(y.address), y.size()), Out(y),
                                 KernelArg::Value(m * n)};
  return call->Launch(1, dims, rectified);
}
