// The standard kernels as a device's compiler sees them: entry points over standard_kernels_body.h.
// The including file defines Machine and what says which worker the calling thread is: This() of
// all, Here() of its group, and Group(), which of the groups that is.
#pragma once

#define KEEL_GLOBAL extern "C" __attribute__((global))

using keel::kernels::U32;
using keel::kernels::U64;
using keel::kernels::U8;

// A group is several teams if its threads can be divided into such, and one otherwise.
constexpr U64 kTeam = 256;
__attribute__((device)) inline keel::kernels::Worker Team() {
  const keel::kernels::Worker group = Group();
  const keel::kernels::Worker here = Here();
  if (here.count % kTeam != 0) return group;
  const U64 teams = here.count / kTeam;
  return {group.index * teams + here.index / kTeam, group.count * teams};
}
__attribute__((device)) inline keel::kernels::Worker Mate() {
  const keel::kernels::Worker here = Here();
  if (here.count % kTeam != 0) return here;
  return {here.index % kTeam, kTeam};
}

KEEL_GLOBAL void keel_fill(U32* out, U32 value, U64 n) {
  keel::kernels::Fill(This(), out, value, n);
}

KEEL_GLOBAL void keel_add(const float* a, const float* b, float* c, U64 n) {
  keel::kernels::Add(This(), a, b, c, n);
}

KEEL_GLOBAL void keel_axpy(const float* x, float* y, float a, U64 n) {
  keel::kernels::Axpy(This(), x, y, a, n);
}

KEEL_GLOBAL void keel_reduce(const U32* x, U64* total, U64 n) {
  keel::kernels::Reduce<Machine>(This(), x, total, n);
}

KEEL_GLOBAL void keel_compare(const U8* a, const U8* b, U64* differing, U64 n) {
  keel::kernels::Compare<Machine>(This(), a, b, differing, n);
}

KEEL_GLOBAL void keel_spin(U64* flag, U64 value, U64 limit_us) {
  keel::kernels::Spin<Machine>(flag, value, limit_us);
}

KEEL_GLOBAL void keel_store(keel::kernels::StoredWords value, U64* to, U64 n) {
  keel::kernels::Store(This(), value, to, n);
}

KEEL_GLOBAL void keel_copy_table(const keel::kernels::Piece* pieces, const keel::kernels::Row* rows,
                                 U64 n) {
  Machine machine;
  keel::kernels::CopyTable(Group(), Here(), machine, pieces, rows, n, 0);
}

KEEL_GLOBAL void keel_copy_in(const keel::kernels::Piece* pieces, const keel::kernels::Row* rows,
                              U64 n, U64 direct, const U64* far, U64* near, U64 words) {
  Machine machine;
  keel::kernels::CopyIn(Group(), Here(), machine, pieces, rows, n, direct, far, near, words);
}

KEEL_GLOBAL void keel_copy_in_rows(keel::kernels::RowValues rows,
                                   const keel::kernels::Piece* pieces, U64 n, U64 direct,
                                   keel::kernels::Row* near, U64 rows_out) {
  Machine machine;
  keel::kernels::CopyInRows(Group(), Here(), machine, rows, pieces, n, direct, near, rows_out);
}

KEEL_GLOBAL void keel_copy_in_small(keel::kernels::RowValues rows, U64 n, keel::kernels::Row* near,
                                    U64 rows_out) {
  Machine machine;
  keel::kernels::CopyInSmall(Team(), Mate(), machine, rows, n, near, rows_out);
}

KEEL_GLOBAL void keel_copy_out(const keel::kernels::Piece* pieces, const keel::kernels::Row* rows,
                               U64 n, U64 direct, U64* arrived, U64* seen) {
  Machine machine;
  keel::kernels::CopyOut(Group(), Here(), machine, pieces, rows, n, direct, arrived, seen);
}

KEEL_GLOBAL void keel_copy_out_small(const keel::kernels::Piece* pieces,
                                     const keel::kernels::Row* rows, U64 n, U64* counts,
                                     U64* seen) {
  Machine machine;
  keel::kernels::CopyOutSmall(Group(), Here(), Team(), Mate(), machine, pieces, rows, n, counts,
                              seen);
}

KEEL_GLOBAL void keel_mark(U64* counts, U64* seen, U64 marks, U64 by) {
  keel::kernels::Mark<Machine>(This(), counts, seen, marks, by);
}

KEEL_GLOBAL void keel_matmul(const float* a, const float* b, float* c, U32 transposed, U64 m, U64 n,
                             U64 k) {
  keel::kernels::MatMul(This(), a, b, c, transposed, m, n, k);
}

KEEL_GLOBAL void keel_relu(const float* x, float* y, U64 n) {
  keel::kernels::Relu(This(), x, y, n);
}

KEEL_GLOBAL void keel_relu_grad(const float* y, float* gradient, U64 n) {
  keel::kernels::ReluGrad(This(), y, gradient, n);
}

KEEL_GLOBAL void keel_mse(const float* y, const float* target, float* gradient, float* loss,
                          float scale, U64 n) {
  keel::kernels::Mse(This(), y, target, gradient, loss, scale, n);
}
