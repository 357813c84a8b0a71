// Made by tools/kernels/make_ptx.py; change its sources instead.
// From 69c4ced393a122c76760bdbb4431a000a5468d458541d65f5434413732d8adbc
#pragma once

#include <string_view>

namespace keel::cuda {

inline constexpr std::string_view kStandardKernelsPtx = R"ptx(
.version 6.0
.target sm_70
.address_size 64
.visible .entry keel_fill(
	.param .u64 keel_fill_param_0,
	.param .u32 keel_fill_param_1,
	.param .u64 keel_fill_param_2
)
{
	.reg .pred 	%p<3>;
	.reg .b32 	%r<6>;
	.reg .b64 	%rd<17>;
	ld.param.u64 	%rd10, [keel_fill_param_2];
	mov.u32 	%r2, %ctaid.x;
	mov.u32 	%r3, %ntid.x;
	mul.wide.u32 	%rd12, %r2, %r3;
	mov.u32 	%r4, %tid.x;
	cvt.u64.u32 	%rd13, %r4;
	add.s64 	%rd15, %rd12, %rd13;
	setp.ge.u64 	%p1, %rd15, %rd10;
	@%p1 bra 	$L__BB0_3;
	ld.param.u32 	%r1, [keel_fill_param_1];
	ld.param.u64 	%rd11, [keel_fill_param_0];
	cvta.to.global.u64 	%rd1, %rd11;
	mov.u32 	%r5, %nctaid.x;
	mul.wide.u32 	%rd3, %r3, %r5;
	shl.b64 	%rd14, %rd15, 2;
	add.s64 	%rd16, %rd1, %rd14;
	shl.b64 	%rd5, %rd3, 2;
$L__BB0_2:
	st.global.u32 	[%rd16], %r1;
	add.s64 	%rd16, %rd16, %rd5;
	add.s64 	%rd15, %rd15, %rd3;
	setp.lt.u64 	%p2, %rd15, %rd10;
	@%p2 bra 	$L__BB0_2;
$L__BB0_3:
	ret;
}
.visible .entry keel_add(
	.param .u64 keel_add_param_0,
	.param .u64 keel_add_param_1,
	.param .u64 keel_add_param_2,
	.param .u64 keel_add_param_3
)
{
	.reg .pred 	%p<3>;
	.reg .b32 	%r<5>;
	.reg .f32 	%f<4>;
	.reg .b64 	%rd<23>;
	ld.param.u64 	%rd12, [keel_add_param_3];
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r2, %ntid.x;
	mul.wide.u32 	%rd16, %r1, %r2;
	mov.u32 	%r3, %tid.x;
	cvt.u64.u32 	%rd17, %r3;
	add.s64 	%rd21, %rd16, %rd17;
	setp.ge.u64 	%p1, %rd21, %rd12;
	@%p1 bra 	$L__BB1_3;
	ld.param.u64 	%rd13, [keel_add_param_0];
	ld.param.u64 	%rd14, [keel_add_param_2];
	cvta.to.global.u64 	%rd1, %rd14;
	ld.param.u64 	%rd15, [keel_add_param_1];
	cvta.to.global.u64 	%rd2, %rd15;
	cvta.to.global.u64 	%rd3, %rd13;
	mov.u32 	%r4, %nctaid.x;
	mul.wide.u32 	%rd5, %r2, %r4;
	shl.b64 	%rd22, %rd21, 2;
	shl.b64 	%rd7, %rd5, 2;
$L__BB1_2:
	add.s64 	%rd18, %rd3, %rd22;
	ld.global.f32 	%f1, [%rd18];
	add.s64 	%rd19, %rd2, %rd22;
	ld.global.f32 	%f2, [%rd19];
	add.rn.f32 	%f3, %f1, %f2;
	add.s64 	%rd20, %rd1, %rd22;
	st.global.f32 	[%rd20], %f3;
	add.s64 	%rd22, %rd22, %rd7;
	add.s64 	%rd21, %rd21, %rd5;
	setp.lt.u64 	%p2, %rd21, %rd12;
	@%p2 bra 	$L__BB1_2;
$L__BB1_3:
	ret;
}
.visible .entry keel_axpy(
	.param .u64 keel_axpy_param_0,
	.param .u64 keel_axpy_param_1,
	.param .f32 keel_axpy_param_2,
	.param .u64 keel_axpy_param_3
)
{
	.reg .pred 	%p<3>;
	.reg .b32 	%r<5>;
	.reg .f32 	%f<6>;
	.reg .b64 	%rd<20>;
	ld.param.u64 	%rd11, [keel_axpy_param_3];
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r2, %ntid.x;
	mul.wide.u32 	%rd14, %r1, %r2;
	mov.u32 	%r3, %tid.x;
	cvt.u64.u32 	%rd15, %r3;
	add.s64 	%rd18, %rd14, %rd15;
	setp.ge.u64 	%p1, %rd18, %rd11;
	@%p1 bra 	$L__BB2_3;
	ld.param.f32 	%f1, [keel_axpy_param_2];
	ld.param.u64 	%rd12, [keel_axpy_param_0];
	ld.param.u64 	%rd13, [keel_axpy_param_1];
	cvta.to.global.u64 	%rd1, %rd13;
	cvta.to.global.u64 	%rd2, %rd12;
	mov.u32 	%r4, %nctaid.x;
	mul.wide.u32 	%rd4, %r2, %r4;
	shl.b64 	%rd19, %rd18, 2;
	shl.b64 	%rd6, %rd4, 2;
$L__BB2_2:
	add.s64 	%rd16, %rd2, %rd19;
	ld.global.f32 	%f2, [%rd16];
	mul.rn.f32 	%f3, %f2, %f1;
	add.s64 	%rd17, %rd1, %rd19;
	ld.global.f32 	%f4, [%rd17];
	add.rn.f32 	%f5, %f4, %f3;
	st.global.f32 	[%rd17], %f5;
	add.s64 	%rd19, %rd19, %rd6;
	add.s64 	%rd18, %rd18, %rd4;
	setp.lt.u64 	%p2, %rd18, %rd11;
	@%p2 bra 	$L__BB2_2;
$L__BB2_3:
	ret;
}
.visible .entry keel_reduce(
	.param .u64 keel_reduce_param_0,
	.param .u64 keel_reduce_param_1,
	.param .u64 keel_reduce_param_2
)
{
	.reg .pred 	%p<4>;
	.reg .b32 	%r<5>;
	.reg .b64 	%rd<28>;
	ld.param.u64 	%rd14, [keel_reduce_param_2];
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r2, %ntid.x;
	mul.wide.u32 	%rd18, %r1, %r2;
	mov.u32 	%r3, %tid.x;
	cvt.u64.u32 	%rd19, %r3;
	add.s64 	%rd25, %rd18, %rd19;
	setp.ge.u64 	%p1, %rd25, %rd14;
	mov.u64 	%rd27, 0;
	@%p1 bra 	$L__BB3_3;
	ld.param.u64 	%rd16, [keel_reduce_param_0];
	cvta.to.global.u64 	%rd2, %rd16;
	mov.u32 	%r4, %nctaid.x;
	mul.wide.u32 	%rd4, %r2, %r4;
	shl.b64 	%rd21, %rd25, 2;
	add.s64 	%rd26, %rd2, %rd21;
	shl.b64 	%rd6, %rd4, 2;
	mov.u64 	%rd27, 0;
$L__BB3_2:
	ld.global.u32 	%rd22, [%rd26];
	add.s64 	%rd27, %rd27, %rd22;
	add.s64 	%rd26, %rd26, %rd6;
	add.s64 	%rd25, %rd25, %rd4;
	setp.lt.u64 	%p2, %rd25, %rd14;
	@%p2 bra 	$L__BB3_2;
$L__BB3_3:
	setp.eq.s64 	%p3, %rd27, 0;
	@%p3 bra 	$L__BB3_5;
	ld.param.u64 	%rd17, [keel_reduce_param_1];
	cvta.to.global.u64 	%rd1, %rd17;
	atom.global.add.u64 	%rd23, [%rd1], %rd27;
$L__BB3_5:
	ret;
}
.visible .entry keel_compare(
	.param .u64 keel_compare_param_0,
	.param .u64 keel_compare_param_1,
	.param .u64 keel_compare_param_2,
	.param .u64 keel_compare_param_3
)
{
	.reg .pred 	%p<5>;
	.reg .b16 	%rs<3>;
	.reg .b32 	%r<5>;
	.reg .b64 	%rd<29>;
	ld.param.u64 	%rd14, [keel_compare_param_3];
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r2, %ntid.x;
	mul.wide.u32 	%rd4, %r1, %r2;
	mov.u32 	%r3, %tid.x;
	cvt.u64.u32 	%rd27, %r3;
	add.s64 	%rd19, %rd4, %rd27;
	setp.ge.u64 	%p1, %rd19, %rd14;
	mov.u64 	%rd28, 0;
	@%p1 bra 	$L__BB4_3;
	ld.param.u64 	%rd16, [keel_compare_param_0];
	ld.param.u64 	%rd18, [keel_compare_param_1];
	cvta.to.global.u64 	%rd2, %rd18;
	cvta.to.global.u64 	%rd3, %rd16;
	mov.u32 	%r4, %nctaid.x;
	mul.wide.u32 	%rd6, %r2, %r4;
	add.s64 	%rd7, %rd3, %rd4;
	add.s64 	%rd8, %rd2, %rd4;
	mov.u64 	%rd28, 0;
$L__BB4_2:
	add.s64 	%rd21, %rd7, %rd27;
	ld.global.u8 	%rs1, [%rd21];
	add.s64 	%rd22, %rd8, %rd27;
	ld.global.u8 	%rs2, [%rd22];
	setp.ne.s16 	%p2, %rs1, %rs2;
	selp.u64 	%rd23, 1, 0, %p2;
	add.s64 	%rd28, %rd28, %rd23;
	add.s64 	%rd27, %rd27, %rd6;
	add.s64 	%rd24, %rd4, %rd27;
	setp.lt.u64 	%p3, %rd24, %rd14;
	@%p3 bra 	$L__BB4_2;
$L__BB4_3:
	setp.eq.s64 	%p4, %rd28, 0;
	@%p4 bra 	$L__BB4_5;
	ld.param.u64 	%rd17, [keel_compare_param_2];
	cvta.to.global.u64 	%rd1, %rd17;
	atom.global.add.u64 	%rd25, [%rd1], %rd28;
$L__BB4_5:
	ret;
}
.visible .entry keel_spin(
	.param .u64 keel_spin_param_0,
	.param .u64 keel_spin_param_1,
	.param .u64 keel_spin_param_2
)
{
	.reg .pred 	%p<3>;
	.reg .b64 	%rd<15>;
	ld.param.u64 	%rd4, [keel_spin_param_2];
	ld.param.u64 	%rd3, [keel_spin_param_1];
	ld.param.u64 	%rd6, [keel_spin_param_0];
	cvta.to.global.u64 	%rd1, %rd6;
	mov.u64 %rd5, %globaltimer;
	shr.u64 	%rd7, %rd5, 3;
	mul.hi.u64 	%rd8, %rd7, 2361183241434822607;
	shr.u64 	%rd2, %rd8, 4;
$L__BB5_1:
	ld.volatile.global.u64 	%rd9, [%rd1];
	setp.eq.s64 	%p1, %rd9, %rd3;
	@%p1 bra 	$L__BB5_3;
	mov.u64 %rd10, %globaltimer;
	shr.u64 	%rd11, %rd10, 3;
	mul.hi.u64 	%rd12, %rd11, 2361183241434822607;
	shr.u64 	%rd13, %rd12, 4;
	sub.s64 	%rd14, %rd13, %rd2;
	setp.lt.u64 	%p2, %rd14, %rd4;
	@%p2 bra 	$L__BB5_1;
$L__BB5_3:
	ret;
}
.visible .entry keel_copy_table(
	.param .u64 keel_copy_table_param_0,
	.param .u64 keel_copy_table_param_1
)
{
	.reg .pred 	%p<13>;
	.reg .b16 	%rs<2>;
	.reg .b32 	%r<14>;
	.reg .b64 	%rd<37>;
	ld.param.u64 	%rd19, [keel_copy_table_param_1];
	setp.eq.s64 	%p1, %rd19, 0;
	@%p1 bra 	$L__BB6_13;
	ld.param.u64 	%rd20, [keel_copy_table_param_0];
	cvta.to.global.u64 	%rd1, %rd20;
	mov.u32 	%r2, %ctaid.x;
	mov.u32 	%r3, %ntid.x;
	mul.wide.u32 	%rd21, %r2, %r3;
	mov.u32 	%r4, %tid.x;
	cvt.u64.u32 	%rd22, %r4;
	add.s64 	%rd2, %rd21, %rd22;
	mov.u32 	%r5, %nctaid.x;
	mul.wide.u32 	%rd3, %r3, %r5;
	shl.b64 	%rd4, %rd2, 3;
	shl.b64 	%rd5, %rd3, 3;
	mov.u64 	%rd33, 0;
	mov.b32 	%r6, 4;
	mov.b32 	%r7, 1;
	mov.b32 	%r10, 0;
$L__BB6_2:
	mul.lo.s64 	%rd24, %rd33, 24;
	add.s64 	%rd7, %rd1, %rd24;
	ld.global.u64 	%rd8, [%rd7+16];
	setp.eq.s64 	%p2, %rd8, 0;
	mov.u32 	%r13, %r6;
	@%p2 bra 	$L__BB6_11;
	ld.global.u64 	%rd9, [%rd7];
	ld.global.u64 	%rd10, [%rd7+8];
	setp.eq.s64 	%p3, %rd9, 0;
	setp.eq.s64 	%p4, %rd10, 0;
	or.pred  	%p5, %p3, %p4;
	mov.u32 	%r13, %r7;
	@%p5 bra 	$L__BB6_11;
	or.b64  	%rd25, %rd9, %rd8;
	or.b64  	%rd26, %rd25, %rd10;
	and.b64  	%rd27, %rd26, 7;
	setp.ne.s64 	%p6, %rd27, 0;
	@%p6 bra 	$L__BB6_8;
	bra.uni 	$L__BB6_5;
$L__BB6_8:
	setp.ge.u64 	%p7, %rd2, %rd8;
	mov.u32 	%r13, %r10;
	@%p7 bra 	$L__BB6_11;
	mov.u64 	%rd36, %rd2;
$L__BB6_10:
	add.s64 	%rd28, %rd10, %rd36;
	ld.u8 	%rs1, [%rd28];
	add.s64 	%rd29, %rd9, %rd36;
	st.u8 	[%rd29], %rs1;
	add.s64 	%rd36, %rd36, %rd3;
	setp.lt.u64 	%p8, %rd36, %rd8;
	mov.u32 	%r13, %r10;
	@%p8 bra 	$L__BB6_10;
	bra.uni 	$L__BB6_11;
$L__BB6_5:
	shr.u64 	%rd11, %rd8, 3;
	setp.ge.u64 	%p9, %rd2, %rd11;
	mov.u32 	%r13, %r10;
	@%p9 bra 	$L__BB6_11;
	mov.u64 	%rd34, %rd4;
	mov.u64 	%rd35, %rd2;
$L__BB6_7:
	add.s64 	%rd30, %rd10, %rd34;
	ld.u64 	%rd31, [%rd30];
	add.s64 	%rd32, %rd9, %rd34;
	st.u64 	[%rd32], %rd31;
	add.s64 	%rd35, %rd35, %rd3;
	add.s64 	%rd34, %rd34, %rd5;
	setp.lt.u64 	%p10, %rd35, %rd11;
	mov.u32 	%r13, %r10;
	@%p10 bra 	$L__BB6_7;
$L__BB6_11:
	or.b32  	%r12, %r13, 4;
	setp.eq.s32 	%p11, %r12, 4;
	@%p11 bra 	$L__BB6_12;
	bra.uni 	$L__BB6_13;
$L__BB6_12:
	add.s64 	%rd33, %rd33, 1;
	setp.ne.s64 	%p12, %rd33, %rd19;
	@%p12 bra 	$L__BB6_2;
$L__BB6_13:
	ret;
}
)ptx";

}  // namespace keel::cuda
