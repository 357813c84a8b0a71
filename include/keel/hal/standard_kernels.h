// The kernels that Keel brings for every device that runs kernels: for its demo, its benchmarks
// and its conformance suite. Device::StandardKernels() says where they are.
//
// Arguments in order; n counts elements. A launch of any grid and block covers all n (each kernel
// strides over the grid), so one launch with a small grid is correct, if not fast.
#pragma once

#include <cstddef>
#include <string_view>

namespace keel::hal::kernels {

// (out u32*, u32 value, u64 n): out[i] = value
inline constexpr std::string_view kFill = "keel_fill";
// (in f32* a, in f32* b, out f32* c, u64 n): c[i] = a[i] + b[i]
inline constexpr std::string_view kAdd = "keel_add";
// (in f32* x, inout f32* y, f32 a, u64 n): y[i] += a * x[i]
inline constexpr std::string_view kAxpy = "keel_axpy";
// (in u32* x, inout u64* total, u64 n): *total += the sum of x[i]
inline constexpr std::string_view kReduce = "keel_reduce";
// (in u8* a, in u8* b, inout u64* differing, u64 n): *differing += how many bytes differ
inline constexpr std::string_view kCompare = "keel_compare";
// (inout u64* flag, u64 value, u64 limit_us): waits until *flag == value or the time is up; used
// to keep a stream busy for a bounded time. The flag may be pinned host memory.
inline constexpr std::string_view kSpin = "keel_spin";
// (u64[kStoredWords] value, out u64* to, u64 n): to[i] = value[i], for n of at most kStoredWords.
// Its arguments are as large as those of a launch may be.
inline constexpr std::string_view kStore = "keel_store";
inline constexpr std::size_t kStoredWords = 510;
// (in u64* pieces, in u64* rows, u64 n): n pieces of (row, offset, bytes), each of a row of
// (destination, source): copies each piece of each row whose destination is not 0. A block of the
// grid copies a piece at a time. The rows may be pinned host memory.
inline constexpr std::string_view kCopyTable = "keel_copy_table";
// (in u64* pieces, in u64* rows, u64 n, u64 direct, in u64* far, out u64* near, u64 words): copies
// as keel_copy_table does, and near[i] = far[i] by its last block, which is one more than there are
// pieces if nothing is to wait for it. Piece i must be of row i for i < direct: both are looked up
// at once then.
inline constexpr std::string_view kCopyIn = "keel_copy_in";
// (rows, in u64* pieces, u64 n, u64 direct, out u64* near, u64 rows_out): copies likewise, with
// rows that are a value: kMostRows of (u64 destination, u64 source), then kMostRows u32, the size
// of piece i for i < direct, which is of row i from its beginning and is not looked up in `pieces`.
// And near[i] = row `direct` + i, for rows_out of them, by the last block.
inline constexpr std::string_view kCopyInRows = "keel_copy_in_rows";
inline constexpr std::size_t kMostRows = 96;
// (rows, u64 n, out u64* near, u64 rows_out): as keel_copy_in_rows does, n rows of a piece each,
// which is less than 2 GiB. A block is teams of kTeamThreads, if its threads can be divided into
// such, and a team copies kRowsTogether rows at a time: fast for rows of a few elements to a
// thread. The last team leaves the other rows near, which is one too many if nothing is to wait for
// it.
inline constexpr std::string_view kCopyInSmall = "keel_copy_in_small";
inline constexpr std::size_t kRowsTogether = 4;
inline constexpr std::size_t kTeamThreads = 256;
// (in u64* pieces, in u64* rows, u64 n, u64 direct, inout u64* count, out u64* seen): copies as
// keel_copy_in does. Each block that has copied adds 1 to *count, and the one that makes it a
// multiple of the blocks writes *seen = *count / blocks, after everything before it is visible. n
// is not 0.
inline constexpr std::string_view kCopyOut = "keel_copy_out";
// (in u64* pieces, in u64* rows, u64 n, inout u64* counts, out u64* seen): piece i is all of row i,
// and teams copy them as in keel_copy_in_small. Block b writes seen[b] = counts[b] = counts[b] + 1
// when it has copied: all is done, and visible, when all blocks have. Each waits for none.
inline constexpr std::string_view kCopyOutSmall = "keel_copy_out_small";
// (inout u64* counts, out u64* seen, u64 marks, u64 by): counts[i] += by, and seen[i] = counts[i] /
// by after everything before it is visible, for i < marks: one more, as keel_copy_out marks with
// `by` blocks, and keel_copy_out_small with as many blocks as marks where `by` is 1. `seen` may be
// pinned host memory, which the host then reads without a call.
inline constexpr std::string_view kMark = "keel_mark";
// A small neural network's. Sums are made in the order of the elements, each by one worker, and no
// multiplication is fused with an addition: the same bits on every device and for every grid.
//
// (in f32* a, in f32* b, out f32* c, u32 transposed, u64 m, u64 n, u64 k): c = a * b, where a has m
// rows and k columns, b has k and n, and each is stored row by row; column by column if
// `transposed` has kTransposedA or kTransposedB
inline constexpr std::string_view kMatMul = "keel_matmul";
inline constexpr unsigned kTransposedA = 1;
inline constexpr unsigned kTransposedB = 2;
// (in f32* x, out f32* y, u64 n): y[i] = max(x[i], 0)
inline constexpr std::string_view kRelu = "keel_relu";
// (in f32* y, inout f32* gradient, u64 n): gradient[i] = 0 where y[i] is not above 0
inline constexpr std::string_view kReluGrad = "keel_relu_grad";
// (in f32* y, in f32* target, out f32* gradient, out f32* loss, f32 scale, u64 n): *loss = scale *
// the sum of (y[i] - target[i])^2, and gradient[i] = that by y[i]. The mean with a scale of 1 / n
inline constexpr std::string_view kMse = "keel_mse";

}  // namespace keel::hal::kernels
