// Made by tools/kernels/make_ptx.py; change its sources instead.
// From 1eda025ff97a5f68d5009fb8d2faf7a3a2ab2a7fd95108d014b1db237e084421
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
.visible .entry keel_store(
	.param .align 8 .b8 keel_store_param_0[4080],
	.param .u64 keel_store_param_1,
	.param .u64 keel_store_param_2
)
{
	.reg .pred 	%p<3>;
	.reg .b32 	%r<5>;
	.reg .b64 	%rd<21>;
	ld.param.u64 	%rd11, [keel_store_param_2];
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r3, %tid.x;
	cvt.u64.u32 	%rd14, %r3;
	mov.u32 	%r4, %ntid.x;
	mul.wide.u32 	%rd15, %r1, %r4;
	add.s64 	%rd19, %rd15, %rd14;
	setp.ge.u64 	%p1, %rd19, %rd11;
	@%p1 bra 	$L__BB6_3;
	mov.b64 	%rd12, keel_store_param_0;
	ld.param.u64 	%rd13, [keel_store_param_1];
	cvta.to.global.u64 	%rd1, %rd13;
	mov.u64 	%rd2, %rd12;
	mov.u32 	%r2, %nctaid.x;
	mul.wide.u32 	%rd4, %r4, %r2;
	shl.b64 	%rd20, %rd19, 3;
	shl.b64 	%rd6, %rd4, 3;
$L__BB6_2:
	add.s64 	%rd16, %rd2, %rd20;
	ld.param.u64 	%rd17, [%rd16];
	add.s64 	%rd18, %rd1, %rd20;
	st.global.u64 	[%rd18], %rd17;
	add.s64 	%rd20, %rd20, %rd6;
	add.s64 	%rd19, %rd19, %rd4;
	setp.lt.u64 	%p2, %rd19, %rd11;
	@%p2 bra 	$L__BB6_2;
$L__BB6_3:
	ret;
}
.visible .entry keel_copy_table(
	.param .u64 keel_copy_table_param_0,
	.param .u64 keel_copy_table_param_1,
	.param .u64 keel_copy_table_param_2
)
{
	.reg .pred 	%p<33>;
	.reg .b16 	%rs<7>;
	.reg .b32 	%r<16>;
	.reg .b64 	%rd<168>;
	ld.param.u64 	%rd74, [keel_copy_table_param_2];
	mov.u32 	%r3, %ctaid.x;
	cvt.u64.u32 	%rd147, %r3;
	setp.ge.u64 	%p2, %rd147, %rd74;
	@%p2 bra 	$L__BB7_36;
	ld.param.u64 	%rd75, [keel_copy_table_param_0];
	ld.param.u64 	%rd76, [keel_copy_table_param_1];
	cvta.to.global.u64 	%rd1, %rd76;
	cvta.to.global.u64 	%rd2, %rd75;
	mov.u32 	%r4, %nctaid.x;
	cvt.u64.u32 	%rd4, %r4;
	mov.u32 	%r5, %tid.x;
	cvt.u64.u32 	%rd5, %r5;
	mov.u32 	%r6, %ntid.x;
	cvt.u64.u32 	%rd6, %r6;
	and.b64  	%rd7, %rd6, 31;
	shl.b64 	%rd8, %rd5, 2;
	and.b64  	%rd77, %rd8, 3968;
	and.b64  	%rd78, %rd5, 31;
	or.b64  	%rd9, %rd77, %rd78;
	or.b64  	%rd10, %rd9, 96;
	shl.b64 	%rd11, %rd6, 2;
	shr.u64 	%rd79, %rd5, 5;
	shl.b64 	%rd80, %rd79, 9;
	shl.b64 	%rd81, %rd78, 2;
	or.b64  	%rd12, %rd80, %rd81;
	shl.b64 	%rd13, %rd6, 4;
	shl.b64 	%rd14, %rd5, 4;
	shl.b64 	%rd15, %rd78, 4;
	shl.b64 	%rd16, %rd79, 11;
	shl.b64 	%rd17, %rd6, 6;
	mov.b32 	%r7, 4;
	setp.eq.s64 	%p10, %rd7, 0;
$L__BB7_2:
	mul.lo.s64 	%rd92, %rd147, 24;
	add.s64 	%rd93, %rd2, %rd92;
	cvta.global.u64 	%rd83, %rd93;
	ld.u64 %rd82, [%rd83];
	add.s64 	%rd85, %rd83, 8;
	ld.u64 %rd84, [%rd85];
	add.s64 	%rd87, %rd83, 16;
	ld.u64 %rd86, [%rd87];
	shl.b64 	%rd94, %rd82, 4;
	add.s64 	%rd95, %rd1, %rd94;
	cvta.global.u64 	%rd89, %rd95;
	ld.u64 %rd88, [%rd89];
	add.s64 	%rd91, %rd89, 8;
	ld.u64 %rd90, [%rd91];
	setp.eq.s64 	%p3, %rd88, 0;
	mov.u32 	%r15, %r7;
	@%p3 bra 	$L__BB7_34;
	add.s64 	%rd23, %rd88, %rd84;
	add.s64 	%rd24, %rd90, %rd84;
	setp.eq.s64 	%p4, %rd23, 0;
	setp.eq.s64 	%p5, %rd24, 0;
	or.pred  	%p1, %p4, %p5;
	@%p1 bra 	$L__BB7_33;
	bra.uni 	$L__BB7_4;
$L__BB7_33:
	selp.u32 	%r15, 1, 0, %p1;
$L__BB7_34:
	or.b32  	%r14, %r15, 4;
	setp.eq.s32 	%p31, %r14, 4;
	@%p31 bra 	$L__BB7_35;
	bra.uni 	$L__BB7_36;
$L__BB7_35:
	add.s64 	%rd147, %rd147, %rd4;
	setp.lt.u64 	%p32, %rd147, %rd74;
	@%p32 bra 	$L__BB7_2;
	bra.uni 	$L__BB7_36;
$L__BB7_4:
	or.b64  	%rd97, %rd23, %rd86;
	or.b64  	%rd98, %rd97, %rd24;
	and.b64  	%rd99, %rd98, 15;
	setp.eq.s64 	%p6, %rd99, 0;
	and.b64  	%rd100, %rd98, 3;
	setp.eq.s64 	%p7, %rd100, 0;
	selp.b64 	%rd101, 4, 1, %p7;
	selp.b64 	%rd96, 16, %rd101, %p6;
	setp.eq.s64 	%p8, %rd96, 4;
	@%p8 bra 	$L__BB7_16;
	setp.ne.s64 	%p9, %rd96, 16;
	@%p9 bra 	$L__BB7_26;
	shr.u64 	%rd25, %rd86, 4;
	@%p10 bra 	$L__BB7_10;
	setp.le.u64 	%p18, %rd25, %rd5;
	@%p18 bra 	$L__BB7_33;
	mov.u64 	%rd148, %rd14;
	mov.u64 	%rd149, %rd5;
$L__BB7_9:
	add.s64 	%rd108, %rd24, %rd148;
	ld.v2.u64 	{%rd109, %rd110}, [%rd108];
	add.s64 	%rd111, %rd23, %rd148;
	st.v2.u64 	[%rd111], {%rd109, %rd110};
	add.s64 	%rd149, %rd149, %rd6;
	add.s64 	%rd148, %rd148, %rd13;
	setp.lt.u64 	%p19, %rd149, %rd25;
	@%p19 bra 	$L__BB7_9;
	bra.uni 	$L__BB7_33;
$L__BB7_16:
	shr.u64 	%rd47, %rd86, 2;
	@%p10 bra 	$L__BB7_20;
	setp.le.u64 	%p11, %rd47, %rd5;
	@%p11 bra 	$L__BB7_33;
	mov.u64 	%rd157, %rd8;
	mov.u64 	%rd158, %rd5;
$L__BB7_19:
	add.s64 	%rd102, %rd24, %rd157;
	ld.u32 	%r8, [%rd102];
	add.s64 	%rd103, %rd23, %rd157;
	st.u32 	[%rd103], %r8;
	add.s64 	%rd158, %rd158, %rd6;
	add.s64 	%rd157, %rd157, %rd11;
	setp.lt.u64 	%p12, %rd158, %rd47;
	@%p12 bra 	$L__BB7_19;
	bra.uni 	$L__BB7_33;
$L__BB7_26:
	@%p10 bra 	$L__BB7_30;
	setp.le.u64 	%p25, %rd86, %rd5;
	@%p25 bra 	$L__BB7_33;
	mov.u64 	%rd165, %rd5;
$L__BB7_29:
	add.s64 	%rd140, %rd24, %rd165;
	ld.u8 	%rs1, [%rd140];
	add.s64 	%rd141, %rd23, %rd165;
	st.u8 	[%rd141], %rs1;
	add.s64 	%rd165, %rd165, %rd6;
	setp.lt.u64 	%p26, %rd165, %rd86;
	@%p26 bra 	$L__BB7_29;
	bra.uni 	$L__BB7_33;
$L__BB7_10:
	setp.ge.u64 	%p20, %rd10, %rd25;
	mov.u64 	%rd153, %rd9;
	@%p20 bra 	$L__BB7_13;
	add.s64 	%rd152, %rd23, %rd16;
	add.s64 	%rd151, %rd24, %rd16;
	mov.u64 	%rd153, %rd9;
$L__BB7_12:
	add.s64 	%rd114, %rd151, %rd15;
	ld.cs.v2.u64 {%rd112, %rd113}, [%rd114];
	add.s64 	%rd117, %rd114, 512;
	ld.cs.v2.u64 {%rd115, %rd116}, [%rd117];
	add.s64 	%rd120, %rd114, 1024;
	ld.cs.v2.u64 {%rd118, %rd119}, [%rd120];
	add.s64 	%rd123, %rd114, 1536;
	ld.cs.v2.u64 {%rd121, %rd122}, [%rd123];
	add.s64 	%rd124, %rd152, %rd15;
	st.cs.v2.u64 [%rd124], {%rd112, %rd113};
	add.s64 	%rd127, %rd124, 512;
	st.cs.v2.u64 [%rd127], {%rd115, %rd116};
	add.s64 	%rd130, %rd124, 1024;
	st.cs.v2.u64 [%rd130], {%rd118, %rd119};
	add.s64 	%rd133, %rd124, 1536;
	st.cs.v2.u64 [%rd133], {%rd121, %rd122};
	add.s64 	%rd153, %rd153, %rd11;
	add.s64 	%rd136, %rd153, 96;
	add.s64 	%rd152, %rd152, %rd17;
	add.s64 	%rd151, %rd151, %rd17;
	setp.lt.u64 	%p21, %rd136, %rd25;
	@%p21 bra 	$L__BB7_12;
$L__BB7_13:
	setp.ge.u64 	%p22, %rd153, %rd25;
	@%p22 bra 	$L__BB7_33;
	shl.b64 	%rd137, %rd153, 4;
	add.s64 	%rd155, %rd23, %rd137;
	add.s64 	%rd154, %rd24, %rd137;
$L__BB7_15:
	.pragma "nounroll";
	ld.v2.u64 	{%rd138, %rd139}, [%rd154];
	st.v2.u64 	[%rd155], {%rd138, %rd139};
	add.s64 	%rd153, %rd153, 32;
	add.s64 	%rd155, %rd155, 512;
	add.s64 	%rd154, %rd154, 512;
	setp.lt.u64 	%p23, %rd153, %rd25;
	@%p23 bra 	$L__BB7_15;
	bra.uni 	$L__BB7_33;
$L__BB7_20:
	setp.ge.u64 	%p13, %rd10, %rd47;
	mov.u64 	%rd161, %rd9;
	@%p13 bra 	$L__BB7_23;
	add.s64 	%rd52, %rd24, 384;
	mov.u64 	%rd160, %rd12;
	mov.u64 	%rd161, %rd9;
$L__BB7_22:
	add.s64 	%rd104, %rd52, %rd160;
	ld.u32 	%r9, [%rd104+-384];
	ld.u32 	%r10, [%rd104+-256];
	ld.u32 	%r11, [%rd104+-128];
	ld.u32 	%r12, [%rd104];
	add.s64 	%rd105, %rd23, %rd160;
	st.u32 	[%rd105], %r9;
	st.u32 	[%rd105+128], %r10;
	st.u32 	[%rd105+256], %r11;
	st.u32 	[%rd105+384], %r12;
	add.s64 	%rd161, %rd161, %rd11;
	add.s64 	%rd106, %rd161, 96;
	add.s64 	%rd160, %rd160, %rd13;
	setp.lt.u64 	%p14, %rd106, %rd47;
	@%p14 bra 	$L__BB7_22;
$L__BB7_23:
	setp.ge.u64 	%p15, %rd161, %rd47;
	@%p15 bra 	$L__BB7_33;
	shl.b64 	%rd107, %rd161, 2;
	add.s64 	%rd163, %rd23, %rd107;
	add.s64 	%rd162, %rd24, %rd107;
$L__BB7_25:
	.pragma "nounroll";
	ld.u32 	%r13, [%rd162];
	st.u32 	[%rd163], %r13;
	add.s64 	%rd161, %rd161, 32;
	add.s64 	%rd163, %rd163, 128;
	add.s64 	%rd162, %rd162, 128;
	setp.lt.u64 	%p16, %rd161, %rd47;
	@%p16 bra 	$L__BB7_25;
	bra.uni 	$L__BB7_33;
$L__BB7_30:
	setp.ge.u64 	%p27, %rd10, %rd86;
	mov.u64 	%rd166, %rd9;
	@%p27 bra 	$L__BB7_31;
$L__BB7_37:
	add.s64 	%rd142, %rd24, %rd166;
	ld.u8 	%rs2, [%rd142];
	ld.u8 	%rs3, [%rd142+32];
	ld.u8 	%rs4, [%rd142+64];
	ld.u8 	%rs5, [%rd142+96];
	add.s64 	%rd143, %rd23, %rd166;
	st.u8 	[%rd143], %rs2;
	st.u8 	[%rd143+32], %rs3;
	st.u8 	[%rd143+64], %rs4;
	st.u8 	[%rd143+96], %rs5;
	add.s64 	%rd166, %rd166, %rd11;
	add.s64 	%rd144, %rd166, 96;
	setp.lt.u64 	%p28, %rd144, %rd86;
	@%p28 bra 	$L__BB7_37;
$L__BB7_31:
	setp.ge.u64 	%p29, %rd166, %rd86;
	@%p29 bra 	$L__BB7_33;
$L__BB7_32:
	.pragma "nounroll";
	add.s64 	%rd145, %rd24, %rd166;
	ld.u8 	%rs6, [%rd145];
	add.s64 	%rd146, %rd23, %rd166;
	st.u8 	[%rd146], %rs6;
	add.s64 	%rd166, %rd166, 32;
	setp.lt.u64 	%p30, %rd166, %rd86;
	@%p30 bra 	$L__BB7_32;
	bra.uni 	$L__BB7_33;
$L__BB7_36:
	ret;
}
.visible .entry keel_copy_in(
	.param .u64 keel_copy_in_param_0,
	.param .u64 keel_copy_in_param_1,
	.param .u64 keel_copy_in_param_2,
	.param .u64 keel_copy_in_param_3,
	.param .u64 keel_copy_in_param_4,
	.param .u64 keel_copy_in_param_5,
	.param .u64 keel_copy_in_param_6
)
{
	.reg .pred 	%p<39>;
	.reg .b16 	%rs<7>;
	.reg .b32 	%r<18>;
	.reg .b64 	%rd<198>;
	.shared .align 8 .b8 _ZZN12_GLOBAL__N_17Machine8FetchRowEN4keel7kernels6WorkerEPKNS2_3RowEE5words[16];
	ld.param.u64 	%rd89, [keel_copy_in_param_2];
	ld.param.u64 	%rd93, [keel_copy_in_param_6];
	mov.u32 	%r4, %ctaid.x;
	cvt.u64.u32 	%rd176, %r4;
	mov.u32 	%r5, %nctaid.x;
	cvt.u64.u32 	%rd5, %r5;
	mov.u32 	%r6, %tid.x;
	cvt.u64.u32 	%rd6, %r6;
	mov.u32 	%r8, %ntid.x;
	cvt.u64.u32 	%rd7, %r8;
	add.s64 	%rd96, %rd176, 1;
	setp.eq.s64 	%p2, %rd96, %rd5;
	setp.lt.u64 	%p3, %rd6, %rd93;
	and.pred  	%p4, %p2, %p3;
	shl.b64 	%rd173, %rd6, 3;
	@!%p4 bra 	$L__BB8_3;
	bra.uni 	$L__BB8_1;
$L__BB8_1:
	ld.param.u64 	%rd91, [keel_copy_in_param_4];
	ld.param.u64 	%rd94, [keel_copy_in_param_5];
	cvta.to.global.u64 	%rd1, %rd94;
	shl.b64 	%rd9, %rd7, 3;
	mov.u64 	%rd174, %rd173;
	mov.u64 	%rd175, %rd6;
$L__BB8_2:
	add.s64 	%rd98, %rd91, %rd174;
	ld.u64 %rd97, [%rd98];
	add.s64 	%rd99, %rd1, %rd174;
	st.global.u64 	[%rd99], %rd97;
	add.s64 	%rd175, %rd175, %rd7;
	add.s64 	%rd174, %rd174, %rd9;
	setp.lt.u64 	%p5, %rd175, %rd93;
	@%p5 bra 	$L__BB8_2;
$L__BB8_3:
	setp.ge.u64 	%p6, %rd176, %rd89;
	@%p6 bra 	$L__BB8_43;
	ld.param.u64 	%rd88, [keel_copy_in_param_0];
	ld.param.u64 	%rd95, [keel_copy_in_param_1];
	ld.param.u64 	%rd90, [keel_copy_in_param_3];
	cvta.to.global.u64 	%rd2, %rd95;
	cvta.to.global.u64 	%rd3, %rd88;
	cvt.u32.u64 	%r1, %rd6;
	add.s64 	%rd101, %rd2, %rd173;
	cvta.global.u64 	%rd14, %rd101;
	mov.u64 	%rd102, _ZZN12_GLOBAL__N_17Machine8FetchRowEN4keel7kernels6WorkerEPKNS2_3RowEE5words;
	add.s64 	%rd15, %rd102, %rd173;
	and.b64  	%rd16, %rd7, 31;
	shl.b64 	%rd17, %rd6, 2;
	and.b64  	%rd103, %rd17, 3968;
	and.b64  	%rd104, %rd6, 31;
	or.b64  	%rd18, %rd103, %rd104;
	or.b64  	%rd19, %rd18, 96;
	shl.b64 	%rd20, %rd7, 2;
	shr.u64 	%rd105, %rd6, 5;
	shl.b64 	%rd106, %rd105, 9;
	shl.b64 	%rd107, %rd104, 2;
	or.b64  	%rd21, %rd106, %rd107;
	shl.b64 	%rd22, %rd7, 4;
	shl.b64 	%rd23, %rd6, 4;
	shl.b64 	%rd24, %rd104, 4;
	shl.b64 	%rd25, %rd105, 11;
	shl.b64 	%rd26, %rd7, 6;
	setp.gt.u32 	%p8, %r1, 1;
	mov.b32 	%r9, 4;
	setp.eq.s64 	%p16, %rd16, 0;
$L__BB8_5:
	not.b64 	%rd108, %rd176;
	add.s64 	%rd177, %rd108, %rd89;
	setp.lt.u64 	%p7, %rd177, %rd90;
	mul.lo.s64 	%rd109, %rd177, 24;
	@%p7 bra 	$L__BB8_7;
	add.s64 	%rd111, %rd88, %rd109;
	ld.u64 %rd177, [%rd111];
$L__BB8_7:
	add.s64 	%rd117, %rd3, %rd109;
	cvta.global.u64 	%rd118, %rd117;
	add.s64 	%rd113, %rd118, 8;
	ld.u64 %rd112, [%rd113];
	add.s64 	%rd115, %rd118, 16;
	ld.u64 %rd114, [%rd115];
	@%p8 bra 	$L__BB8_9;
	shl.b64 	%rd119, %rd177, 4;
	add.s64 	%rd121, %rd14, %rd119;
	ld.u64 %rd120, [%rd121];
	st.shared.u64 	[%rd15], %rd120;
$L__BB8_9:
	bar.sync 	0;
	ld.shared.u64 	%rd35, [_ZZN12_GLOBAL__N_17Machine8FetchRowEN4keel7kernels6WorkerEPKNS2_3RowEE5words];
	ld.shared.u64 	%rd36, [_ZZN12_GLOBAL__N_17Machine8FetchRowEN4keel7kernels6WorkerEPKNS2_3RowEE5words+8];
	bar.sync 	0;
	setp.eq.s64 	%p9, %rd35, 0;
	mov.u32 	%r17, %r9;
	@%p9 bra 	$L__BB8_41;
	add.s64 	%rd37, %rd35, %rd112;
	add.s64 	%rd38, %rd36, %rd112;
	setp.eq.s64 	%p10, %rd37, 0;
	setp.eq.s64 	%p11, %rd38, 0;
	or.pred  	%p1, %p10, %p11;
	@%p1 bra 	$L__BB8_40;
	bra.uni 	$L__BB8_11;
$L__BB8_40:
	selp.u32 	%r17, 1, 0, %p1;
$L__BB8_41:
	or.b32  	%r16, %r17, 4;
	setp.eq.s32 	%p37, %r16, 4;
	@%p37 bra 	$L__BB8_42;
	bra.uni 	$L__BB8_43;
$L__BB8_42:
	add.s64 	%rd176, %rd176, %rd5;
	setp.lt.u64 	%p38, %rd176, %rd89;
	@%p38 bra 	$L__BB8_5;
	bra.uni 	$L__BB8_43;
$L__BB8_11:
	or.b64  	%rd123, %rd37, %rd114;
	or.b64  	%rd124, %rd123, %rd38;
	and.b64  	%rd125, %rd124, 15;
	setp.eq.s64 	%p12, %rd125, 0;
	and.b64  	%rd126, %rd124, 3;
	setp.eq.s64 	%p13, %rd126, 0;
	selp.b64 	%rd127, 4, 1, %p13;
	selp.b64 	%rd122, 16, %rd127, %p12;
	setp.eq.s64 	%p14, %rd122, 4;
	@%p14 bra 	$L__BB8_23;
	setp.ne.s64 	%p15, %rd122, 16;
	@%p15 bra 	$L__BB8_33;
	shr.u64 	%rd39, %rd114, 4;
	@%p16 bra 	$L__BB8_17;
	setp.le.u64 	%p24, %rd39, %rd6;
	@%p24 bra 	$L__BB8_40;
	mov.u64 	%rd178, %rd23;
	mov.u64 	%rd179, %rd6;
$L__BB8_16:
	add.s64 	%rd134, %rd38, %rd178;
	ld.v2.u64 	{%rd135, %rd136}, [%rd134];
	add.s64 	%rd137, %rd37, %rd178;
	st.v2.u64 	[%rd137], {%rd135, %rd136};
	add.s64 	%rd179, %rd179, %rd7;
	add.s64 	%rd178, %rd178, %rd22;
	setp.lt.u64 	%p25, %rd179, %rd39;
	@%p25 bra 	$L__BB8_16;
	bra.uni 	$L__BB8_40;
$L__BB8_23:
	shr.u64 	%rd61, %rd114, 2;
	@%p16 bra 	$L__BB8_27;
	setp.le.u64 	%p17, %rd61, %rd6;
	@%p17 bra 	$L__BB8_40;
	mov.u64 	%rd187, %rd17;
	mov.u64 	%rd188, %rd6;
$L__BB8_26:
	add.s64 	%rd128, %rd38, %rd187;
	ld.u32 	%r10, [%rd128];
	add.s64 	%rd129, %rd37, %rd187;
	st.u32 	[%rd129], %r10;
	add.s64 	%rd188, %rd188, %rd7;
	add.s64 	%rd187, %rd187, %rd20;
	setp.lt.u64 	%p18, %rd188, %rd61;
	@%p18 bra 	$L__BB8_26;
	bra.uni 	$L__BB8_40;
$L__BB8_33:
	@%p16 bra 	$L__BB8_37;
	setp.le.u64 	%p31, %rd114, %rd6;
	@%p31 bra 	$L__BB8_40;
	mov.u64 	%rd195, %rd6;
$L__BB8_36:
	add.s64 	%rd166, %rd38, %rd195;
	ld.u8 	%rs1, [%rd166];
	add.s64 	%rd167, %rd37, %rd195;
	st.u8 	[%rd167], %rs1;
	add.s64 	%rd195, %rd195, %rd7;
	setp.lt.u64 	%p32, %rd195, %rd114;
	@%p32 bra 	$L__BB8_36;
	bra.uni 	$L__BB8_40;
$L__BB8_17:
	setp.ge.u64 	%p26, %rd19, %rd39;
	mov.u64 	%rd183, %rd18;
	@%p26 bra 	$L__BB8_20;
	add.s64 	%rd182, %rd37, %rd25;
	add.s64 	%rd181, %rd38, %rd25;
	mov.u64 	%rd183, %rd18;
$L__BB8_19:
	add.s64 	%rd140, %rd181, %rd24;
	ld.cs.v2.u64 {%rd138, %rd139}, [%rd140];
	add.s64 	%rd143, %rd140, 512;
	ld.cs.v2.u64 {%rd141, %rd142}, [%rd143];
	add.s64 	%rd146, %rd140, 1024;
	ld.cs.v2.u64 {%rd144, %rd145}, [%rd146];
	add.s64 	%rd149, %rd140, 1536;
	ld.cs.v2.u64 {%rd147, %rd148}, [%rd149];
	add.s64 	%rd150, %rd182, %rd24;
	st.cs.v2.u64 [%rd150], {%rd138, %rd139};
	add.s64 	%rd153, %rd150, 512;
	st.cs.v2.u64 [%rd153], {%rd141, %rd142};
	add.s64 	%rd156, %rd150, 1024;
	st.cs.v2.u64 [%rd156], {%rd144, %rd145};
	add.s64 	%rd159, %rd150, 1536;
	st.cs.v2.u64 [%rd159], {%rd147, %rd148};
	add.s64 	%rd183, %rd183, %rd20;
	add.s64 	%rd162, %rd183, 96;
	add.s64 	%rd182, %rd182, %rd26;
	add.s64 	%rd181, %rd181, %rd26;
	setp.lt.u64 	%p27, %rd162, %rd39;
	@%p27 bra 	$L__BB8_19;
$L__BB8_20:
	setp.ge.u64 	%p28, %rd183, %rd39;
	@%p28 bra 	$L__BB8_40;
	shl.b64 	%rd163, %rd183, 4;
	add.s64 	%rd185, %rd37, %rd163;
	add.s64 	%rd184, %rd38, %rd163;
$L__BB8_22:
	.pragma "nounroll";
	ld.v2.u64 	{%rd164, %rd165}, [%rd184];
	st.v2.u64 	[%rd185], {%rd164, %rd165};
	add.s64 	%rd183, %rd183, 32;
	add.s64 	%rd185, %rd185, 512;
	add.s64 	%rd184, %rd184, 512;
	setp.lt.u64 	%p29, %rd183, %rd39;
	@%p29 bra 	$L__BB8_22;
	bra.uni 	$L__BB8_40;
$L__BB8_27:
	setp.ge.u64 	%p19, %rd19, %rd61;
	mov.u64 	%rd191, %rd18;
	@%p19 bra 	$L__BB8_30;
	add.s64 	%rd66, %rd38, 384;
	mov.u64 	%rd190, %rd21;
	mov.u64 	%rd191, %rd18;
$L__BB8_29:
	add.s64 	%rd130, %rd66, %rd190;
	ld.u32 	%r11, [%rd130+-384];
	ld.u32 	%r12, [%rd130+-256];
	ld.u32 	%r13, [%rd130+-128];
	ld.u32 	%r14, [%rd130];
	add.s64 	%rd131, %rd37, %rd190;
	st.u32 	[%rd131], %r11;
	st.u32 	[%rd131+128], %r12;
	st.u32 	[%rd131+256], %r13;
	st.u32 	[%rd131+384], %r14;
	add.s64 	%rd191, %rd191, %rd20;
	add.s64 	%rd132, %rd191, 96;
	add.s64 	%rd190, %rd190, %rd22;
	setp.lt.u64 	%p20, %rd132, %rd61;
	@%p20 bra 	$L__BB8_29;
$L__BB8_30:
	setp.ge.u64 	%p21, %rd191, %rd61;
	@%p21 bra 	$L__BB8_40;
	shl.b64 	%rd133, %rd191, 2;
	add.s64 	%rd193, %rd37, %rd133;
	add.s64 	%rd192, %rd38, %rd133;
$L__BB8_32:
	.pragma "nounroll";
	ld.u32 	%r15, [%rd192];
	st.u32 	[%rd193], %r15;
	add.s64 	%rd191, %rd191, 32;
	add.s64 	%rd193, %rd193, 128;
	add.s64 	%rd192, %rd192, 128;
	setp.lt.u64 	%p22, %rd191, %rd61;
	@%p22 bra 	$L__BB8_32;
	bra.uni 	$L__BB8_40;
$L__BB8_37:
	setp.ge.u64 	%p33, %rd19, %rd114;
	mov.u64 	%rd196, %rd18;
	@%p33 bra 	$L__BB8_38;
$L__BB8_44:
	add.s64 	%rd168, %rd38, %rd196;
	ld.u8 	%rs2, [%rd168];
	ld.u8 	%rs3, [%rd168+32];
	ld.u8 	%rs4, [%rd168+64];
	ld.u8 	%rs5, [%rd168+96];
	add.s64 	%rd169, %rd37, %rd196;
	st.u8 	[%rd169], %rs2;
	st.u8 	[%rd169+32], %rs3;
	st.u8 	[%rd169+64], %rs4;
	st.u8 	[%rd169+96], %rs5;
	add.s64 	%rd196, %rd196, %rd20;
	add.s64 	%rd170, %rd196, 96;
	setp.lt.u64 	%p34, %rd170, %rd114;
	@%p34 bra 	$L__BB8_44;
$L__BB8_38:
	setp.ge.u64 	%p35, %rd196, %rd114;
	@%p35 bra 	$L__BB8_40;
$L__BB8_39:
	.pragma "nounroll";
	add.s64 	%rd171, %rd38, %rd196;
	ld.u8 	%rs6, [%rd171];
	add.s64 	%rd172, %rd37, %rd196;
	st.u8 	[%rd172], %rs6;
	add.s64 	%rd196, %rd196, 32;
	setp.lt.u64 	%p36, %rd196, %rd114;
	@%p36 bra 	$L__BB8_39;
	bra.uni 	$L__BB8_40;
$L__BB8_43:
	ret;
}
.visible .entry keel_copy_in_rows(
	.param .align 8 .b8 keel_copy_in_rows_param_0[1920],
	.param .u64 keel_copy_in_rows_param_1,
	.param .u64 keel_copy_in_rows_param_2,
	.param .u64 keel_copy_in_rows_param_3,
	.param .u64 keel_copy_in_rows_param_4,
	.param .u64 keel_copy_in_rows_param_5
)
{
	.reg .pred 	%p<40>;
	.reg .b16 	%rs<7>;
	.reg .b32 	%r<17>;
	.reg .b64 	%rd<203>;
	ld.param.u64 	%rd91, [keel_copy_in_rows_param_3];
	ld.param.u64 	%rd90, [keel_copy_in_rows_param_2];
	ld.param.u64 	%rd93, [keel_copy_in_rows_param_5];
	mov.b64 	%rd94, keel_copy_in_rows_param_0;
	mov.u64 	%rd2, %rd94;
	mov.u32 	%r3, %ctaid.x;
	cvt.u64.u32 	%rd179, %r3;
	mov.u32 	%r4, %nctaid.x;
	cvt.u64.u32 	%rd4, %r4;
	mov.u32 	%r5, %tid.x;
	cvt.u64.u32 	%rd5, %r5;
	mov.u32 	%r7, %ntid.x;
	cvt.u64.u32 	%rd6, %r7;
	add.s64 	%rd96, %rd179, 1;
	setp.eq.s64 	%p2, %rd96, %rd4;
	setp.lt.u64 	%p3, %rd5, %rd93;
	and.pred  	%p4, %p2, %p3;
	shl.b64 	%rd176, %rd6, 4;
	@!%p4 bra 	$L__BB9_3;
	bra.uni 	$L__BB9_1;
$L__BB9_1:
	ld.param.u64 	%rd95, [keel_copy_in_rows_param_4];
	cvta.to.global.u64 	%rd1, %rd95;
	shl.b64 	%rd177, %rd5, 4;
	shl.b64 	%rd97, %rd91, 4;
	add.s64 	%rd9, %rd2, %rd97;
	mov.u64 	%rd178, %rd5;
$L__BB9_2:
	add.s64 	%rd98, %rd9, %rd177;
	ld.param.u64 	%rd99, [%rd98];
	add.s64 	%rd100, %rd1, %rd177;
	st.global.u64 	[%rd100], %rd99;
	ld.param.u64 	%rd101, [%rd98+8];
	st.global.u64 	[%rd100+8], %rd101;
	add.s64 	%rd178, %rd178, %rd6;
	add.s64 	%rd177, %rd177, %rd176;
	setp.lt.u64 	%p5, %rd178, %rd93;
	@%p5 bra 	$L__BB9_2;
$L__BB9_3:
	setp.ge.u64 	%p6, %rd179, %rd90;
	@%p6 bra 	$L__BB9_46;
	ld.param.u64 	%rd89, [keel_copy_in_rows_param_1];
	shl.b64 	%rd175, %rd5, 4;
	and.b64  	%rd14, %rd6, 31;
	shl.b64 	%rd15, %rd5, 2;
	and.b64  	%rd102, %rd15, 3968;
	and.b64  	%rd103, %rd5, 31;
	or.b64  	%rd16, %rd102, %rd103;
	or.b64  	%rd17, %rd16, 96;
	shl.b64 	%rd18, %rd6, 2;
	shr.u64 	%rd104, %rd5, 5;
	shl.b64 	%rd105, %rd104, 9;
	shl.b64 	%rd106, %rd103, 2;
	or.b64  	%rd19, %rd105, %rd106;
	shl.b64 	%rd22, %rd103, 4;
	shl.b64 	%rd23, %rd104, 11;
	shl.b64 	%rd24, %rd6, 6;
	mov.b32 	%r8, 4;
	setp.eq.s64 	%p17, %rd14, 0;
$L__BB9_5:
	not.b64 	%rd107, %rd179;
	add.s64 	%rd26, %rd107, %rd90;
	setp.lt.u64 	%p7, %rd26, %rd91;
	mul.lo.s64 	%rd108, %rd26, 24;
	add.s64 	%rd27, %rd89, %rd108;
	mov.u64 	%rd180, %rd26;
	@%p7 bra 	$L__BB9_7;
	ld.u64 %rd180, [%rd27];
$L__BB9_7:
	mov.u64 	%rd181, 0;
	@%p7 bra 	$L__BB9_9;
	add.s64 	%rd115, %rd27, 8;
	ld.u64 %rd181, [%rd115];
$L__BB9_9:
	setp.ge.u64 	%p9, %rd26, %rd91;
	@%p9 bra 	$L__BB9_11;
	shl.b64 	%rd120, %rd26, 2;
	add.s64 	%rd121, %rd2, %rd120;
	ld.param.u32 	%rd35, [%rd121+1536];
	bra.uni 	$L__BB9_12;
$L__BB9_11:
	add.s64 	%rd117, %rd27, 16;
	ld.u64 %rd35, [%rd117];
$L__BB9_12:
	shl.b64 	%rd122, %rd180, 4;
	add.s64 	%rd36, %rd2, %rd122;
	ld.param.u64 	%rd37, [%rd36];
	setp.eq.s64 	%p10, %rd37, 0;
	mov.u32 	%r16, %r8;
	@%p10 bra 	$L__BB9_44;
	add.s64 	%rd38, %rd37, %rd181;
	ld.param.u64 	%rd123, [%rd36+8];
	add.s64 	%rd39, %rd123, %rd181;
	setp.eq.s64 	%p11, %rd38, 0;
	setp.eq.s64 	%p12, %rd39, 0;
	or.pred  	%p1, %p11, %p12;
	@%p1 bra 	$L__BB9_43;
	bra.uni 	$L__BB9_14;
$L__BB9_43:
	selp.u32 	%r16, 1, 0, %p1;
$L__BB9_44:
	or.b32  	%r15, %r16, 4;
	setp.eq.s32 	%p38, %r15, 4;
	@%p38 bra 	$L__BB9_45;
	bra.uni 	$L__BB9_46;
$L__BB9_45:
	add.s64 	%rd179, %rd179, %rd4;
	setp.lt.u64 	%p39, %rd179, %rd90;
	@%p39 bra 	$L__BB9_5;
	bra.uni 	$L__BB9_46;
$L__BB9_14:
	or.b64  	%rd125, %rd38, %rd35;
	or.b64  	%rd126, %rd125, %rd39;
	and.b64  	%rd127, %rd126, 15;
	setp.eq.s64 	%p13, %rd127, 0;
	and.b64  	%rd128, %rd126, 3;
	setp.eq.s64 	%p14, %rd128, 0;
	selp.b64 	%rd129, 4, 1, %p14;
	selp.b64 	%rd124, 16, %rd129, %p13;
	setp.eq.s64 	%p15, %rd124, 4;
	@%p15 bra 	$L__BB9_26;
	setp.ne.s64 	%p16, %rd124, 16;
	@%p16 bra 	$L__BB9_36;
	shr.u64 	%rd40, %rd35, 4;
	@%p17 bra 	$L__BB9_20;
	setp.le.u64 	%p25, %rd40, %rd5;
	@%p25 bra 	$L__BB9_43;
	mov.u64 	%rd183, %rd175;
	mov.u64 	%rd184, %rd5;
$L__BB9_19:
	add.s64 	%rd136, %rd39, %rd183;
	ld.v2.u64 	{%rd137, %rd138}, [%rd136];
	add.s64 	%rd139, %rd38, %rd183;
	st.v2.u64 	[%rd139], {%rd137, %rd138};
	add.s64 	%rd184, %rd184, %rd6;
	add.s64 	%rd183, %rd183, %rd176;
	setp.lt.u64 	%p26, %rd184, %rd40;
	@%p26 bra 	$L__BB9_19;
	bra.uni 	$L__BB9_43;
$L__BB9_26:
	shr.u64 	%rd62, %rd35, 2;
	@%p17 bra 	$L__BB9_30;
	setp.le.u64 	%p18, %rd62, %rd5;
	@%p18 bra 	$L__BB9_43;
	mov.u64 	%rd192, %rd15;
	mov.u64 	%rd193, %rd5;
$L__BB9_29:
	add.s64 	%rd130, %rd39, %rd192;
	ld.u32 	%r9, [%rd130];
	add.s64 	%rd131, %rd38, %rd192;
	st.u32 	[%rd131], %r9;
	add.s64 	%rd193, %rd193, %rd6;
	add.s64 	%rd192, %rd192, %rd18;
	setp.lt.u64 	%p19, %rd193, %rd62;
	@%p19 bra 	$L__BB9_29;
	bra.uni 	$L__BB9_43;
$L__BB9_36:
	@%p17 bra 	$L__BB9_40;
	setp.le.u64 	%p32, %rd35, %rd5;
	@%p32 bra 	$L__BB9_43;
	mov.u64 	%rd200, %rd5;
$L__BB9_39:
	add.s64 	%rd168, %rd39, %rd200;
	ld.u8 	%rs1, [%rd168];
	add.s64 	%rd169, %rd38, %rd200;
	st.u8 	[%rd169], %rs1;
	add.s64 	%rd200, %rd200, %rd6;
	setp.lt.u64 	%p33, %rd200, %rd35;
	@%p33 bra 	$L__BB9_39;
	bra.uni 	$L__BB9_43;
$L__BB9_20:
	setp.ge.u64 	%p27, %rd17, %rd40;
	mov.u64 	%rd188, %rd16;
	@%p27 bra 	$L__BB9_23;
	add.s64 	%rd187, %rd38, %rd23;
	add.s64 	%rd186, %rd39, %rd23;
	mov.u64 	%rd188, %rd16;
$L__BB9_22:
	add.s64 	%rd142, %rd186, %rd22;
	ld.cs.v2.u64 {%rd140, %rd141}, [%rd142];
	add.s64 	%rd145, %rd142, 512;
	ld.cs.v2.u64 {%rd143, %rd144}, [%rd145];
	add.s64 	%rd148, %rd142, 1024;
	ld.cs.v2.u64 {%rd146, %rd147}, [%rd148];
	add.s64 	%rd151, %rd142, 1536;
	ld.cs.v2.u64 {%rd149, %rd150}, [%rd151];
	add.s64 	%rd152, %rd187, %rd22;
	st.cs.v2.u64 [%rd152], {%rd140, %rd141};
	add.s64 	%rd155, %rd152, 512;
	st.cs.v2.u64 [%rd155], {%rd143, %rd144};
	add.s64 	%rd158, %rd152, 1024;
	st.cs.v2.u64 [%rd158], {%rd146, %rd147};
	add.s64 	%rd161, %rd152, 1536;
	st.cs.v2.u64 [%rd161], {%rd149, %rd150};
	add.s64 	%rd188, %rd188, %rd18;
	add.s64 	%rd164, %rd188, 96;
	add.s64 	%rd187, %rd187, %rd24;
	add.s64 	%rd186, %rd186, %rd24;
	setp.lt.u64 	%p28, %rd164, %rd40;
	@%p28 bra 	$L__BB9_22;
$L__BB9_23:
	setp.ge.u64 	%p29, %rd188, %rd40;
	@%p29 bra 	$L__BB9_43;
	shl.b64 	%rd165, %rd188, 4;
	add.s64 	%rd190, %rd38, %rd165;
	add.s64 	%rd189, %rd39, %rd165;
$L__BB9_25:
	.pragma "nounroll";
	ld.v2.u64 	{%rd166, %rd167}, [%rd189];
	st.v2.u64 	[%rd190], {%rd166, %rd167};
	add.s64 	%rd188, %rd188, 32;
	add.s64 	%rd190, %rd190, 512;
	add.s64 	%rd189, %rd189, 512;
	setp.lt.u64 	%p30, %rd188, %rd40;
	@%p30 bra 	$L__BB9_25;
	bra.uni 	$L__BB9_43;
$L__BB9_30:
	setp.ge.u64 	%p20, %rd17, %rd62;
	mov.u64 	%rd196, %rd16;
	@%p20 bra 	$L__BB9_33;
	add.s64 	%rd67, %rd39, 384;
	mov.u64 	%rd195, %rd19;
	mov.u64 	%rd196, %rd16;
$L__BB9_32:
	add.s64 	%rd132, %rd67, %rd195;
	ld.u32 	%r10, [%rd132+-384];
	ld.u32 	%r11, [%rd132+-256];
	ld.u32 	%r12, [%rd132+-128];
	ld.u32 	%r13, [%rd132];
	add.s64 	%rd133, %rd38, %rd195;
	st.u32 	[%rd133], %r10;
	st.u32 	[%rd133+128], %r11;
	st.u32 	[%rd133+256], %r12;
	st.u32 	[%rd133+384], %r13;
	add.s64 	%rd196, %rd196, %rd18;
	add.s64 	%rd134, %rd196, 96;
	add.s64 	%rd195, %rd195, %rd176;
	setp.lt.u64 	%p21, %rd134, %rd62;
	@%p21 bra 	$L__BB9_32;
$L__BB9_33:
	setp.ge.u64 	%p22, %rd196, %rd62;
	@%p22 bra 	$L__BB9_43;
	shl.b64 	%rd135, %rd196, 2;
	add.s64 	%rd198, %rd38, %rd135;
	add.s64 	%rd197, %rd39, %rd135;
$L__BB9_35:
	.pragma "nounroll";
	ld.u32 	%r14, [%rd197];
	st.u32 	[%rd198], %r14;
	add.s64 	%rd196, %rd196, 32;
	add.s64 	%rd198, %rd198, 128;
	add.s64 	%rd197, %rd197, 128;
	setp.lt.u64 	%p23, %rd196, %rd62;
	@%p23 bra 	$L__BB9_35;
	bra.uni 	$L__BB9_43;
$L__BB9_40:
	setp.ge.u64 	%p34, %rd17, %rd35;
	mov.u64 	%rd201, %rd16;
	@%p34 bra 	$L__BB9_41;
$L__BB9_47:
	add.s64 	%rd170, %rd39, %rd201;
	ld.u8 	%rs2, [%rd170];
	ld.u8 	%rs3, [%rd170+32];
	ld.u8 	%rs4, [%rd170+64];
	ld.u8 	%rs5, [%rd170+96];
	add.s64 	%rd171, %rd38, %rd201;
	st.u8 	[%rd171], %rs2;
	st.u8 	[%rd171+32], %rs3;
	st.u8 	[%rd171+64], %rs4;
	st.u8 	[%rd171+96], %rs5;
	add.s64 	%rd201, %rd201, %rd18;
	add.s64 	%rd172, %rd201, 96;
	setp.lt.u64 	%p35, %rd172, %rd35;
	@%p35 bra 	$L__BB9_47;
$L__BB9_41:
	setp.ge.u64 	%p36, %rd201, %rd35;
	@%p36 bra 	$L__BB9_43;
$L__BB9_42:
	.pragma "nounroll";
	add.s64 	%rd173, %rd39, %rd201;
	ld.u8 	%rs6, [%rd173];
	add.s64 	%rd174, %rd38, %rd201;
	st.u8 	[%rd174], %rs6;
	add.s64 	%rd201, %rd201, 32;
	setp.lt.u64 	%p37, %rd201, %rd35;
	@%p37 bra 	$L__BB9_42;
	bra.uni 	$L__BB9_43;
$L__BB9_46:
	ret;
}
.visible .entry keel_copy_in_small(
	.param .align 8 .b8 keel_copy_in_small_param_0[1920],
	.param .u64 keel_copy_in_small_param_1,
	.param .u64 keel_copy_in_small_param_2,
	.param .u64 keel_copy_in_small_param_3
)
{
	.reg .pred 	%p<36>;
	.reg .b16 	%rs<2>;
	.reg .b32 	%r<75>;
	.reg .b64 	%rd<139>;
	ld.param.u64 	%rd62, [keel_copy_in_small_param_3];
	mov.b64 	%rd63, keel_copy_in_small_param_0;
	mov.u32 	%r27, %ctaid.x;
	cvt.u64.u32 	%rd126, %r27;
	mov.u32 	%r28, %nctaid.x;
	cvt.u64.u32 	%rd127, %r28;
	mov.u32 	%r29, %ntid.x;
	cvt.u64.u32 	%rd125, %r29;
	and.b64  	%rd6, %rd125, 255;
	setp.ne.s64 	%p1, %rd6, 0;
	mov.u32 	%r1, %tid.x;
	@%p1 bra 	$L__BB10_2;
	shr.u64 	%rd66, %rd125, 8;
	mul.lo.s64 	%rd67, %rd66, %rd126;
	shr.u32 	%r30, %r1, 8;
	cvt.u64.u32 	%rd68, %r30;
	add.s64 	%rd126, %rd67, %rd68;
	mul.lo.s64 	%rd127, %rd66, %rd127;
	mov.u64 	%rd125, 256;
$L__BB10_2:
	ld.param.u64 	%rd61, [keel_copy_in_small_param_1];
	mov.u64 	%rd2, %rd63;
	setp.eq.s64 	%p2, %rd6, 0;
	cvt.u64.u32 	%rd69, %r1;
	and.b64  	%rd70, %rd69, 255;
	selp.b64 	%rd12, %rd70, %rd69, %p2;
	add.s64 	%rd72, %rd126, 1;
	setp.eq.s64 	%p3, %rd72, %rd127;
	setp.lt.u64 	%p4, %rd12, %rd62;
	and.pred  	%p5, %p3, %p4;
	@!%p5 bra 	$L__BB10_5;
	bra.uni 	$L__BB10_3;
$L__BB10_3:
	ld.param.u64 	%rd64, [keel_copy_in_small_param_2];
	cvta.to.global.u64 	%rd1, %rd64;
	shl.b64 	%rd128, %rd12, 4;
	shl.b64 	%rd14, %rd125, 4;
	shl.b64 	%rd73, %rd61, 4;
	add.s64 	%rd15, %rd2, %rd73;
	mov.u64 	%rd129, %rd12;
$L__BB10_4:
	add.s64 	%rd74, %rd15, %rd128;
	ld.param.u64 	%rd75, [%rd74];
	add.s64 	%rd76, %rd1, %rd128;
	st.global.u64 	[%rd76], %rd75;
	ld.param.u64 	%rd77, [%rd74+8];
	st.global.u64 	[%rd76+8], %rd77;
	add.s64 	%rd129, %rd129, %rd125;
	add.s64 	%rd128, %rd128, %rd14;
	setp.lt.u64 	%p6, %rd129, %rd62;
	@%p6 bra 	$L__BB10_4;
$L__BB10_5:
	cvt.u32.u64 	%r2, %rd61;
	cvt.u32.u64 	%r32, %rd126;
	shl.b32 	%r70, %r32, 2;
	setp.ge.u32 	%p7, %r70, %r2;
	@%p7 bra 	$L__BB10_36;
	cvt.u32.u64 	%r31, %rd127;
	shl.b32 	%r3, %r31, 2;
	add.s32 	%r5, %r2, -1;
	cvt.u32.u64 	%r6, %rd125;
	cvt.u32.u64 	%r7, %rd12;
	shl.b32 	%r8, %r6, 4;
	shl.b32 	%r9, %r7, 4;
	shl.b64 	%rd20, %rd12, 2;
	shl.b64 	%rd21, %rd125, 2;
	bra.uni 	$L__BB10_7;
$L__BB10_35:
	add.s32 	%r70, %r70, %r3;
	setp.lt.u32 	%p35, %r70, %r2;
	@%p35 bra 	$L__BB10_7;
	bra.uni 	$L__BB10_36;
$L__BB10_7:
	setp.lt.u32 	%p8, %r70, %r2;
	selp.b32 	%r33, %r70, %r5, %p8;
	cvt.u64.u32 	%rd78, %r33;
	mul.wide.u32 	%rd79, %r33, 16;
	add.s64 	%rd80, %rd2, %rd79;
	ld.param.u64 	%rd22, [%rd80];
	ld.param.u64 	%rd23, [%rd80+8];
	mul.lo.s64 	%rd81, %rd78, -12;
	add.s64 	%rd82, %rd80, %rd81;
	ld.param.u32 	%r34, [%rd82+1536];
	or.b32  	%r35, %r70, 1;
	setp.lt.u32 	%p9, %r35, %r2;
	selp.b32 	%r36, %r35, %r5, %p9;
	cvt.u64.u32 	%rd83, %r36;
	mul.wide.u32 	%rd84, %r36, 16;
	add.s64 	%rd85, %rd2, %rd84;
	ld.param.u64 	%rd24, [%rd85];
	ld.param.u64 	%rd25, [%rd85+8];
	mul.lo.s64 	%rd86, %rd83, -12;
	add.s64 	%rd87, %rd85, %rd86;
	ld.param.u32 	%r37, [%rd87+1536];
	or.b32  	%r38, %r70, 2;
	setp.lt.u32 	%p10, %r38, %r2;
	selp.b32 	%r39, %r38, %r5, %p10;
	cvt.u64.u32 	%rd88, %r39;
	mul.wide.u32 	%rd89, %r39, 16;
	add.s64 	%rd90, %rd2, %rd89;
	ld.param.u64 	%rd26, [%rd90];
	ld.param.u64 	%rd27, [%rd90+8];
	mul.lo.s64 	%rd91, %rd88, -12;
	add.s64 	%rd92, %rd90, %rd91;
	ld.param.u32 	%r40, [%rd92+1536];
	or.b32  	%r41, %r70, 3;
	setp.lt.u32 	%p11, %r41, %r2;
	selp.b32 	%r42, %r41, %r5, %p11;
	cvt.u64.u32 	%rd93, %r42;
	mul.wide.u32 	%rd94, %r42, 16;
	add.s64 	%rd95, %rd2, %rd94;
	ld.param.u64 	%rd28, [%rd95];
	ld.param.u64 	%rd29, [%rd95+8];
	mul.lo.s64 	%rd96, %rd93, -12;
	add.s64 	%rd97, %rd95, %rd96;
	ld.param.u32 	%r43, [%rd97+1536];
	or.b64  	%rd98, %rd23, %rd22;
	or.b64  	%rd99, %rd98, %rd24;
	or.b64  	%rd100, %rd99, %rd25;
	or.b64  	%rd101, %rd100, %rd26;
	or.b64  	%rd102, %rd101, %rd27;
	or.b64  	%rd103, %rd102, %rd28;
	or.b64  	%rd104, %rd103, %rd29;
	cvt.u32.u64 	%r50, %rd104;
	or.b32  	%r51, %r34, %r50;
	or.b32  	%r52, %r51, %r37;
	or.b32  	%r53, %r52, %r40;
	or.b32  	%r54, %r53, %r43;
	and.b32  	%r55, %r54, 15;
	setp.eq.s32 	%p16, %r55, 0;
	@%p16 bra 	$L__BB10_13;
	add.s32 	%r56, %r70, 4;
	min.u32 	%r16, %r2, %r56;
	setp.ge.u32 	%p17, %r70, %r16;
	mov.u32 	%r72, %r70;
	@%p17 bra 	$L__BB10_35;
	bra.uni 	$L__BB10_9;
$L__BB10_34:
	add.s32 	%r72, %r72, 1;
	setp.lt.u32 	%p24, %r72, %r16;
	@%p24 bra 	$L__BB10_9;
	bra.uni 	$L__BB10_35;
$L__BB10_9:
	.pragma "nounroll";
	mul.wide.u32 	%rd106, %r72, 16;
	add.s64 	%rd55, %rd2, %rd106;
	ld.param.u64 	%rd56, [%rd55];
	setp.eq.s64 	%p18, %rd56, 0;
	@%p18 bra 	$L__BB10_34;
	cvt.u64.u32 	%rd105, %r72;
	mul.lo.s64 	%rd107, %rd105, -12;
	add.s64 	%rd108, %rd55, %rd107;
	ld.param.u32 	%rd57, [%rd108+1536];
	ld.param.u64 	%rd58, [%rd55+8];
	or.b64  	%rd109, %rd56, %rd57;
	or.b64  	%rd110, %rd109, %rd58;
	and.b64  	%rd111, %rd110, 3;
	setp.eq.s64 	%p19, %rd111, 0;
	cvt.u32.u64 	%r69, %rd57;
	@%p19 bra 	$L__BB10_32;
	setp.le.u32 	%p20, %r69, %r7;
	mov.u32 	%r73, %r7;
	@%p20 bra 	$L__BB10_34;
$L__BB10_12:
	.pragma "nounroll";
	cvt.u64.u32 	%rd112, %r73;
	add.s64 	%rd113, %rd58, %rd112;
	ld.u8 	%rs1, [%rd113];
	add.s64 	%rd114, %rd56, %rd112;
	st.u8 	[%rd114], %rs1;
	add.s32 	%r73, %r73, %r6;
	setp.lt.u32 	%p21, %r73, %r69;
	@%p21 bra 	$L__BB10_12;
	bra.uni 	$L__BB10_34;
$L__BB10_32:
	shr.u32 	%r20, %r69, 2;
	setp.le.u32 	%p22, %r20, %r7;
	mov.u64 	%rd138, %rd20;
	mov.u32 	%r74, %r7;
	@%p22 bra 	$L__BB10_34;
$L__BB10_33:
	.pragma "nounroll";
	add.s64 	%rd115, %rd58, %rd138;
	ld.u32 	%r60, [%rd115];
	add.s64 	%rd116, %rd56, %rd138;
	st.u32 	[%rd116], %r60;
	add.s32 	%r74, %r74, %r6;
	add.s64 	%rd138, %rd138, %rd21;
	setp.lt.u32 	%p23, %r74, %r20;
	@%p23 bra 	$L__BB10_33;
	bra.uni 	$L__BB10_34;
$L__BB10_13:
	setp.ne.s64 	%p12, %rd22, 0;
	selp.b32 	%r44, %r34, 0, %p12;
	selp.b32 	%r11, %r44, 0, %p8;
	setp.ne.s64 	%p13, %rd24, 0;
	selp.b32 	%r45, %r37, 0, %p13;
	selp.b32 	%r12, %r45, 0, %p9;
	max.u32 	%r46, %r12, %r11;
	setp.ne.s64 	%p14, %rd26, 0;
	selp.b32 	%r47, %r40, 0, %p14;
	selp.b32 	%r13, %r47, 0, %p10;
	max.u32 	%r48, %r13, %r46;
	setp.ne.s64 	%p15, %rd28, 0;
	selp.b32 	%r49, %r43, 0, %p15;
	selp.b32 	%r14, %r49, 0, %p11;
	max.u32 	%r15, %r14, %r48;
	setp.ge.u32 	%p25, %r9, %r15;
	@%p25 bra 	$L__BB10_35;
	mov.u32 	%r71, %r9;
	bra.uni 	$L__BB10_15;
$L__BB10_31:
	add.s32 	%r71, %r61, %r8;
	setp.lt.u32 	%p34, %r71, %r15;
	@%p34 bra 	$L__BB10_15;
	bra.uni 	$L__BB10_35;
$L__BB10_15:
	cvt.u64.u32 	%rd30, %r71;
	setp.ge.u32 	%p26, %r71, %r11;
	mov.u64 	%rd136, 0;
	mov.u64 	%rd130, %rd136;
	mov.u64 	%rd131, %rd136;
	@%p26 bra 	$L__BB10_17;
	add.s64 	%rd31, %rd23, %rd30;
	ld.v2.u64 	{%rd130, %rd131}, [%rd31];
$L__BB10_17:
	cvt.u32.u64 	%r61, %rd30;
	setp.ge.u32 	%p27, %r61, %r12;
	mov.u64 	%rd132, %rd136;
	mov.u64 	%rd133, %rd136;
	@%p27 bra 	$L__BB10_19;
	add.s64 	%rd36, %rd25, %rd30;
	ld.v2.u64 	{%rd132, %rd133}, [%rd36];
$L__BB10_19:
	setp.ge.u32 	%p28, %r61, %r13;
	mov.u64 	%rd134, %rd136;
	mov.u64 	%rd135, %rd136;
	@%p28 bra 	$L__BB10_21;
	add.s64 	%rd41, %rd27, %rd30;
	ld.v2.u64 	{%rd134, %rd135}, [%rd41];
$L__BB10_21:
	setp.ge.u32 	%p29, %r61, %r14;
	mov.u64 	%rd137, %rd136;
	@%p29 bra 	$L__BB10_23;
	add.s64 	%rd46, %rd29, %rd30;
	ld.v2.u64 	{%rd136, %rd137}, [%rd46];
$L__BB10_23:
	setp.ge.u32 	%p30, %r61, %r11;
	@%p30 bra 	$L__BB10_25;
	add.s64 	%rd51, %rd22, %rd30;
	st.v2.u64 	[%rd51], {%rd130, %rd131};
$L__BB10_25:
	@%p27 bra 	$L__BB10_27;
	add.s64 	%rd52, %rd24, %rd30;
	st.v2.u64 	[%rd52], {%rd132, %rd133};
$L__BB10_27:
	@%p28 bra 	$L__BB10_29;
	add.s64 	%rd53, %rd26, %rd30;
	st.v2.u64 	[%rd53], {%rd134, %rd135};
$L__BB10_29:
	@%p29 bra 	$L__BB10_31;
	add.s64 	%rd54, %rd28, %rd30;
	st.v2.u64 	[%rd54], {%rd136, %rd137};
	bra.uni 	$L__BB10_31;
$L__BB10_36:
	ret;
}
.visible .entry keel_copy_out(
	.param .u64 keel_copy_out_param_0,
	.param .u64 keel_copy_out_param_1,
	.param .u64 keel_copy_out_param_2,
	.param .u64 keel_copy_out_param_3,
	.param .u64 keel_copy_out_param_4,
	.param .u64 keel_copy_out_param_5
)
{
	.reg .pred 	%p<37>;
	.reg .b16 	%rs<7>;
	.reg .b32 	%r<20>;
	.reg .b64 	%rd<189>;
	ld.param.u64 	%rd82, [keel_copy_out_param_2];
	mov.u32 	%r3, %ctaid.x;
	cvt.u64.u32 	%rd166, %r3;
	mov.u32 	%r4, %nctaid.x;
	cvt.u64.u32 	%rd4, %r4;
	mov.u32 	%r5, %tid.x;
	cvt.u64.u32 	%rd5, %r5;
	setp.ge.u64 	%p2, %rd166, %rd82;
	@%p2 bra 	$L__BB11_38;
	ld.param.u64 	%rd83, [keel_copy_out_param_3];
	ld.param.u64 	%rd81, [keel_copy_out_param_0];
	ld.param.u64 	%rd86, [keel_copy_out_param_1];
	cvta.to.global.u64 	%rd1, %rd86;
	cvta.to.global.u64 	%rd2, %rd81;
	mov.u32 	%r6, %ntid.x;
	cvt.u64.u32 	%rd6, %r6;
	and.b64  	%rd7, %rd6, 31;
	shl.b64 	%rd8, %rd5, 2;
	and.b64  	%rd87, %rd8, 3968;
	and.b64  	%rd88, %rd5, 31;
	or.b64  	%rd9, %rd87, %rd88;
	or.b64  	%rd10, %rd9, 96;
	shl.b64 	%rd11, %rd6, 2;
	shr.u64 	%rd89, %rd5, 5;
	shl.b64 	%rd90, %rd89, 9;
	shl.b64 	%rd91, %rd88, 2;
	or.b64  	%rd12, %rd90, %rd91;
	shl.b64 	%rd13, %rd6, 4;
	shl.b64 	%rd14, %rd5, 4;
	shl.b64 	%rd15, %rd88, 4;
	shl.b64 	%rd16, %rd89, 11;
	shl.b64 	%rd17, %rd6, 6;
	mov.b32 	%r7, 4;
	setp.eq.s64 	%p11, %rd7, 0;
$L__BB11_2:
	setp.lt.u64 	%p3, %rd166, %rd83;
	mul.lo.s64 	%rd92, %rd166, 24;
	mov.u64 	%rd167, %rd166;
	@%p3 bra 	$L__BB11_4;
	add.s64 	%rd94, %rd81, %rd92;
	ld.u64 %rd167, [%rd94];
$L__BB11_4:
	add.s64 	%rd104, %rd2, %rd92;
	cvta.global.u64 	%rd105, %rd104;
	add.s64 	%rd96, %rd105, 8;
	ld.u64 %rd95, [%rd96];
	add.s64 	%rd98, %rd105, 16;
	ld.u64 %rd97, [%rd98];
	shl.b64 	%rd106, %rd167, 4;
	add.s64 	%rd107, %rd1, %rd106;
	cvta.global.u64 	%rd100, %rd107;
	ld.u64 %rd99, [%rd100];
	add.s64 	%rd102, %rd100, 8;
	ld.u64 %rd101, [%rd102];
	setp.eq.s64 	%p4, %rd99, 0;
	mov.u32 	%r19, %r7;
	@%p4 bra 	$L__BB11_36;
	add.s64 	%rd26, %rd99, %rd95;
	add.s64 	%rd27, %rd101, %rd95;
	setp.eq.s64 	%p5, %rd26, 0;
	setp.eq.s64 	%p6, %rd27, 0;
	or.pred  	%p1, %p5, %p6;
	@%p1 bra 	$L__BB11_35;
	bra.uni 	$L__BB11_6;
$L__BB11_35:
	selp.u32 	%r19, 1, 0, %p1;
$L__BB11_36:
	or.b32  	%r14, %r19, 4;
	setp.eq.s32 	%p32, %r14, 4;
	@%p32 bra 	$L__BB11_37;
	bra.uni 	$L__BB11_44;
$L__BB11_37:
	add.s64 	%rd166, %rd166, %rd4;
	setp.lt.u64 	%p33, %rd166, %rd82;
	@%p33 bra 	$L__BB11_2;
	bra.uni 	$L__BB11_38;
$L__BB11_6:
	or.b64  	%rd109, %rd26, %rd97;
	or.b64  	%rd110, %rd109, %rd27;
	and.b64  	%rd111, %rd110, 15;
	setp.eq.s64 	%p7, %rd111, 0;
	and.b64  	%rd112, %rd110, 3;
	setp.eq.s64 	%p8, %rd112, 0;
	selp.b64 	%rd113, 4, 1, %p8;
	selp.b64 	%rd108, 16, %rd113, %p7;
	setp.eq.s64 	%p9, %rd108, 4;
	@%p9 bra 	$L__BB11_18;
	setp.ne.s64 	%p10, %rd108, 16;
	@%p10 bra 	$L__BB11_28;
	shr.u64 	%rd28, %rd97, 4;
	@%p11 bra 	$L__BB11_12;
	setp.le.u64 	%p19, %rd28, %rd5;
	@%p19 bra 	$L__BB11_35;
	mov.u64 	%rd168, %rd14;
	mov.u64 	%rd169, %rd5;
$L__BB11_11:
	add.s64 	%rd120, %rd27, %rd168;
	ld.v2.u64 	{%rd121, %rd122}, [%rd120];
	add.s64 	%rd123, %rd26, %rd168;
	st.v2.u64 	[%rd123], {%rd121, %rd122};
	add.s64 	%rd169, %rd169, %rd6;
	add.s64 	%rd168, %rd168, %rd13;
	setp.lt.u64 	%p20, %rd169, %rd28;
	@%p20 bra 	$L__BB11_11;
	bra.uni 	$L__BB11_35;
$L__BB11_18:
	shr.u64 	%rd50, %rd97, 2;
	@%p11 bra 	$L__BB11_22;
	setp.le.u64 	%p12, %rd50, %rd5;
	@%p12 bra 	$L__BB11_35;
	mov.u64 	%rd177, %rd8;
	mov.u64 	%rd178, %rd5;
$L__BB11_21:
	add.s64 	%rd114, %rd27, %rd177;
	ld.u32 	%r8, [%rd114];
	add.s64 	%rd115, %rd26, %rd177;
	st.u32 	[%rd115], %r8;
	add.s64 	%rd178, %rd178, %rd6;
	add.s64 	%rd177, %rd177, %rd11;
	setp.lt.u64 	%p13, %rd178, %rd50;
	@%p13 bra 	$L__BB11_21;
	bra.uni 	$L__BB11_35;
$L__BB11_28:
	@%p11 bra 	$L__BB11_32;
	setp.le.u64 	%p26, %rd97, %rd5;
	@%p26 bra 	$L__BB11_35;
	mov.u64 	%rd185, %rd5;
$L__BB11_31:
	add.s64 	%rd152, %rd27, %rd185;
	ld.u8 	%rs1, [%rd152];
	add.s64 	%rd153, %rd26, %rd185;
	st.u8 	[%rd153], %rs1;
	add.s64 	%rd185, %rd185, %rd6;
	setp.lt.u64 	%p27, %rd185, %rd97;
	@%p27 bra 	$L__BB11_31;
	bra.uni 	$L__BB11_35;
$L__BB11_12:
	setp.ge.u64 	%p21, %rd10, %rd28;
	mov.u64 	%rd173, %rd9;
	@%p21 bra 	$L__BB11_15;
	add.s64 	%rd172, %rd26, %rd16;
	add.s64 	%rd171, %rd27, %rd16;
	mov.u64 	%rd173, %rd9;
$L__BB11_14:
	add.s64 	%rd126, %rd171, %rd15;
	ld.cs.v2.u64 {%rd124, %rd125}, [%rd126];
	add.s64 	%rd129, %rd126, 512;
	ld.cs.v2.u64 {%rd127, %rd128}, [%rd129];
	add.s64 	%rd132, %rd126, 1024;
	ld.cs.v2.u64 {%rd130, %rd131}, [%rd132];
	add.s64 	%rd135, %rd126, 1536;
	ld.cs.v2.u64 {%rd133, %rd134}, [%rd135];
	add.s64 	%rd136, %rd172, %rd15;
	st.cs.v2.u64 [%rd136], {%rd124, %rd125};
	add.s64 	%rd139, %rd136, 512;
	st.cs.v2.u64 [%rd139], {%rd127, %rd128};
	add.s64 	%rd142, %rd136, 1024;
	st.cs.v2.u64 [%rd142], {%rd130, %rd131};
	add.s64 	%rd145, %rd136, 1536;
	st.cs.v2.u64 [%rd145], {%rd133, %rd134};
	add.s64 	%rd173, %rd173, %rd11;
	add.s64 	%rd148, %rd173, 96;
	add.s64 	%rd172, %rd172, %rd17;
	add.s64 	%rd171, %rd171, %rd17;
	setp.lt.u64 	%p22, %rd148, %rd28;
	@%p22 bra 	$L__BB11_14;
$L__BB11_15:
	setp.ge.u64 	%p23, %rd173, %rd28;
	@%p23 bra 	$L__BB11_35;
	shl.b64 	%rd149, %rd173, 4;
	add.s64 	%rd175, %rd26, %rd149;
	add.s64 	%rd174, %rd27, %rd149;
$L__BB11_17:
	.pragma "nounroll";
	ld.v2.u64 	{%rd150, %rd151}, [%rd174];
	st.v2.u64 	[%rd175], {%rd150, %rd151};
	add.s64 	%rd173, %rd173, 32;
	add.s64 	%rd175, %rd175, 512;
	add.s64 	%rd174, %rd174, 512;
	setp.lt.u64 	%p24, %rd173, %rd28;
	@%p24 bra 	$L__BB11_17;
	bra.uni 	$L__BB11_35;
$L__BB11_22:
	setp.ge.u64 	%p14, %rd10, %rd50;
	mov.u64 	%rd181, %rd9;
	@%p14 bra 	$L__BB11_25;
	add.s64 	%rd55, %rd27, 384;
	mov.u64 	%rd180, %rd12;
	mov.u64 	%rd181, %rd9;
$L__BB11_24:
	add.s64 	%rd116, %rd55, %rd180;
	ld.u32 	%r9, [%rd116+-384];
	ld.u32 	%r10, [%rd116+-256];
	ld.u32 	%r11, [%rd116+-128];
	ld.u32 	%r12, [%rd116];
	add.s64 	%rd117, %rd26, %rd180;
	st.u32 	[%rd117], %r9;
	st.u32 	[%rd117+128], %r10;
	st.u32 	[%rd117+256], %r11;
	st.u32 	[%rd117+384], %r12;
	add.s64 	%rd181, %rd181, %rd11;
	add.s64 	%rd118, %rd181, 96;
	add.s64 	%rd180, %rd180, %rd13;
	setp.lt.u64 	%p15, %rd118, %rd50;
	@%p15 bra 	$L__BB11_24;
$L__BB11_25:
	setp.ge.u64 	%p16, %rd181, %rd50;
	@%p16 bra 	$L__BB11_35;
	shl.b64 	%rd119, %rd181, 2;
	add.s64 	%rd183, %rd26, %rd119;
	add.s64 	%rd182, %rd27, %rd119;
$L__BB11_27:
	.pragma "nounroll";
	ld.u32 	%r13, [%rd182];
	st.u32 	[%rd183], %r13;
	add.s64 	%rd181, %rd181, 32;
	add.s64 	%rd183, %rd183, 128;
	add.s64 	%rd182, %rd182, 128;
	setp.lt.u64 	%p17, %rd181, %rd50;
	@%p17 bra 	$L__BB11_27;
	bra.uni 	$L__BB11_35;
$L__BB11_32:
	setp.ge.u64 	%p28, %rd10, %rd97;
	mov.u64 	%rd186, %rd9;
	@%p28 bra 	$L__BB11_33;
$L__BB11_45:
	add.s64 	%rd154, %rd27, %rd186;
	ld.u8 	%rs2, [%rd154];
	ld.u8 	%rs3, [%rd154+32];
	ld.u8 	%rs4, [%rd154+64];
	ld.u8 	%rs5, [%rd154+96];
	add.s64 	%rd155, %rd26, %rd186;
	st.u8 	[%rd155], %rs2;
	st.u8 	[%rd155+32], %rs3;
	st.u8 	[%rd155+64], %rs4;
	st.u8 	[%rd155+96], %rs5;
	add.s64 	%rd186, %rd186, %rd11;
	add.s64 	%rd156, %rd186, 96;
	setp.lt.u64 	%p29, %rd156, %rd97;
	@%p29 bra 	$L__BB11_45;
$L__BB11_33:
	setp.ge.u64 	%p30, %rd186, %rd97;
	@%p30 bra 	$L__BB11_35;
$L__BB11_34:
	.pragma "nounroll";
	add.s64 	%rd157, %rd27, %rd186;
	ld.u8 	%rs6, [%rd157];
	add.s64 	%rd158, %rd26, %rd186;
	st.u8 	[%rd158], %rs6;
	add.s64 	%rd186, %rd186, 32;
	setp.lt.u64 	%p31, %rd186, %rd97;
	@%p31 bra 	$L__BB11_34;
	bra.uni 	$L__BB11_35;
$L__BB11_38:
	cvt.u32.u64 	%r15, %rd5;
	bar.sync 	0;
	setp.ne.s32 	%p34, %r15, 0;
	@%p34 bra 	$L__BB11_44;
	ld.param.u64 	%rd84, [keel_copy_out_param_4];
	atom.acq_rel.gpu.add.u64 %rd159, [%rd84], 1;
	add.s64 	%rd77, %rd159, 1;
	and.b64  	%rd161, %rd77, -4294967296;
	setp.ne.s64 	%p35, %rd161, 0;
	@%p35 bra 	$L__BB11_41;
	bra.uni 	$L__BB11_40;
$L__BB11_41:
	div.u64 	%rd188, %rd77, %rd4;
	bra.uni 	$L__BB11_42;
$L__BB11_40:
	cvt.u32.u64 	%r16, %rd4;
	cvt.u32.u64 	%r17, %rd77;
	div.u32 	%r18, %r17, %r16;
	cvt.u64.u32 	%rd188, %r18;
$L__BB11_42:
	mul.lo.s64 	%rd162, %rd188, %rd4;
	sub.s64 	%rd163, %rd77, %rd162;
	setp.ne.s64 	%p36, %rd163, 0;
	@%p36 bra 	$L__BB11_44;
	ld.param.u64 	%rd164, [keel_copy_out_param_5];
	st.release.sys.u64 [%rd164], %rd188;
$L__BB11_44:
	ret;
}
.visible .entry keel_copy_out_small(
	.param .u64 keel_copy_out_small_param_0,
	.param .u64 keel_copy_out_small_param_1,
	.param .u64 keel_copy_out_small_param_2,
	.param .u64 keel_copy_out_small_param_3,
	.param .u64 keel_copy_out_small_param_4
)
{
	.reg .pred 	%p<33>;
	.reg .b16 	%rs<2>;
	.reg .b32 	%r<72>;
	.reg .b64 	%rd<138>;
	ld.param.u64 	%rd45, [keel_copy_out_small_param_2];
	ld.param.u64 	%rd47, [keel_copy_out_small_param_3];
	cvta.to.global.u64 	%rd1, %rd47;
	mov.u32 	%r65, %ctaid.x;
	cvt.u64.u32 	%rd2, %r65;
	mov.u32 	%r66, %nctaid.x;
	mov.u32 	%r3, %tid.x;
	mov.u32 	%r4, %ntid.x;
	cvt.u64.u32 	%rd48, %r4;
	and.b64  	%rd3, %rd48, 255;
	setp.ne.s64 	%p1, %rd3, 0;
	@%p1 bra 	$L__BB12_2;
	shr.u64 	%rd49, %rd48, 8;
	shr.u32 	%r35, %r3, 8;
	cvt.u32.u64 	%r36, %rd49;
	mul.lo.s32 	%r66, %r66, %r36;
	mad.lo.s32 	%r65, %r65, %r36, %r35;
$L__BB12_2:
	shl.b64 	%rd52, %rd2, 3;
	add.s64 	%rd4, %rd1, %rd52;
	cvta.global.u64 	%rd51, %rd4;
	ld.u64 %rd50, [%rd51];
	cvt.u32.u64 	%r9, %rd45;
	shl.b32 	%r67, %r65, 2;
	setp.ge.u32 	%p2, %r67, %r9;
	@%p2 bra 	$L__BB12_33;
	ld.param.u64 	%rd44, [keel_copy_out_small_param_1];
	ld.param.u64 	%rd43, [keel_copy_out_small_param_0];
	shl.b32 	%r10, %r66, 2;
	setp.eq.s64 	%p3, %rd3, 0;
	and.b32  	%r37, %r3, 255;
	selp.b32 	%r12, %r37, %r3, %p3;
	add.s32 	%r13, %r9, -1;
	selp.b32 	%r14, 256, %r4, %p3;
	shl.b32 	%r15, %r14, 4;
	shl.b32 	%r16, %r12, 4;
	bra.uni 	$L__BB12_4;
$L__BB12_32:
	add.s32 	%r67, %r67, %r10;
	setp.lt.u32 	%p31, %r67, %r9;
	@%p31 bra 	$L__BB12_4;
	bra.uni 	$L__BB12_33;
$L__BB12_4:
	setp.lt.u32 	%p4, %r67, %r9;
	selp.b32 	%r38, %r67, %r13, %p4;
	mul.wide.u32 	%rd77, %r38, 16;
	add.s64 	%rd54, %rd44, %rd77;
	ld.u64 %rd53, [%rd54];
	add.s64 	%rd56, %rd54, 8;
	ld.u64 %rd55, [%rd56];
	mul.wide.u32 	%rd78, %r38, 24;
	add.s64 	%rd79, %rd43, %rd78;
	add.s64 	%rd58, %rd79, 16;
	ld.u64 %rd57, [%rd58];
	or.b32  	%r40, %r67, 1;
	setp.lt.u32 	%p5, %r40, %r9;
	selp.b32 	%r41, %r40, %r13, %p5;
	mul.wide.u32 	%rd80, %r41, 16;
	add.s64 	%rd60, %rd44, %rd80;
	ld.u64 %rd59, [%rd60];
	add.s64 	%rd62, %rd60, 8;
	ld.u64 %rd61, [%rd62];
	mul.wide.u32 	%rd81, %r41, 24;
	add.s64 	%rd82, %rd43, %rd81;
	add.s64 	%rd64, %rd82, 16;
	ld.u64 %rd63, [%rd64];
	or.b32  	%r43, %r67, 2;
	setp.lt.u32 	%p6, %r43, %r9;
	selp.b32 	%r44, %r43, %r13, %p6;
	mul.wide.u32 	%rd83, %r44, 16;
	add.s64 	%rd66, %rd44, %rd83;
	ld.u64 %rd65, [%rd66];
	add.s64 	%rd68, %rd66, 8;
	ld.u64 %rd67, [%rd68];
	mul.wide.u32 	%rd84, %r44, 24;
	add.s64 	%rd85, %rd43, %rd84;
	add.s64 	%rd70, %rd85, 16;
	ld.u64 %rd69, [%rd70];
	or.b32  	%r46, %r67, 3;
	setp.lt.u32 	%p7, %r46, %r9;
	selp.b32 	%r47, %r46, %r13, %p7;
	mul.wide.u32 	%rd86, %r47, 16;
	add.s64 	%rd72, %rd44, %rd86;
	ld.u64 %rd71, [%rd72];
	add.s64 	%rd74, %rd72, 8;
	ld.u64 %rd73, [%rd74];
	mul.wide.u32 	%rd87, %r47, 24;
	add.s64 	%rd88, %rd43, %rd87;
	add.s64 	%rd76, %rd88, 16;
	ld.u64 %rd75, [%rd76];
	or.b64  	%rd89, %rd55, %rd53;
	or.b64  	%rd90, %rd89, %rd57;
	or.b64  	%rd91, %rd90, %rd59;
	or.b64  	%rd92, %rd91, %rd61;
	or.b64  	%rd93, %rd92, %rd63;
	or.b64  	%rd94, %rd93, %rd65;
	or.b64  	%rd95, %rd94, %rd67;
	or.b64  	%rd96, %rd95, %rd69;
	or.b64  	%rd97, %rd96, %rd71;
	or.b64  	%rd98, %rd97, %rd73;
	or.b64  	%rd99, %rd98, %rd75;
	and.b64  	%rd100, %rd99, 15;
	setp.eq.s64 	%p12, %rd100, 0;
	@%p12 bra 	$L__BB12_10;
	add.s32 	%r55, %r67, 4;
	min.u32 	%r23, %r9, %r55;
	setp.ge.u32 	%p13, %r67, %r23;
	mov.u32 	%r69, %r67;
	@%p13 bra 	$L__BB12_32;
	bra.uni 	$L__BB12_6;
$L__BB12_31:
	add.s32 	%r69, %r69, 1;
	setp.lt.u32 	%p20, %r69, %r23;
	@%p20 bra 	$L__BB12_6;
	bra.uni 	$L__BB12_32;
$L__BB12_6:
	.pragma "nounroll";
	mul.wide.u32 	%rd107, %r69, 16;
	add.s64 	%rd102, %rd44, %rd107;
	ld.u64 %rd101, [%rd102];
	add.s64 	%rd104, %rd102, 8;
	ld.u64 %rd103, [%rd104];
	mul.wide.u32 	%rd108, %r69, 24;
	add.s64 	%rd109, %rd43, %rd108;
	add.s64 	%rd106, %rd109, 16;
	ld.u64 %rd105, [%rd106];
	setp.eq.s64 	%p14, %rd101, 0;
	@%p14 bra 	$L__BB12_31;
	cvt.u32.u64 	%r27, %rd105;
	or.b64  	%rd110, %rd103, %rd101;
	or.b64  	%rd111, %rd110, %rd105;
	and.b64  	%rd112, %rd111, 3;
	setp.eq.s64 	%p15, %rd112, 0;
	@%p15 bra 	$L__BB12_29;
	setp.ge.u32 	%p16, %r12, %r27;
	mov.u32 	%r70, %r12;
	@%p16 bra 	$L__BB12_31;
$L__BB12_9:
	.pragma "nounroll";
	cvt.u64.u32 	%rd113, %r70;
	add.s64 	%rd114, %rd103, %rd113;
	ld.u8 	%rs1, [%rd114];
	add.s64 	%rd115, %rd101, %rd113;
	st.u8 	[%rd115], %rs1;
	add.s32 	%r70, %r70, %r14;
	setp.lt.u32 	%p17, %r70, %r27;
	@%p17 bra 	$L__BB12_9;
	bra.uni 	$L__BB12_31;
$L__BB12_29:
	shr.u32 	%r28, %r27, 2;
	setp.le.u32 	%p18, %r28, %r12;
	mov.u32 	%r71, %r12;
	@%p18 bra 	$L__BB12_31;
$L__BB12_30:
	.pragma "nounroll";
	mul.wide.u32 	%rd116, %r71, 4;
	add.s64 	%rd117, %rd103, %rd116;
	ld.u32 	%r56, [%rd117];
	add.s64 	%rd118, %rd101, %rd116;
	st.u32 	[%rd118], %r56;
	add.s32 	%r71, %r71, %r14;
	setp.lt.u32 	%p19, %r71, %r28;
	@%p19 bra 	$L__BB12_30;
	bra.uni 	$L__BB12_31;
$L__BB12_10:
	cvt.u32.u64 	%r39, %rd57;
	cvt.u32.u64 	%r42, %rd63;
	cvt.u32.u64 	%r45, %rd69;
	cvt.u32.u64 	%r48, %rd75;
	setp.ne.s64 	%p8, %rd53, 0;
	selp.b32 	%r49, %r39, 0, %p8;
	selp.b32 	%r18, %r49, 0, %p4;
	setp.ne.s64 	%p9, %rd59, 0;
	selp.b32 	%r50, %r42, 0, %p9;
	selp.b32 	%r19, %r50, 0, %p5;
	max.u32 	%r51, %r19, %r18;
	setp.ne.s64 	%p10, %rd65, 0;
	selp.b32 	%r52, %r45, 0, %p10;
	selp.b32 	%r20, %r52, 0, %p6;
	max.u32 	%r53, %r20, %r51;
	setp.ne.s64 	%p11, %rd71, 0;
	selp.b32 	%r54, %r48, 0, %p11;
	selp.b32 	%r21, %r54, 0, %p7;
	max.u32 	%r22, %r21, %r53;
	setp.ge.u32 	%p21, %r16, %r22;
	@%p21 bra 	$L__BB12_32;
	mov.u32 	%r68, %r16;
	bra.uni 	$L__BB12_12;
$L__BB12_28:
	add.s32 	%r68, %r57, %r15;
	setp.lt.u32 	%p30, %r68, %r22;
	@%p30 bra 	$L__BB12_12;
	bra.uni 	$L__BB12_32;
$L__BB12_12:
	cvt.u64.u32 	%rd14, %r68;
	setp.ge.u32 	%p22, %r68, %r18;
	mov.u64 	%rd136, 0;
	mov.u64 	%rd130, %rd136;
	mov.u64 	%rd131, %rd136;
	@%p22 bra 	$L__BB12_14;
	add.s64 	%rd15, %rd55, %rd14;
	ld.v2.u64 	{%rd130, %rd131}, [%rd15];
$L__BB12_14:
	cvt.u32.u64 	%r57, %rd14;
	setp.ge.u32 	%p23, %r57, %r19;
	mov.u64 	%rd132, %rd136;
	mov.u64 	%rd133, %rd136;
	@%p23 bra 	$L__BB12_16;
	add.s64 	%rd20, %rd61, %rd14;
	ld.v2.u64 	{%rd132, %rd133}, [%rd20];
$L__BB12_16:
	setp.ge.u32 	%p24, %r57, %r20;
	mov.u64 	%rd134, %rd136;
	mov.u64 	%rd135, %rd136;
	@%p24 bra 	$L__BB12_18;
	add.s64 	%rd25, %rd67, %rd14;
	ld.v2.u64 	{%rd134, %rd135}, [%rd25];
$L__BB12_18:
	setp.ge.u32 	%p25, %r57, %r21;
	mov.u64 	%rd137, %rd136;
	@%p25 bra 	$L__BB12_20;
	add.s64 	%rd30, %rd73, %rd14;
	ld.v2.u64 	{%rd136, %rd137}, [%rd30];
$L__BB12_20:
	setp.ge.u32 	%p26, %r57, %r18;
	@%p26 bra 	$L__BB12_22;
	add.s64 	%rd35, %rd53, %rd14;
	st.v2.u64 	[%rd35], {%rd130, %rd131};
$L__BB12_22:
	@%p23 bra 	$L__BB12_24;
	add.s64 	%rd36, %rd59, %rd14;
	st.v2.u64 	[%rd36], {%rd132, %rd133};
$L__BB12_24:
	@%p24 bra 	$L__BB12_26;
	add.s64 	%rd37, %rd65, %rd14;
	st.v2.u64 	[%rd37], {%rd134, %rd135};
$L__BB12_26:
	@%p25 bra 	$L__BB12_28;
	add.s64 	%rd38, %rd71, %rd14;
	st.v2.u64 	[%rd38], {%rd136, %rd137};
	bra.uni 	$L__BB12_28;
$L__BB12_33:
	bar.sync 	0;
	setp.ne.s32 	%p32, %r3, 0;
	@%p32 bra 	$L__BB12_35;
	ld.param.u64 	%rd46, [keel_copy_out_small_param_4];
	add.s64 	%rd129, %rd50, 1;
	add.s64 	%rd128, %rd46, %rd52;
	st.global.u64 	[%rd4], %rd129;
	st.release.sys.u64 [%rd128], %rd129;
$L__BB12_35:
	ret;
}
.visible .entry keel_mark(
	.param .u64 keel_mark_param_0,
	.param .u64 keel_mark_param_1,
	.param .u64 keel_mark_param_2,
	.param .u64 keel_mark_param_3
)
{
	.reg .pred 	%p<4>;
	.reg .b32 	%r<8>;
	.reg .b64 	%rd<30>;
	ld.param.u64 	%rd16, [keel_mark_param_2];
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r3, %tid.x;
	cvt.u64.u32 	%rd19, %r3;
	mov.u32 	%r4, %ntid.x;
	mul.wide.u32 	%rd20, %r1, %r4;
	add.s64 	%rd27, %rd20, %rd19;
	setp.ge.u64 	%p1, %rd27, %rd16;
	@%p1 bra 	$L__BB13_6;
	ld.param.u64 	%rd17, [keel_mark_param_3];
	ld.param.u64 	%rd15, [keel_mark_param_1];
	ld.param.u64 	%rd18, [keel_mark_param_0];
	cvta.to.global.u64 	%rd1, %rd18;
	mov.u32 	%r2, %nctaid.x;
	mul.wide.u32 	%rd3, %r4, %r2;
	shl.b64 	%rd28, %rd27, 3;
	shl.b64 	%rd5, %rd3, 3;
	cvt.u32.u64 	%r5, %rd17;
	bra.uni 	$L__BB13_2;
$L__BB13_4:
	div.u64 	%rd29, %rd8, %rd17;
$L__BB13_5:
	add.s64 	%rd9, %rd15, %rd28;
	st.release.sys.u64 [%rd9], %rd29;
	add.s64 	%rd28, %rd28, %rd5;
	add.s64 	%rd27, %rd27, %rd3;
	setp.lt.u64 	%p3, %rd27, %rd16;
	@%p3 bra 	$L__BB13_2;
	bra.uni 	$L__BB13_6;
$L__BB13_2:
	add.s64 	%rd21, %rd1, %rd28;
	ld.global.u64 	%rd22, [%rd21];
	add.s64 	%rd8, %rd22, %rd17;
	st.global.u64 	[%rd21], %rd8;
	or.b64  	%rd23, %rd8, %rd17;
	and.b64  	%rd24, %rd23, -4294967296;
	setp.ne.s64 	%p2, %rd24, 0;
	@%p2 bra 	$L__BB13_4;
	cvt.u32.u64 	%r6, %rd8;
	div.u32 	%r7, %r6, %r5;
	cvt.u64.u32 	%rd29, %r7;
	bra.uni 	$L__BB13_5;
$L__BB13_6:
	ret;
}
.visible .entry keel_matmul(
	.param .u64 keel_matmul_param_0,
	.param .u64 keel_matmul_param_1,
	.param .u64 keel_matmul_param_2,
	.param .u32 keel_matmul_param_3,
	.param .u64 keel_matmul_param_4,
	.param .u64 keel_matmul_param_5,
	.param .u64 keel_matmul_param_6
)
{
	.reg .pred 	%p<10>;
	.reg .b32 	%r<11>;
	.reg .f32 	%f<24>;
	.reg .b64 	%rd<65>;
	ld.param.u64 	%rd27, [keel_matmul_param_5];
	ld.param.u64 	%rd32, [keel_matmul_param_4];
	mov.u32 	%r2, %ctaid.x;
	mov.u32 	%r4, %tid.x;
	cvt.u64.u32 	%rd33, %r4;
	mov.u32 	%r5, %ntid.x;
	mul.wide.u32 	%rd34, %r2, %r5;
	add.s64 	%rd61, %rd34, %rd33;
	mul.lo.s64 	%rd10, %rd27, %rd32;
	setp.ge.u64 	%p3, %rd61, %rd10;
	@%p3 bra 	$L__BB14_12;
	ld.param.u64 	%rd28, [keel_matmul_param_6];
	ld.param.u64 	%rd29, [keel_matmul_param_0];
	ld.param.u64 	%rd30, [keel_matmul_param_2];
	cvta.to.global.u64 	%rd1, %rd30;
	ld.param.u64 	%rd31, [keel_matmul_param_1];
	cvta.to.global.u64 	%rd2, %rd31;
	cvta.to.global.u64 	%rd3, %rd29;
	ld.param.u32 	%r1, [keel_matmul_param_3];
	mov.u32 	%r3, %nctaid.x;
	mul.wide.u32 	%rd5, %r5, %r3;
	and.b32  	%r6, %r1, 1;
	setp.eq.b32 	%p1, %r6, 1;
	and.b32  	%r7, %r1, 2;
	setp.eq.s32 	%p2, %r7, 0;
	selp.b64 	%rd6, 1, %rd28, %p1;
	selp.b64 	%rd7, %rd32, 1, %p1;
	selp.b64 	%rd8, %rd27, 1, %p2;
	selp.b64 	%rd9, 1, %rd28, %p2;
	and.b64  	%rd11, %rd28, 1;
	and.b64  	%rd12, %rd28, -2;
	cvt.u32.u64 	%r8, %rd27;
	mov.f32 	%f7, 0f00000000;
	setp.eq.s64 	%p5, %rd28, 0;
	setp.eq.s64 	%p6, %rd28, 1;
	bra.uni 	$L__BB14_2;
$L__BB14_11:
	shl.b64 	%rd59, %rd61, 2;
	add.s64 	%rd60, %rd1, %rd59;
	st.global.f32 	[%rd60], %f23;
	add.s64 	%rd61, %rd61, %rd5;
	setp.lt.u64 	%p9, %rd61, %rd10;
	@%p9 bra 	$L__BB14_2;
	bra.uni 	$L__BB14_12;
$L__BB14_2:
	or.b64  	%rd35, %rd61, %rd27;
	and.b64  	%rd36, %rd35, -4294967296;
	setp.ne.s64 	%p4, %rd36, 0;
	@%p4 bra 	$L__BB14_4;
	bra.uni 	$L__BB14_3;
$L__BB14_4:
	div.u64 	%rd62, %rd61, %rd27;
	bra.uni 	$L__BB14_5;
$L__BB14_3:
	cvt.u32.u64 	%r9, %rd61;
	div.u32 	%r10, %r9, %r8;
	cvt.u64.u32 	%rd62, %r10;
$L__BB14_5:
	mov.f32 	%f23, %f7;
	@%p5 bra 	$L__BB14_11;
	mul.lo.s64 	%rd38, %rd62, %rd6;
	shl.b64 	%rd39, %rd38, 2;
	add.s64 	%rd19, %rd3, %rd39;
	mul.lo.s64 	%rd40, %rd62, %rd27;
	sub.s64 	%rd41, %rd61, %rd40;
	mul.lo.s64 	%rd42, %rd41, %rd9;
	shl.b64 	%rd43, %rd42, 2;
	add.s64 	%rd20, %rd2, %rd43;
	mov.u64 	%rd64, 0;
	mov.f32 	%f23, %f7;
	@%p6 bra 	$L__BB14_9;
	mov.u64 	%rd64, 0;
	mov.f32 	%f23, %f7;
$L__BB14_8:
	mul.lo.s64 	%rd45, %rd64, %rd7;
	shl.b64 	%rd46, %rd45, 2;
	add.s64 	%rd47, %rd19, %rd46;
	ld.global.f32 	%f10, [%rd47];
	mul.lo.s64 	%rd48, %rd64, %rd8;
	shl.b64 	%rd49, %rd48, 2;
	add.s64 	%rd50, %rd20, %rd49;
	ld.global.f32 	%f11, [%rd50];
	mul.rn.f32 	%f12, %f10, %f11;
	add.rn.f32 	%f13, %f23, %f12;
	shl.b64 	%rd51, %rd7, 2;
	add.s64 	%rd52, %rd47, %rd51;
	ld.global.f32 	%f14, [%rd52];
	shl.b64 	%rd53, %rd8, 2;
	add.s64 	%rd54, %rd50, %rd53;
	ld.global.f32 	%f15, [%rd54];
	mul.rn.f32 	%f16, %f14, %f15;
	add.rn.f32 	%f23, %f13, %f16;
	add.s64 	%rd64, %rd64, 2;
	setp.eq.s64 	%p7, %rd12, %rd64;
	@%p7 bra 	$L__BB14_9;
	bra.uni 	$L__BB14_8;
$L__BB14_9:
	setp.eq.s64 	%p8, %rd11, 0;
	@%p8 bra 	$L__BB14_11;
	mul.lo.s64 	%rd55, %rd64, %rd7;
	shl.b64 	%rd56, %rd55, 2;
	add.s64 	%rd22, %rd19, %rd56;
	mul.lo.s64 	%rd57, %rd64, %rd8;
	shl.b64 	%rd58, %rd57, 2;
	add.s64 	%rd23, %rd20, %rd58;
	ld.global.f32 	%f17, [%rd22];
	ld.global.f32 	%f18, [%rd23];
	mul.rn.f32 	%f19, %f17, %f18;
	add.rn.f32 	%f23, %f23, %f19;
	bra.uni 	$L__BB14_11;
$L__BB14_12:
	ret;
}
.visible .entry keel_relu(
	.param .u64 keel_relu_param_0,
	.param .u64 keel_relu_param_1,
	.param .u64 keel_relu_param_2
)
{
	.reg .pred 	%p<3>;
	.reg .b32 	%r<5>;
	.reg .f32 	%f<3>;
	.reg .b64 	%rd<20>;
	ld.param.u64 	%rd11, [keel_relu_param_2];
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r3, %tid.x;
	cvt.u64.u32 	%rd14, %r3;
	mov.u32 	%r4, %ntid.x;
	mul.wide.u32 	%rd15, %r1, %r4;
	add.s64 	%rd18, %rd15, %rd14;
	setp.ge.u64 	%p1, %rd18, %rd11;
	@%p1 bra 	$L__BB15_3;
	ld.param.u64 	%rd12, [keel_relu_param_0];
	ld.param.u64 	%rd13, [keel_relu_param_1];
	cvta.to.global.u64 	%rd1, %rd13;
	cvta.to.global.u64 	%rd2, %rd12;
	mov.u32 	%r2, %nctaid.x;
	mul.wide.u32 	%rd4, %r4, %r2;
	shl.b64 	%rd19, %rd18, 2;
	shl.b64 	%rd6, %rd4, 2;
$L__BB15_2:
	add.s64 	%rd16, %rd2, %rd19;
	ld.global.f32 	%f1, [%rd16];
	max.f32 	%f2, %f1, 0f00000000;
	add.s64 	%rd17, %rd1, %rd19;
	st.global.f32 	[%rd17], %f2;
	add.s64 	%rd19, %rd19, %rd6;
	add.s64 	%rd18, %rd18, %rd4;
	setp.lt.u64 	%p2, %rd18, %rd11;
	@%p2 bra 	$L__BB15_2;
$L__BB15_3:
	ret;
}
.visible .entry keel_relu_grad(
	.param .u64 keel_relu_grad_param_0,
	.param .u64 keel_relu_grad_param_1,
	.param .u64 keel_relu_grad_param_2
)
{
	.reg .pred 	%p<4>;
	.reg .b32 	%r<6>;
	.reg .f32 	%f<2>;
	.reg .b64 	%rd<20>;
	ld.param.u64 	%rd12, [keel_relu_grad_param_2];
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r3, %tid.x;
	cvt.u64.u32 	%rd15, %r3;
	mov.u32 	%r4, %ntid.x;
	mul.wide.u32 	%rd16, %r1, %r4;
	add.s64 	%rd18, %rd16, %rd15;
	setp.ge.u64 	%p1, %rd18, %rd12;
	@%p1 bra 	$L__BB16_5;
	ld.param.u64 	%rd13, [keel_relu_grad_param_0];
	ld.param.u64 	%rd14, [keel_relu_grad_param_1];
	cvta.to.global.u64 	%rd1, %rd14;
	cvta.to.global.u64 	%rd2, %rd13;
	mov.u32 	%r2, %nctaid.x;
	mul.wide.u32 	%rd4, %r4, %r2;
	shl.b64 	%rd19, %rd18, 2;
	shl.b64 	%rd6, %rd4, 2;
	mov.b32 	%r5, 0;
	bra.uni 	$L__BB16_2;
$L__BB16_4:
	add.s64 	%rd19, %rd19, %rd6;
	add.s64 	%rd18, %rd18, %rd4;
	setp.lt.u64 	%p3, %rd18, %rd12;
	@%p3 bra 	$L__BB16_2;
	bra.uni 	$L__BB16_5;
$L__BB16_2:
	add.s64 	%rd17, %rd2, %rd19;
	ld.global.f32 	%f1, [%rd17];
	setp.gt.f32 	%p2, %f1, 0f00000000;
	@%p2 bra 	$L__BB16_4;
	add.s64 	%rd9, %rd1, %rd19;
	st.global.u32 	[%rd9], %r5;
	bra.uni 	$L__BB16_4;
$L__BB16_5:
	ret;
}
.visible .entry keel_mse(
	.param .u64 keel_mse_param_0,
	.param .u64 keel_mse_param_1,
	.param .u64 keel_mse_param_2,
	.param .u64 keel_mse_param_3,
	.param .f32 keel_mse_param_4,
	.param .u64 keel_mse_param_5
)
{
	.reg .pred 	%p<8>;
	.reg .b32 	%r<5>;
	.reg .f32 	%f<35>;
	.reg .b64 	%rd<45>;
	ld.param.u64 	%rd24, [keel_mse_param_5];
	ld.param.f32 	%f8, [keel_mse_param_4];
	ld.param.u64 	%rd25, [keel_mse_param_0];
	ld.param.u64 	%rd27, [keel_mse_param_1];
	cvta.to.global.u64 	%rd3, %rd27;
	cvta.to.global.u64 	%rd4, %rd25;
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r3, %tid.x;
	cvt.u64.u32 	%rd29, %r3;
	mov.u32 	%r4, %ntid.x;
	mul.wide.u32 	%rd30, %r1, %r4;
	add.s64 	%rd5, %rd30, %rd29;
	setp.ge.u64 	%p1, %rd5, %rd24;
	@%p1 bra 	$L__BB17_3;
	ld.param.u64 	%rd28, [keel_mse_param_2];
	cvta.to.global.u64 	%rd2, %rd28;
	mov.u32 	%r2, %nctaid.x;
	mul.wide.u32 	%rd6, %r4, %r2;
	add.rn.f32 	%f1, %f8, %f8;
	shl.b64 	%rd40, %rd5, 2;
	shl.b64 	%rd8, %rd6, 2;
	mov.u64 	%rd39, %rd5;
$L__BB17_2:
	add.s64 	%rd31, %rd4, %rd40;
	ld.global.f32 	%f9, [%rd31];
	add.s64 	%rd32, %rd3, %rd40;
	ld.global.f32 	%f10, [%rd32];
	sub.rn.f32 	%f11, %f9, %f10;
	mul.rn.f32 	%f12, %f1, %f11;
	add.s64 	%rd33, %rd2, %rd40;
	st.global.f32 	[%rd33], %f12;
	add.s64 	%rd40, %rd40, %rd8;
	add.s64 	%rd39, %rd39, %rd6;
	setp.lt.u64 	%p2, %rd39, %rd24;
	@%p2 bra 	$L__BB17_2;
$L__BB17_3:
	setp.ne.s64 	%p3, %rd5, 0;
	@%p3 bra 	$L__BB17_11;
	ld.param.u64 	%rd26, [keel_mse_param_3];
	cvta.to.global.u64 	%rd1, %rd26;
	setp.eq.s64 	%p4, %rd24, 0;
	mov.f32 	%f34, 0f00000000;
	@%p4 bra 	$L__BB17_10;
	and.b64  	%rd9, %rd24, 1;
	setp.eq.s64 	%p5, %rd24, 1;
	mov.f32 	%f34, 0f00000000;
	mov.u64 	%rd44, 0;
	@%p5 bra 	$L__BB17_8;
	and.b64  	%rd10, %rd24, -2;
	add.s64 	%rd43, %rd4, 4;
	add.s64 	%rd42, %rd3, 4;
	mov.f32 	%f34, 0f00000000;
	mov.u64 	%rd44, 0;
$L__BB17_7:
	ld.global.f32 	%f17, [%rd43+-4];
	ld.global.f32 	%f18, [%rd42+-4];
	sub.rn.f32 	%f19, %f17, %f18;
	mul.rn.f32 	%f20, %f19, %f19;
	add.rn.f32 	%f21, %f34, %f20;
	ld.global.f32 	%f22, [%rd43];
	ld.global.f32 	%f23, [%rd42];
	sub.rn.f32 	%f24, %f22, %f23;
	mul.rn.f32 	%f25, %f24, %f24;
	add.rn.f32 	%f34, %f21, %f25;
	add.s64 	%rd44, %rd44, 2;
	add.s64 	%rd43, %rd43, 8;
	add.s64 	%rd42, %rd42, 8;
	setp.eq.s64 	%p6, %rd10, %rd44;
	@%p6 bra 	$L__BB17_8;
	bra.uni 	$L__BB17_7;
$L__BB17_8:
	setp.eq.s64 	%p7, %rd9, 0;
	@%p7 bra 	$L__BB17_10;
	shl.b64 	%rd36, %rd44, 2;
	add.s64 	%rd37, %rd4, %rd36;
	ld.global.f32 	%f26, [%rd37];
	add.s64 	%rd38, %rd3, %rd36;
	ld.global.f32 	%f27, [%rd38];
	sub.rn.f32 	%f28, %f26, %f27;
	mul.rn.f32 	%f29, %f28, %f28;
	add.rn.f32 	%f34, %f34, %f29;
$L__BB17_10:
	mul.rn.f32 	%f30, %f34, %f8;
	st.global.f32 	[%rd1], %f30;
$L__BB17_11:
	ret;
}
)ptx";

}  // namespace keel::cuda
