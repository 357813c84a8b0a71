// Made by tools/kernels/make_ptx.py; change its sources instead.
// From c99de02ea649468fccf14579ab4a2df1c795583ae3132551395a405851f7ec24
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
	mov.u32 	%r4, %tid.x;
	cvt.u64.u32 	%rd12, %r4;
	mov.u32 	%r5, %ntid.x;
	mul.wide.u32 	%rd13, %r2, %r5;
	add.s64 	%rd15, %rd13, %rd12;
	setp.ge.u64 	%p1, %rd15, %rd10;
	@%p1 bra 	$L__BB0_3;
	ld.param.u32 	%r1, [keel_fill_param_1];
	ld.param.u64 	%rd11, [keel_fill_param_0];
	cvta.to.global.u64 	%rd1, %rd11;
	mov.u32 	%r3, %nctaid.x;
	mul.wide.u32 	%rd3, %r5, %r3;
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
	mov.u32 	%r3, %tid.x;
	cvt.u64.u32 	%rd16, %r3;
	mov.u32 	%r4, %ntid.x;
	mul.wide.u32 	%rd17, %r1, %r4;
	add.s64 	%rd21, %rd17, %rd16;
	setp.ge.u64 	%p1, %rd21, %rd12;
	@%p1 bra 	$L__BB1_3;
	ld.param.u64 	%rd13, [keel_add_param_0];
	ld.param.u64 	%rd14, [keel_add_param_2];
	cvta.to.global.u64 	%rd1, %rd14;
	ld.param.u64 	%rd15, [keel_add_param_1];
	cvta.to.global.u64 	%rd2, %rd15;
	cvta.to.global.u64 	%rd3, %rd13;
	mov.u32 	%r2, %nctaid.x;
	mul.wide.u32 	%rd5, %r4, %r2;
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
	mov.u32 	%r3, %tid.x;
	cvt.u64.u32 	%rd14, %r3;
	mov.u32 	%r4, %ntid.x;
	mul.wide.u32 	%rd15, %r1, %r4;
	add.s64 	%rd18, %rd15, %rd14;
	setp.ge.u64 	%p1, %rd18, %rd11;
	@%p1 bra 	$L__BB2_3;
	ld.param.f32 	%f1, [keel_axpy_param_2];
	ld.param.u64 	%rd12, [keel_axpy_param_0];
	ld.param.u64 	%rd13, [keel_axpy_param_1];
	cvta.to.global.u64 	%rd1, %rd13;
	cvta.to.global.u64 	%rd2, %rd12;
	mov.u32 	%r2, %nctaid.x;
	mul.wide.u32 	%rd4, %r4, %r2;
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
	mov.u32 	%r3, %tid.x;
	cvt.u64.u32 	%rd18, %r3;
	mov.u32 	%r4, %ntid.x;
	mul.wide.u32 	%rd19, %r1, %r4;
	add.s64 	%rd25, %rd19, %rd18;
	setp.ge.u64 	%p1, %rd25, %rd14;
	mov.u64 	%rd27, 0;
	@%p1 bra 	$L__BB3_3;
	ld.param.u64 	%rd16, [keel_reduce_param_0];
	cvta.to.global.u64 	%rd2, %rd16;
	mov.u32 	%r2, %nctaid.x;
	mul.wide.u32 	%rd4, %r4, %r2;
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
	mov.u32 	%r3, %tid.x;
	cvt.u64.u32 	%rd27, %r3;
	mov.u32 	%r4, %ntid.x;
	mul.wide.u32 	%rd5, %r1, %r4;
	add.s64 	%rd19, %rd5, %rd27;
	setp.ge.u64 	%p1, %rd19, %rd14;
	mov.u64 	%rd28, 0;
	@%p1 bra 	$L__BB4_3;
	ld.param.u64 	%rd16, [keel_compare_param_0];
	ld.param.u64 	%rd18, [keel_compare_param_1];
	cvta.to.global.u64 	%rd2, %rd18;
	cvta.to.global.u64 	%rd3, %rd16;
	mov.u32 	%r2, %nctaid.x;
	mul.wide.u32 	%rd6, %r4, %r2;
	add.s64 	%rd7, %rd3, %rd5;
	add.s64 	%rd8, %rd2, %rd5;
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
	add.s64 	%rd24, %rd5, %rd27;
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
	.param .u64 keel_copy_table_param_1,
	.param .u64 keel_copy_table_param_2
)
{
	.reg .pred 	%p<16>;
	.reg .b16 	%rs<2>;
	.reg .b32 	%r<17>;
	.reg .b64 	%rd<57>;
	ld.param.u64 	%rd32, [keel_copy_table_param_2];
	mov.u32 	%r2, %ctaid.x;
	cvt.u64.u32 	%rd51, %r2;
	setp.ge.u64 	%p1, %rd51, %rd32;
	@%p1 bra 	$L__BB6_17;
	ld.param.u64 	%rd33, [keel_copy_table_param_0];
	ld.param.u64 	%rd34, [keel_copy_table_param_1];
	cvta.to.global.u64 	%rd1, %rd34;
	cvta.to.global.u64 	%rd2, %rd33;
	mov.u32 	%r3, %nctaid.x;
	cvt.u64.u32 	%rd4, %r3;
	mov.u32 	%r4, %tid.x;
	cvt.u64.u32 	%rd5, %r4;
	mov.u32 	%r5, %ntid.x;
	cvt.u64.u32 	%rd6, %r5;
	shl.b64 	%rd7, %rd5, 2;
	shl.b64 	%rd8, %rd6, 2;
	shl.b64 	%rd9, %rd5, 4;
	shl.b64 	%rd10, %rd6, 4;
	mov.b32 	%r6, 4;
	mov.b32 	%r7, 1;
	mov.b32 	%r13, 0;
$L__BB6_2:
	mul.lo.s64 	%rd35, %rd51, 24;
	add.s64 	%rd12, %rd2, %rd35;
	ld.global.u64 	%rd36, [%rd12];
	shl.b64 	%rd37, %rd36, 4;
	add.s64 	%rd14, %rd1, %rd37;
	ld.global.u64 	%rd15, [%rd14];
	setp.eq.s64 	%p2, %rd15, 0;
	mov.u32 	%r16, %r6;
	@%p2 bra 	$L__BB6_15;
	ld.global.u64 	%rd38, [%rd14+8];
	ld.global.u64 	%rd39, [%rd12+8];
	add.s64 	%rd16, %rd39, %rd15;
	add.s64 	%rd17, %rd39, %rd38;
	setp.eq.s64 	%p3, %rd16, 0;
	setp.eq.s64 	%p4, %rd17, 0;
	or.pred  	%p5, %p3, %p4;
	mov.u32 	%r16, %r7;
	@%p5 bra 	$L__BB6_15;
	bra.uni 	$L__BB6_4;
$L__BB6_15:
	or.b32  	%r15, %r16, 4;
	setp.eq.s32 	%p14, %r15, 4;
	@%p14 bra 	$L__BB6_16;
	bra.uni 	$L__BB6_17;
$L__BB6_16:
	add.s64 	%rd51, %rd51, %rd4;
	setp.lt.u64 	%p15, %rd51, %rd32;
	@%p15 bra 	$L__BB6_2;
	bra.uni 	$L__BB6_17;
$L__BB6_4:
	ld.global.u64 	%rd13, [%rd12+16];
	or.b64  	%rd40, %rd17, %rd13;
	or.b64  	%rd18, %rd40, %rd16;
	and.b64  	%rd41, %rd18, 15;
	setp.ne.s64 	%p6, %rd41, 0;
	@%p6 bra 	$L__BB6_8;
	bra.uni 	$L__BB6_5;
$L__BB6_8:
	and.b64  	%rd42, %rd18, 3;
	setp.ne.s64 	%p7, %rd42, 0;
	@%p7 bra 	$L__BB6_12;
	bra.uni 	$L__BB6_9;
$L__BB6_12:
	setp.le.u64 	%p8, %rd13, %rd5;
	mov.u32 	%r16, %r13;
	@%p8 bra 	$L__BB6_15;
	mov.u64 	%rd56, %rd5;
$L__BB6_14:
	add.s64 	%rd43, %rd17, %rd56;
	ld.u8 	%rs1, [%rd43];
	add.s64 	%rd44, %rd16, %rd56;
	st.u8 	[%rd44], %rs1;
	add.s64 	%rd56, %rd56, %rd6;
	setp.lt.u64 	%p9, %rd56, %rd13;
	mov.u32 	%r16, %r13;
	@%p9 bra 	$L__BB6_14;
	bra.uni 	$L__BB6_15;
$L__BB6_5:
	shr.u64 	%rd19, %rd13, 4;
	setp.le.u64 	%p12, %rd19, %rd5;
	mov.u32 	%r16, %r13;
	@%p12 bra 	$L__BB6_15;
	mov.u64 	%rd52, %rd9;
	mov.u64 	%rd53, %rd5;
$L__BB6_7:
	add.s64 	%rd47, %rd17, %rd52;
	add.s64 	%rd48, %rd16, %rd52;
	ld.u64 	%rd49, [%rd47+8];
	st.u64 	[%rd48+8], %rd49;
	ld.u64 	%rd50, [%rd47];
	st.u64 	[%rd48], %rd50;
	add.s64 	%rd53, %rd53, %rd6;
	add.s64 	%rd52, %rd52, %rd10;
	setp.lt.u64 	%p13, %rd53, %rd19;
	mov.u32 	%r16, %r13;
	@%p13 bra 	$L__BB6_7;
	bra.uni 	$L__BB6_15;
$L__BB6_9:
	shr.u64 	%rd24, %rd13, 2;
	setp.le.u64 	%p10, %rd24, %rd5;
	mov.u32 	%r16, %r13;
	@%p10 bra 	$L__BB6_15;
	mov.u64 	%rd54, %rd7;
	mov.u64 	%rd55, %rd5;
$L__BB6_11:
	add.s64 	%rd45, %rd17, %rd54;
	ld.u32 	%r12, [%rd45];
	add.s64 	%rd46, %rd16, %rd54;
	st.u32 	[%rd46], %r12;
	add.s64 	%rd55, %rd55, %rd6;
	add.s64 	%rd54, %rd54, %rd8;
	setp.lt.u64 	%p11, %rd55, %rd24;
	mov.u32 	%r16, %r13;
	@%p11 bra 	$L__BB6_11;
	bra.uni 	$L__BB6_15;
$L__BB6_17:
	ret;
}
.visible .entry keel_mark(
	.param .u64 keel_mark_param_0,
	.param .u64 keel_mark_param_1
)
{
	.reg .pred 	%p<2>;
	.reg .b32 	%r<4>;
	.reg .b64 	%rd<10>;
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r2, %tid.x;
	cvt.u64.u32 	%rd5, %r2;
	mov.u32 	%r3, %ntid.x;
	mul.wide.u32 	%rd6, %r1, %r3;
	or.b64  	%rd7, %rd6, %rd5;
	setp.ne.s64 	%p1, %rd7, 0;
	@%p1 bra 	$L__BB7_2;
	ld.param.u64 	%rd3, [keel_mark_param_0];
	ld.param.u64 	%rd4, [keel_mark_param_1];
	cvta.to.global.u64 	%rd1, %rd4;
	cvta.to.global.u64 	%rd2, %rd3;
	ld.global.u64 	%rd8, [%rd2];
	add.s64 	%rd9, %rd8, 1;
	st.global.u64 	[%rd2], %rd9;
	membar.sys;
	st.volatile.global.u64 	[%rd1], %rd9;
$L__BB7_2:
	ret;
}
)ptx";

}  // namespace keel::cuda
