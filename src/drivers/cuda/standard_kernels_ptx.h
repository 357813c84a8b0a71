// Made by tools/kernels/make_ptx.py; change its sources instead.
// From dd7ecf971d33ab2174e269aa5dfeb8865d0fce8f4fefecc269faf224cf60b955
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
	.reg .pred 	%p<22>;
	.reg .b16 	%rs<6>;
	.reg .b32 	%r<21>;
	.reg .b64 	%rd<196>;
	ld.param.u64 	%rd105, [keel_copy_table_param_2];
	mov.u32 	%r2, %ctaid.x;
	cvt.u64.u32 	%rd168, %r2;
	setp.ge.u64 	%p1, %rd168, %rd105;
	@%p1 bra 	$L__BB7_25;
	ld.param.u64 	%rd106, [keel_copy_table_param_0];
	ld.param.u64 	%rd107, [keel_copy_table_param_1];
	cvta.to.global.u64 	%rd1, %rd107;
	cvta.to.global.u64 	%rd2, %rd106;
	mov.u32 	%r3, %nctaid.x;
	cvt.u64.u32 	%rd4, %r3;
	mov.u32 	%r4, %tid.x;
	cvt.u64.u32 	%rd5, %r4;
	mov.u32 	%r5, %ntid.x;
	cvt.u64.u32 	%rd6, %r5;
	mul.lo.s64 	%rd7, %rd6, 3;
	add.s64 	%rd8, %rd7, %rd5;
	shl.b64 	%rd9, %rd6, 2;
	shl.b64 	%rd10, %rd6, 1;
	shl.b64 	%rd11, %rd5, 2;
	mul.lo.s64 	%rd12, %rd6, 12;
	shl.b64 	%rd13, %rd6, 4;
	shl.b64 	%rd14, %rd6, 3;
	shl.b64 	%rd15, %rd5, 4;
	mul.lo.s64 	%rd16, %rd6, 48;
	shl.b64 	%rd17, %rd6, 6;
	shl.b64 	%rd18, %rd6, 5;
	mov.b32 	%r6, 4;
	mov.b32 	%r7, 1;
	mov.b32 	%r17, 0;
$L__BB7_2:
	mul.lo.s64 	%rd118, %rd168, 24;
	add.s64 	%rd119, %rd2, %rd118;
	cvta.global.u64 	%rd109, %rd119;
	ld.u64 %rd108, [%rd109];
	shl.b64 	%rd120, %rd108, 4;
	add.s64 	%rd121, %rd1, %rd120;
	cvta.global.u64 	%rd111, %rd121;
	ld.u64 %rd110, [%rd111];
	add.s64 	%rd113, %rd111, 8;
	ld.u64 %rd112, [%rd113];
	add.s64 	%rd115, %rd109, 8;
	ld.u64 %rd114, [%rd115];
	add.s64 	%rd117, %rd109, 16;
	ld.u64 %rd116, [%rd117];
	setp.eq.s64 	%p2, %rd110, 0;
	mov.u32 	%r20, %r6;
	@%p2 bra 	$L__BB7_23;
	add.s64 	%rd62, %rd114, %rd110;
	add.s64 	%rd61, %rd114, %rd112;
	setp.eq.s64 	%p3, %rd62, 0;
	setp.eq.s64 	%p4, %rd61, 0;
	or.pred  	%p5, %p3, %p4;
	mov.u32 	%r20, %r7;
	@%p5 bra 	$L__BB7_23;
	bra.uni 	$L__BB7_4;
$L__BB7_23:
	or.b32  	%r19, %r20, 4;
	setp.eq.s32 	%p20, %r19, 4;
	@%p20 bra 	$L__BB7_24;
	bra.uni 	$L__BB7_25;
$L__BB7_24:
	add.s64 	%rd168, %rd168, %rd4;
	setp.lt.u64 	%p21, %rd168, %rd105;
	@%p21 bra 	$L__BB7_2;
	bra.uni 	$L__BB7_25;
$L__BB7_4:
	or.b64  	%rd122, %rd62, %rd61;
	or.b64  	%rd26, %rd122, %rd116;
	and.b64  	%rd123, %rd26, 15;
	setp.ne.s64 	%p6, %rd123, 0;
	@%p6 bra 	$L__BB7_11;
	bra.uni 	$L__BB7_5;
$L__BB7_11:
	and.b64  	%rd124, %rd26, 3;
	setp.ne.s64 	%p7, %rd124, 0;
	@%p7 bra 	$L__BB7_18;
	bra.uni 	$L__BB7_12;
$L__BB7_18:
	setp.ge.u64 	%p8, %rd8, %rd116;
	mov.u64 	%rd194, %rd5;
	@%p8 bra 	$L__BB7_21;
	add.s64 	%rd93, %rd62, %rd7;
	add.s64 	%rd94, %rd61, %rd7;
	add.s64 	%rd95, %rd62, %rd10;
	add.s64 	%rd96, %rd62, %rd6;
	add.s64 	%rd97, %rd61, %rd10;
	add.s64 	%rd98, %rd61, %rd6;
	mov.u64 	%rd194, %rd5;
$L__BB7_20:
	add.s64 	%rd125, %rd61, %rd194;
	ld.u8 	%rs1, [%rd125];
	add.s64 	%rd126, %rd98, %rd194;
	ld.u8 	%rs2, [%rd126];
	add.s64 	%rd127, %rd97, %rd194;
	ld.u8 	%rs3, [%rd127];
	add.s64 	%rd128, %rd94, %rd194;
	ld.u8 	%rs4, [%rd128];
	add.s64 	%rd129, %rd62, %rd194;
	st.u8 	[%rd129], %rs1;
	add.s64 	%rd130, %rd96, %rd194;
	st.u8 	[%rd130], %rs2;
	add.s64 	%rd131, %rd95, %rd194;
	st.u8 	[%rd131], %rs3;
	add.s64 	%rd132, %rd93, %rd194;
	st.u8 	[%rd132], %rs4;
	add.s64 	%rd194, %rd194, %rd9;
	add.s64 	%rd133, %rd7, %rd194;
	setp.lt.u64 	%p9, %rd133, %rd116;
	@%p9 bra 	$L__BB7_20;
$L__BB7_21:
	setp.ge.u64 	%p10, %rd194, %rd116;
	mov.u32 	%r20, %r17;
	@%p10 bra 	$L__BB7_23;
$L__BB7_22:
	add.s64 	%rd134, %rd61, %rd194;
	ld.u8 	%rs5, [%rd134];
	add.s64 	%rd135, %rd62, %rd194;
	st.u8 	[%rd135], %rs5;
	add.s64 	%rd194, %rd194, %rd6;
	setp.lt.u64 	%p11, %rd194, %rd116;
	mov.u32 	%r20, %r17;
	@%p11 bra 	$L__BB7_22;
	bra.uni 	$L__BB7_23;
$L__BB7_5:
	shr.u64 	%rd27, %rd116, 4;
	setp.ge.u64 	%p16, %rd8, %rd27;
	mov.u64 	%rd173, %rd5;
	@%p16 bra 	$L__BB7_8;
	add.s64 	%rd178, %rd62, %rd16;
	add.s64 	%rd177, %rd61, %rd16;
	add.s64 	%rd176, %rd62, %rd18;
	add.s64 	%rd175, %rd62, %rd13;
	add.s64 	%rd172, %rd61, %rd18;
	add.s64 	%rd171, %rd61, %rd13;
	mov.u64 	%rd170, %rd61;
	mov.u64 	%rd173, %rd5;
	mov.u64 	%rd174, %rd62;
$L__BB7_7:
	add.s64 	%rd147, %rd170, %rd15;
	ld.v2.u64 	{%rd148, %rd149}, [%rd147];
	add.s64 	%rd150, %rd171, %rd15;
	ld.v2.u64 	{%rd151, %rd152}, [%rd150];
	add.s64 	%rd153, %rd172, %rd15;
	ld.v2.u64 	{%rd154, %rd155}, [%rd153];
	add.s64 	%rd156, %rd177, %rd15;
	ld.v2.u64 	{%rd157, %rd158}, [%rd156];
	add.s64 	%rd159, %rd174, %rd15;
	st.v2.u64 	[%rd159], {%rd148, %rd149};
	add.s64 	%rd160, %rd175, %rd15;
	st.v2.u64 	[%rd160], {%rd151, %rd152};
	add.s64 	%rd161, %rd176, %rd15;
	st.v2.u64 	[%rd161], {%rd154, %rd155};
	add.s64 	%rd162, %rd178, %rd15;
	st.v2.u64 	[%rd162], {%rd157, %rd158};
	add.s64 	%rd178, %rd178, %rd17;
	add.s64 	%rd177, %rd177, %rd17;
	add.s64 	%rd176, %rd176, %rd17;
	add.s64 	%rd175, %rd175, %rd17;
	add.s64 	%rd174, %rd174, %rd17;
	add.s64 	%rd173, %rd173, %rd9;
	add.s64 	%rd163, %rd7, %rd173;
	add.s64 	%rd172, %rd172, %rd17;
	add.s64 	%rd171, %rd171, %rd17;
	add.s64 	%rd170, %rd170, %rd17;
	setp.lt.u64 	%p17, %rd163, %rd27;
	@%p17 bra 	$L__BB7_7;
$L__BB7_8:
	setp.ge.u64 	%p18, %rd173, %rd27;
	mov.u32 	%r20, %r17;
	@%p18 bra 	$L__BB7_23;
	shl.b64 	%rd179, %rd173, 4;
$L__BB7_10:
	add.s64 	%rd164, %rd61, %rd179;
	ld.v2.u64 	{%rd165, %rd166}, [%rd164];
	add.s64 	%rd167, %rd62, %rd179;
	st.v2.u64 	[%rd167], {%rd165, %rd166};
	add.s64 	%rd173, %rd173, %rd6;
	add.s64 	%rd179, %rd179, %rd13;
	setp.lt.u64 	%p19, %rd173, %rd27;
	mov.u32 	%r20, %r17;
	@%p19 bra 	$L__BB7_10;
	bra.uni 	$L__BB7_23;
$L__BB7_12:
	shr.u64 	%rd60, %rd116, 2;
	setp.ge.u64 	%p12, %rd8, %rd60;
	mov.u64 	%rd185, %rd5;
	@%p12 bra 	$L__BB7_15;
	add.s64 	%rd190, %rd62, %rd12;
	add.s64 	%rd189, %rd61, %rd12;
	add.s64 	%rd188, %rd62, %rd14;
	add.s64 	%rd187, %rd62, %rd9;
	add.s64 	%rd184, %rd61, %rd14;
	add.s64 	%rd183, %rd61, %rd9;
	mov.u64 	%rd182, %rd61;
	mov.u64 	%rd185, %rd5;
	mov.u64 	%rd186, %rd62;
$L__BB7_14:
	add.s64 	%rd136, %rd182, %rd11;
	ld.u32 	%r10, [%rd136];
	add.s64 	%rd137, %rd183, %rd11;
	ld.u32 	%r11, [%rd137];
	add.s64 	%rd138, %rd184, %rd11;
	ld.u32 	%r12, [%rd138];
	add.s64 	%rd139, %rd189, %rd11;
	ld.u32 	%r13, [%rd139];
	add.s64 	%rd140, %rd186, %rd11;
	st.u32 	[%rd140], %r10;
	add.s64 	%rd141, %rd187, %rd11;
	st.u32 	[%rd141], %r11;
	add.s64 	%rd142, %rd188, %rd11;
	st.u32 	[%rd142], %r12;
	add.s64 	%rd143, %rd190, %rd11;
	st.u32 	[%rd143], %r13;
	add.s64 	%rd190, %rd190, %rd13;
	add.s64 	%rd189, %rd189, %rd13;
	add.s64 	%rd188, %rd188, %rd13;
	add.s64 	%rd187, %rd187, %rd13;
	add.s64 	%rd186, %rd186, %rd13;
	add.s64 	%rd185, %rd185, %rd9;
	add.s64 	%rd144, %rd7, %rd185;
	add.s64 	%rd184, %rd184, %rd13;
	add.s64 	%rd183, %rd183, %rd13;
	add.s64 	%rd182, %rd182, %rd13;
	setp.lt.u64 	%p13, %rd144, %rd60;
	@%p13 bra 	$L__BB7_14;
$L__BB7_15:
	setp.ge.u64 	%p14, %rd185, %rd60;
	mov.u32 	%r20, %r17;
	@%p14 bra 	$L__BB7_23;
	shl.b64 	%rd191, %rd185, 2;
$L__BB7_17:
	add.s64 	%rd145, %rd61, %rd191;
	ld.u32 	%r16, [%rd145];
	add.s64 	%rd146, %rd62, %rd191;
	st.u32 	[%rd146], %r16;
	add.s64 	%rd185, %rd185, %rd6;
	add.s64 	%rd191, %rd191, %rd9;
	setp.lt.u64 	%p15, %rd185, %rd60;
	mov.u32 	%r20, %r17;
	@%p15 bra 	$L__BB7_17;
	bra.uni 	$L__BB7_23;
$L__BB7_25:
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
	.reg .pred 	%p<27>;
	.reg .b16 	%rs<6>;
	.reg .b32 	%r<22>;
	.reg .b64 	%rd<220>;
	ld.param.u64 	%rd116, [keel_copy_in_param_2];
	ld.param.u64 	%rd120, [keel_copy_in_param_6];
	mov.u32 	%r2, %ctaid.x;
	cvt.u64.u32 	%rd191, %r2;
	mov.u32 	%r3, %nctaid.x;
	cvt.u64.u32 	%rd5, %r3;
	mov.u32 	%r4, %tid.x;
	cvt.u64.u32 	%rd6, %r4;
	mov.u32 	%r6, %ntid.x;
	cvt.u64.u32 	%rd7, %r6;
	add.s64 	%rd123, %rd191, 1;
	setp.eq.s64 	%p1, %rd123, %rd5;
	setp.lt.u64 	%p2, %rd6, %rd120;
	and.pred  	%p3, %p1, %p2;
	@!%p3 bra 	$L__BB8_3;
	bra.uni 	$L__BB8_1;
$L__BB8_1:
	ld.param.u64 	%rd118, [keel_copy_in_param_4];
	ld.param.u64 	%rd121, [keel_copy_in_param_5];
	cvta.to.global.u64 	%rd1, %rd121;
	shl.b64 	%rd189, %rd6, 3;
	shl.b64 	%rd9, %rd7, 3;
	mov.u64 	%rd190, %rd6;
$L__BB8_2:
	add.s64 	%rd125, %rd118, %rd189;
	ld.u64 %rd124, [%rd125];
	add.s64 	%rd126, %rd1, %rd189;
	st.global.u64 	[%rd126], %rd124;
	add.s64 	%rd190, %rd190, %rd7;
	add.s64 	%rd189, %rd189, %rd9;
	setp.lt.u64 	%p4, %rd190, %rd120;
	@%p4 bra 	$L__BB8_2;
$L__BB8_3:
	setp.ge.u64 	%p5, %rd191, %rd116;
	@%p5 bra 	$L__BB8_30;
	ld.param.u64 	%rd115, [keel_copy_in_param_0];
	ld.param.u64 	%rd122, [keel_copy_in_param_1];
	ld.param.u64 	%rd117, [keel_copy_in_param_3];
	cvta.to.global.u64 	%rd2, %rd122;
	cvta.to.global.u64 	%rd3, %rd115;
	mul.lo.s64 	%rd14, %rd7, 3;
	add.s64 	%rd15, %rd14, %rd6;
	shl.b64 	%rd16, %rd7, 2;
	shl.b64 	%rd17, %rd7, 1;
	shl.b64 	%rd18, %rd6, 2;
	mul.lo.s64 	%rd19, %rd7, 12;
	shl.b64 	%rd20, %rd7, 4;
	shl.b64 	%rd21, %rd7, 3;
	shl.b64 	%rd22, %rd6, 4;
	mul.lo.s64 	%rd23, %rd7, 48;
	shl.b64 	%rd24, %rd7, 6;
	shl.b64 	%rd25, %rd7, 5;
	mov.b32 	%r7, 4;
	mov.b32 	%r8, 1;
	mov.b32 	%r18, 0;
$L__BB8_5:
	setp.lt.u64 	%p6, %rd191, %rd117;
	mul.lo.s64 	%rd127, %rd191, 24;
	mov.u64 	%rd192, %rd191;
	@%p6 bra 	$L__BB8_7;
	add.s64 	%rd129, %rd115, %rd127;
	ld.u64 %rd192, [%rd129];
$L__BB8_7:
	shl.b64 	%rd138, %rd192, 4;
	add.s64 	%rd139, %rd2, %rd138;
	cvta.global.u64 	%rd131, %rd139;
	ld.u64 %rd130, [%rd131];
	add.s64 	%rd133, %rd131, 8;
	ld.u64 %rd132, [%rd133];
	add.s64 	%rd141, %rd3, %rd127;
	cvta.global.u64 	%rd142, %rd141;
	add.s64 	%rd135, %rd142, 8;
	ld.u64 %rd134, [%rd135];
	add.s64 	%rd137, %rd142, 16;
	ld.u64 %rd136, [%rd137];
	setp.eq.s64 	%p7, %rd130, 0;
	mov.u32 	%r21, %r7;
	@%p7 bra 	$L__BB8_28;
	add.s64 	%rd72, %rd134, %rd130;
	add.s64 	%rd71, %rd134, %rd132;
	setp.eq.s64 	%p8, %rd72, 0;
	setp.eq.s64 	%p9, %rd71, 0;
	or.pred  	%p10, %p8, %p9;
	mov.u32 	%r21, %r8;
	@%p10 bra 	$L__BB8_28;
	bra.uni 	$L__BB8_9;
$L__BB8_28:
	or.b32  	%r20, %r21, 4;
	setp.eq.s32 	%p25, %r20, 4;
	@%p25 bra 	$L__BB8_29;
	bra.uni 	$L__BB8_30;
$L__BB8_29:
	add.s64 	%rd191, %rd191, %rd5;
	setp.lt.u64 	%p26, %rd191, %rd116;
	@%p26 bra 	$L__BB8_5;
	bra.uni 	$L__BB8_30;
$L__BB8_9:
	or.b64  	%rd143, %rd72, %rd71;
	or.b64  	%rd36, %rd143, %rd136;
	and.b64  	%rd144, %rd36, 15;
	setp.ne.s64 	%p11, %rd144, 0;
	@%p11 bra 	$L__BB8_16;
	bra.uni 	$L__BB8_10;
$L__BB8_16:
	and.b64  	%rd145, %rd36, 3;
	setp.ne.s64 	%p12, %rd145, 0;
	@%p12 bra 	$L__BB8_23;
	bra.uni 	$L__BB8_17;
$L__BB8_23:
	setp.ge.u64 	%p13, %rd15, %rd136;
	mov.u64 	%rd218, %rd6;
	@%p13 bra 	$L__BB8_26;
	add.s64 	%rd103, %rd72, %rd14;
	add.s64 	%rd104, %rd71, %rd14;
	add.s64 	%rd105, %rd72, %rd17;
	add.s64 	%rd106, %rd72, %rd7;
	add.s64 	%rd107, %rd71, %rd17;
	add.s64 	%rd108, %rd71, %rd7;
	mov.u64 	%rd218, %rd6;
$L__BB8_25:
	add.s64 	%rd146, %rd71, %rd218;
	ld.u8 	%rs1, [%rd146];
	add.s64 	%rd147, %rd108, %rd218;
	ld.u8 	%rs2, [%rd147];
	add.s64 	%rd148, %rd107, %rd218;
	ld.u8 	%rs3, [%rd148];
	add.s64 	%rd149, %rd104, %rd218;
	ld.u8 	%rs4, [%rd149];
	add.s64 	%rd150, %rd72, %rd218;
	st.u8 	[%rd150], %rs1;
	add.s64 	%rd151, %rd106, %rd218;
	st.u8 	[%rd151], %rs2;
	add.s64 	%rd152, %rd105, %rd218;
	st.u8 	[%rd152], %rs3;
	add.s64 	%rd153, %rd103, %rd218;
	st.u8 	[%rd153], %rs4;
	add.s64 	%rd218, %rd218, %rd16;
	add.s64 	%rd154, %rd14, %rd218;
	setp.lt.u64 	%p14, %rd154, %rd136;
	@%p14 bra 	$L__BB8_25;
$L__BB8_26:
	setp.ge.u64 	%p15, %rd218, %rd136;
	mov.u32 	%r21, %r18;
	@%p15 bra 	$L__BB8_28;
$L__BB8_27:
	add.s64 	%rd155, %rd71, %rd218;
	ld.u8 	%rs5, [%rd155];
	add.s64 	%rd156, %rd72, %rd218;
	st.u8 	[%rd156], %rs5;
	add.s64 	%rd218, %rd218, %rd7;
	setp.lt.u64 	%p16, %rd218, %rd136;
	mov.u32 	%r21, %r18;
	@%p16 bra 	$L__BB8_27;
	bra.uni 	$L__BB8_28;
$L__BB8_10:
	shr.u64 	%rd37, %rd136, 4;
	setp.ge.u64 	%p21, %rd15, %rd37;
	mov.u64 	%rd197, %rd6;
	@%p21 bra 	$L__BB8_13;
	add.s64 	%rd202, %rd72, %rd23;
	add.s64 	%rd201, %rd71, %rd23;
	add.s64 	%rd200, %rd72, %rd25;
	add.s64 	%rd199, %rd72, %rd20;
	add.s64 	%rd196, %rd71, %rd25;
	add.s64 	%rd195, %rd71, %rd20;
	mov.u64 	%rd194, %rd71;
	mov.u64 	%rd197, %rd6;
	mov.u64 	%rd198, %rd72;
$L__BB8_12:
	add.s64 	%rd168, %rd194, %rd22;
	ld.v2.u64 	{%rd169, %rd170}, [%rd168];
	add.s64 	%rd171, %rd195, %rd22;
	ld.v2.u64 	{%rd172, %rd173}, [%rd171];
	add.s64 	%rd174, %rd196, %rd22;
	ld.v2.u64 	{%rd175, %rd176}, [%rd174];
	add.s64 	%rd177, %rd201, %rd22;
	ld.v2.u64 	{%rd178, %rd179}, [%rd177];
	add.s64 	%rd180, %rd198, %rd22;
	st.v2.u64 	[%rd180], {%rd169, %rd170};
	add.s64 	%rd181, %rd199, %rd22;
	st.v2.u64 	[%rd181], {%rd172, %rd173};
	add.s64 	%rd182, %rd200, %rd22;
	st.v2.u64 	[%rd182], {%rd175, %rd176};
	add.s64 	%rd183, %rd202, %rd22;
	st.v2.u64 	[%rd183], {%rd178, %rd179};
	add.s64 	%rd202, %rd202, %rd24;
	add.s64 	%rd201, %rd201, %rd24;
	add.s64 	%rd200, %rd200, %rd24;
	add.s64 	%rd199, %rd199, %rd24;
	add.s64 	%rd198, %rd198, %rd24;
	add.s64 	%rd197, %rd197, %rd16;
	add.s64 	%rd184, %rd14, %rd197;
	add.s64 	%rd196, %rd196, %rd24;
	add.s64 	%rd195, %rd195, %rd24;
	add.s64 	%rd194, %rd194, %rd24;
	setp.lt.u64 	%p22, %rd184, %rd37;
	@%p22 bra 	$L__BB8_12;
$L__BB8_13:
	setp.ge.u64 	%p23, %rd197, %rd37;
	mov.u32 	%r21, %r18;
	@%p23 bra 	$L__BB8_28;
	shl.b64 	%rd203, %rd197, 4;
$L__BB8_15:
	add.s64 	%rd185, %rd71, %rd203;
	ld.v2.u64 	{%rd186, %rd187}, [%rd185];
	add.s64 	%rd188, %rd72, %rd203;
	st.v2.u64 	[%rd188], {%rd186, %rd187};
	add.s64 	%rd197, %rd197, %rd7;
	add.s64 	%rd203, %rd203, %rd20;
	setp.lt.u64 	%p24, %rd197, %rd37;
	mov.u32 	%r21, %r18;
	@%p24 bra 	$L__BB8_15;
	bra.uni 	$L__BB8_28;
$L__BB8_17:
	shr.u64 	%rd70, %rd136, 2;
	setp.ge.u64 	%p17, %rd15, %rd70;
	mov.u64 	%rd209, %rd6;
	@%p17 bra 	$L__BB8_20;
	add.s64 	%rd214, %rd72, %rd19;
	add.s64 	%rd213, %rd71, %rd19;
	add.s64 	%rd212, %rd72, %rd21;
	add.s64 	%rd211, %rd72, %rd16;
	add.s64 	%rd208, %rd71, %rd21;
	add.s64 	%rd207, %rd71, %rd16;
	mov.u64 	%rd206, %rd71;
	mov.u64 	%rd209, %rd6;
	mov.u64 	%rd210, %rd72;
$L__BB8_19:
	add.s64 	%rd157, %rd206, %rd18;
	ld.u32 	%r11, [%rd157];
	add.s64 	%rd158, %rd207, %rd18;
	ld.u32 	%r12, [%rd158];
	add.s64 	%rd159, %rd208, %rd18;
	ld.u32 	%r13, [%rd159];
	add.s64 	%rd160, %rd213, %rd18;
	ld.u32 	%r14, [%rd160];
	add.s64 	%rd161, %rd210, %rd18;
	st.u32 	[%rd161], %r11;
	add.s64 	%rd162, %rd211, %rd18;
	st.u32 	[%rd162], %r12;
	add.s64 	%rd163, %rd212, %rd18;
	st.u32 	[%rd163], %r13;
	add.s64 	%rd164, %rd214, %rd18;
	st.u32 	[%rd164], %r14;
	add.s64 	%rd214, %rd214, %rd20;
	add.s64 	%rd213, %rd213, %rd20;
	add.s64 	%rd212, %rd212, %rd20;
	add.s64 	%rd211, %rd211, %rd20;
	add.s64 	%rd210, %rd210, %rd20;
	add.s64 	%rd209, %rd209, %rd16;
	add.s64 	%rd165, %rd14, %rd209;
	add.s64 	%rd208, %rd208, %rd20;
	add.s64 	%rd207, %rd207, %rd20;
	add.s64 	%rd206, %rd206, %rd20;
	setp.lt.u64 	%p18, %rd165, %rd70;
	@%p18 bra 	$L__BB8_19;
$L__BB8_20:
	setp.ge.u64 	%p19, %rd209, %rd70;
	mov.u32 	%r21, %r18;
	@%p19 bra 	$L__BB8_28;
	shl.b64 	%rd215, %rd209, 2;
$L__BB8_22:
	add.s64 	%rd166, %rd71, %rd215;
	ld.u32 	%r17, [%rd166];
	add.s64 	%rd167, %rd72, %rd215;
	st.u32 	[%rd167], %r17;
	add.s64 	%rd209, %rd209, %rd7;
	add.s64 	%rd215, %rd215, %rd16;
	setp.lt.u64 	%p20, %rd209, %rd70;
	mov.u32 	%r21, %r18;
	@%p20 bra 	$L__BB8_22;
	bra.uni 	$L__BB8_28;
$L__BB8_30:
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
	.reg .pred 	%p<26>;
	.reg .b16 	%rs<6>;
	.reg .b32 	%r<23>;
	.reg .b64 	%rd<214>;
	ld.param.u64 	%rd111, [keel_copy_out_param_2];
	mov.u32 	%r2, %ctaid.x;
	cvt.u64.u32 	%rd185, %r2;
	mov.u32 	%r3, %nctaid.x;
	cvt.u64.u32 	%rd5, %r3;
	mov.u32 	%r4, %tid.x;
	cvt.u64.u32 	%rd6, %r4;
	setp.ge.u64 	%p1, %rd185, %rd111;
	@%p1 bra 	$L__BB9_27;
	ld.param.u64 	%rd112, [keel_copy_out_param_3];
	ld.param.u64 	%rd110, [keel_copy_out_param_0];
	ld.param.u64 	%rd115, [keel_copy_out_param_1];
	cvta.to.global.u64 	%rd2, %rd115;
	cvta.to.global.u64 	%rd3, %rd110;
	mov.u32 	%r5, %ntid.x;
	cvt.u64.u32 	%rd7, %r5;
	mul.lo.s64 	%rd8, %rd7, 3;
	add.s64 	%rd9, %rd8, %rd6;
	shl.b64 	%rd10, %rd7, 2;
	shl.b64 	%rd11, %rd7, 1;
	shl.b64 	%rd12, %rd6, 2;
	mul.lo.s64 	%rd13, %rd7, 12;
	shl.b64 	%rd14, %rd7, 4;
	shl.b64 	%rd15, %rd7, 3;
	shl.b64 	%rd16, %rd6, 4;
	mul.lo.s64 	%rd17, %rd7, 48;
	shl.b64 	%rd18, %rd7, 6;
	shl.b64 	%rd19, %rd7, 5;
	mov.b32 	%r6, 4;
	mov.b32 	%r7, 1;
	mov.b32 	%r17, 0;
$L__BB9_2:
	setp.lt.u64 	%p2, %rd185, %rd112;
	mul.lo.s64 	%rd116, %rd185, 24;
	mov.u64 	%rd186, %rd185;
	@%p2 bra 	$L__BB9_4;
	add.s64 	%rd118, %rd110, %rd116;
	ld.u64 %rd186, [%rd118];
$L__BB9_4:
	shl.b64 	%rd127, %rd186, 4;
	add.s64 	%rd128, %rd2, %rd127;
	cvta.global.u64 	%rd120, %rd128;
	ld.u64 %rd119, [%rd120];
	add.s64 	%rd122, %rd120, 8;
	ld.u64 %rd121, [%rd122];
	add.s64 	%rd130, %rd3, %rd116;
	cvta.global.u64 	%rd131, %rd130;
	add.s64 	%rd124, %rd131, 8;
	ld.u64 %rd123, [%rd124];
	add.s64 	%rd126, %rd131, 16;
	ld.u64 %rd125, [%rd126];
	setp.eq.s64 	%p3, %rd119, 0;
	mov.u32 	%r22, %r6;
	@%p3 bra 	$L__BB9_25;
	add.s64 	%rd66, %rd123, %rd119;
	add.s64 	%rd65, %rd123, %rd121;
	setp.eq.s64 	%p4, %rd66, 0;
	setp.eq.s64 	%p5, %rd65, 0;
	or.pred  	%p6, %p4, %p5;
	mov.u32 	%r22, %r7;
	@%p6 bra 	$L__BB9_25;
	bra.uni 	$L__BB9_6;
$L__BB9_25:
	or.b32  	%r19, %r22, 4;
	setp.eq.s32 	%p21, %r19, 4;
	@%p21 bra 	$L__BB9_26;
	bra.uni 	$L__BB9_32;
$L__BB9_26:
	add.s64 	%rd185, %rd185, %rd5;
	setp.lt.u64 	%p22, %rd185, %rd111;
	@%p22 bra 	$L__BB9_2;
	bra.uni 	$L__BB9_27;
$L__BB9_6:
	or.b64  	%rd132, %rd66, %rd65;
	or.b64  	%rd30, %rd132, %rd125;
	and.b64  	%rd133, %rd30, 15;
	setp.ne.s64 	%p7, %rd133, 0;
	@%p7 bra 	$L__BB9_13;
	bra.uni 	$L__BB9_7;
$L__BB9_13:
	and.b64  	%rd134, %rd30, 3;
	setp.ne.s64 	%p8, %rd134, 0;
	@%p8 bra 	$L__BB9_20;
	bra.uni 	$L__BB9_14;
$L__BB9_20:
	setp.ge.u64 	%p9, %rd9, %rd125;
	mov.u64 	%rd212, %rd6;
	@%p9 bra 	$L__BB9_23;
	add.s64 	%rd97, %rd66, %rd8;
	add.s64 	%rd98, %rd65, %rd8;
	add.s64 	%rd99, %rd66, %rd11;
	add.s64 	%rd100, %rd66, %rd7;
	add.s64 	%rd101, %rd65, %rd11;
	add.s64 	%rd102, %rd65, %rd7;
	mov.u64 	%rd212, %rd6;
$L__BB9_22:
	add.s64 	%rd135, %rd65, %rd212;
	ld.u8 	%rs1, [%rd135];
	add.s64 	%rd136, %rd102, %rd212;
	ld.u8 	%rs2, [%rd136];
	add.s64 	%rd137, %rd101, %rd212;
	ld.u8 	%rs3, [%rd137];
	add.s64 	%rd138, %rd98, %rd212;
	ld.u8 	%rs4, [%rd138];
	add.s64 	%rd139, %rd66, %rd212;
	st.u8 	[%rd139], %rs1;
	add.s64 	%rd140, %rd100, %rd212;
	st.u8 	[%rd140], %rs2;
	add.s64 	%rd141, %rd99, %rd212;
	st.u8 	[%rd141], %rs3;
	add.s64 	%rd142, %rd97, %rd212;
	st.u8 	[%rd142], %rs4;
	add.s64 	%rd212, %rd212, %rd10;
	add.s64 	%rd143, %rd8, %rd212;
	setp.lt.u64 	%p10, %rd143, %rd125;
	@%p10 bra 	$L__BB9_22;
$L__BB9_23:
	setp.ge.u64 	%p11, %rd212, %rd125;
	mov.u32 	%r22, %r17;
	@%p11 bra 	$L__BB9_25;
$L__BB9_24:
	add.s64 	%rd144, %rd65, %rd212;
	ld.u8 	%rs5, [%rd144];
	add.s64 	%rd145, %rd66, %rd212;
	st.u8 	[%rd145], %rs5;
	add.s64 	%rd212, %rd212, %rd7;
	setp.lt.u64 	%p12, %rd212, %rd125;
	mov.u32 	%r22, %r17;
	@%p12 bra 	$L__BB9_24;
	bra.uni 	$L__BB9_25;
$L__BB9_7:
	shr.u64 	%rd31, %rd125, 4;
	setp.ge.u64 	%p17, %rd9, %rd31;
	mov.u64 	%rd191, %rd6;
	@%p17 bra 	$L__BB9_10;
	add.s64 	%rd196, %rd66, %rd17;
	add.s64 	%rd195, %rd65, %rd17;
	add.s64 	%rd194, %rd66, %rd19;
	add.s64 	%rd193, %rd66, %rd14;
	add.s64 	%rd190, %rd65, %rd19;
	add.s64 	%rd189, %rd65, %rd14;
	mov.u64 	%rd188, %rd65;
	mov.u64 	%rd191, %rd6;
	mov.u64 	%rd192, %rd66;
$L__BB9_9:
	add.s64 	%rd157, %rd188, %rd16;
	ld.v2.u64 	{%rd158, %rd159}, [%rd157];
	add.s64 	%rd160, %rd189, %rd16;
	ld.v2.u64 	{%rd161, %rd162}, [%rd160];
	add.s64 	%rd163, %rd190, %rd16;
	ld.v2.u64 	{%rd164, %rd165}, [%rd163];
	add.s64 	%rd166, %rd195, %rd16;
	ld.v2.u64 	{%rd167, %rd168}, [%rd166];
	add.s64 	%rd169, %rd192, %rd16;
	st.v2.u64 	[%rd169], {%rd158, %rd159};
	add.s64 	%rd170, %rd193, %rd16;
	st.v2.u64 	[%rd170], {%rd161, %rd162};
	add.s64 	%rd171, %rd194, %rd16;
	st.v2.u64 	[%rd171], {%rd164, %rd165};
	add.s64 	%rd172, %rd196, %rd16;
	st.v2.u64 	[%rd172], {%rd167, %rd168};
	add.s64 	%rd196, %rd196, %rd18;
	add.s64 	%rd195, %rd195, %rd18;
	add.s64 	%rd194, %rd194, %rd18;
	add.s64 	%rd193, %rd193, %rd18;
	add.s64 	%rd192, %rd192, %rd18;
	add.s64 	%rd191, %rd191, %rd10;
	add.s64 	%rd173, %rd8, %rd191;
	add.s64 	%rd190, %rd190, %rd18;
	add.s64 	%rd189, %rd189, %rd18;
	add.s64 	%rd188, %rd188, %rd18;
	setp.lt.u64 	%p18, %rd173, %rd31;
	@%p18 bra 	$L__BB9_9;
$L__BB9_10:
	setp.ge.u64 	%p19, %rd191, %rd31;
	mov.u32 	%r22, %r17;
	@%p19 bra 	$L__BB9_25;
	shl.b64 	%rd197, %rd191, 4;
$L__BB9_12:
	add.s64 	%rd174, %rd65, %rd197;
	ld.v2.u64 	{%rd175, %rd176}, [%rd174];
	add.s64 	%rd177, %rd66, %rd197;
	st.v2.u64 	[%rd177], {%rd175, %rd176};
	add.s64 	%rd191, %rd191, %rd7;
	add.s64 	%rd197, %rd197, %rd14;
	setp.lt.u64 	%p20, %rd191, %rd31;
	mov.u32 	%r22, %r17;
	@%p20 bra 	$L__BB9_12;
	bra.uni 	$L__BB9_25;
$L__BB9_14:
	shr.u64 	%rd64, %rd125, 2;
	setp.ge.u64 	%p13, %rd9, %rd64;
	mov.u64 	%rd203, %rd6;
	@%p13 bra 	$L__BB9_17;
	add.s64 	%rd208, %rd66, %rd13;
	add.s64 	%rd207, %rd65, %rd13;
	add.s64 	%rd206, %rd66, %rd15;
	add.s64 	%rd205, %rd66, %rd10;
	add.s64 	%rd202, %rd65, %rd15;
	add.s64 	%rd201, %rd65, %rd10;
	mov.u64 	%rd200, %rd65;
	mov.u64 	%rd203, %rd6;
	mov.u64 	%rd204, %rd66;
$L__BB9_16:
	add.s64 	%rd146, %rd200, %rd12;
	ld.u32 	%r10, [%rd146];
	add.s64 	%rd147, %rd201, %rd12;
	ld.u32 	%r11, [%rd147];
	add.s64 	%rd148, %rd202, %rd12;
	ld.u32 	%r12, [%rd148];
	add.s64 	%rd149, %rd207, %rd12;
	ld.u32 	%r13, [%rd149];
	add.s64 	%rd150, %rd204, %rd12;
	st.u32 	[%rd150], %r10;
	add.s64 	%rd151, %rd205, %rd12;
	st.u32 	[%rd151], %r11;
	add.s64 	%rd152, %rd206, %rd12;
	st.u32 	[%rd152], %r12;
	add.s64 	%rd153, %rd208, %rd12;
	st.u32 	[%rd153], %r13;
	add.s64 	%rd208, %rd208, %rd14;
	add.s64 	%rd207, %rd207, %rd14;
	add.s64 	%rd206, %rd206, %rd14;
	add.s64 	%rd205, %rd205, %rd14;
	add.s64 	%rd204, %rd204, %rd14;
	add.s64 	%rd203, %rd203, %rd10;
	add.s64 	%rd154, %rd8, %rd203;
	add.s64 	%rd202, %rd202, %rd14;
	add.s64 	%rd201, %rd201, %rd14;
	add.s64 	%rd200, %rd200, %rd14;
	setp.lt.u64 	%p14, %rd154, %rd64;
	@%p14 bra 	$L__BB9_16;
$L__BB9_17:
	setp.ge.u64 	%p15, %rd203, %rd64;
	mov.u32 	%r22, %r17;
	@%p15 bra 	$L__BB9_25;
	shl.b64 	%rd209, %rd203, 2;
$L__BB9_19:
	add.s64 	%rd155, %rd65, %rd209;
	ld.u32 	%r16, [%rd155];
	add.s64 	%rd156, %rd66, %rd209;
	st.u32 	[%rd156], %r16;
	add.s64 	%rd203, %rd203, %rd7;
	add.s64 	%rd209, %rd209, %rd10;
	setp.lt.u64 	%p16, %rd203, %rd64;
	mov.u32 	%r22, %r17;
	@%p16 bra 	$L__BB9_19;
	bra.uni 	$L__BB9_25;
$L__BB9_27:
	cvt.u32.u64 	%r20, %rd6;
	bar.sync 	0;
	setp.ne.s32 	%p23, %r20, 0;
	@%p23 bra 	$L__BB9_32;
	ld.param.u64 	%rd114, [keel_copy_out_param_4];
	cvta.to.global.u64 	%rd1, %rd114;
	cvt.u32.u64 	%r21, %rd5;
	setp.lt.u32 	%p24, %r21, 2;
	@%p24 bra 	$L__BB9_31;
	add.s64 	%rd109, %rd1, 8;
	cvta.global.u64 	%rd179, %rd109;
	atom.acq_rel.gpu.add.u64 %rd178, [%rd179], 1;
	add.s64 	%rd180, %rd178, 1;
	setp.ne.s64 	%p25, %rd180, %rd5;
	@%p25 bra 	$L__BB9_32;
	mov.u64 	%rd181, 0;
	st.global.u64 	[%rd109], %rd181;
$L__BB9_31:
	ld.param.u64 	%rd182, [keel_copy_out_param_5];
	ld.global.u64 	%rd184, [%rd1];
	add.s64 	%rd183, %rd184, 1;
	st.global.u64 	[%rd1], %rd183;
	st.release.sys.u64 [%rd182], %rd183;
$L__BB9_32:
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
	cvt.u64.u32 	%rd4, %r2;
	mov.u32 	%r3, %ntid.x;
	mul.wide.u32 	%rd5, %r1, %r3;
	or.b64  	%rd6, %rd5, %rd4;
	setp.ne.s64 	%p1, %rd6, 0;
	@%p1 bra 	$L__BB10_2;
	ld.param.u64 	%rd7, [keel_mark_param_1];
	ld.param.u64 	%rd3, [keel_mark_param_0];
	cvta.to.global.u64 	%rd1, %rd3;
	ld.global.u64 	%rd9, [%rd1];
	add.s64 	%rd8, %rd9, 1;
	st.global.u64 	[%rd1], %rd8;
	st.release.sys.u64 [%rd7], %rd8;
$L__BB10_2:
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
	@%p3 bra 	$L__BB11_12;
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
	bra.uni 	$L__BB11_2;
$L__BB11_11:
	shl.b64 	%rd59, %rd61, 2;
	add.s64 	%rd60, %rd1, %rd59;
	st.global.f32 	[%rd60], %f23;
	add.s64 	%rd61, %rd61, %rd5;
	setp.lt.u64 	%p9, %rd61, %rd10;
	@%p9 bra 	$L__BB11_2;
	bra.uni 	$L__BB11_12;
$L__BB11_2:
	or.b64  	%rd35, %rd61, %rd27;
	and.b64  	%rd36, %rd35, -4294967296;
	setp.ne.s64 	%p4, %rd36, 0;
	@%p4 bra 	$L__BB11_4;
	bra.uni 	$L__BB11_3;
$L__BB11_4:
	div.u64 	%rd62, %rd61, %rd27;
	bra.uni 	$L__BB11_5;
$L__BB11_3:
	cvt.u32.u64 	%r9, %rd61;
	div.u32 	%r10, %r9, %r8;
	cvt.u64.u32 	%rd62, %r10;
$L__BB11_5:
	mov.f32 	%f23, %f7;
	@%p5 bra 	$L__BB11_11;
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
	@%p6 bra 	$L__BB11_9;
	mov.u64 	%rd64, 0;
	mov.f32 	%f23, %f7;
$L__BB11_8:
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
	@%p7 bra 	$L__BB11_9;
	bra.uni 	$L__BB11_8;
$L__BB11_9:
	setp.eq.s64 	%p8, %rd11, 0;
	@%p8 bra 	$L__BB11_11;
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
	bra.uni 	$L__BB11_11;
$L__BB11_12:
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
	@%p1 bra 	$L__BB12_3;
	ld.param.u64 	%rd12, [keel_relu_param_0];
	ld.param.u64 	%rd13, [keel_relu_param_1];
	cvta.to.global.u64 	%rd1, %rd13;
	cvta.to.global.u64 	%rd2, %rd12;
	mov.u32 	%r2, %nctaid.x;
	mul.wide.u32 	%rd4, %r4, %r2;
	shl.b64 	%rd19, %rd18, 2;
	shl.b64 	%rd6, %rd4, 2;
$L__BB12_2:
	add.s64 	%rd16, %rd2, %rd19;
	ld.global.f32 	%f1, [%rd16];
	max.f32 	%f2, %f1, 0f00000000;
	add.s64 	%rd17, %rd1, %rd19;
	st.global.f32 	[%rd17], %f2;
	add.s64 	%rd19, %rd19, %rd6;
	add.s64 	%rd18, %rd18, %rd4;
	setp.lt.u64 	%p2, %rd18, %rd11;
	@%p2 bra 	$L__BB12_2;
$L__BB12_3:
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
	@%p1 bra 	$L__BB13_5;
	ld.param.u64 	%rd13, [keel_relu_grad_param_0];
	ld.param.u64 	%rd14, [keel_relu_grad_param_1];
	cvta.to.global.u64 	%rd1, %rd14;
	cvta.to.global.u64 	%rd2, %rd13;
	mov.u32 	%r2, %nctaid.x;
	mul.wide.u32 	%rd4, %r4, %r2;
	shl.b64 	%rd19, %rd18, 2;
	shl.b64 	%rd6, %rd4, 2;
	mov.b32 	%r5, 0;
	bra.uni 	$L__BB13_2;
$L__BB13_4:
	add.s64 	%rd19, %rd19, %rd6;
	add.s64 	%rd18, %rd18, %rd4;
	setp.lt.u64 	%p3, %rd18, %rd12;
	@%p3 bra 	$L__BB13_2;
	bra.uni 	$L__BB13_5;
$L__BB13_2:
	add.s64 	%rd17, %rd2, %rd19;
	ld.global.f32 	%f1, [%rd17];
	setp.gt.f32 	%p2, %f1, 0f00000000;
	@%p2 bra 	$L__BB13_4;
	add.s64 	%rd9, %rd1, %rd19;
	st.global.u32 	[%rd9], %r5;
	bra.uni 	$L__BB13_4;
$L__BB13_5:
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
	@%p1 bra 	$L__BB14_3;
	ld.param.u64 	%rd28, [keel_mse_param_2];
	cvta.to.global.u64 	%rd2, %rd28;
	mov.u32 	%r2, %nctaid.x;
	mul.wide.u32 	%rd6, %r4, %r2;
	add.rn.f32 	%f1, %f8, %f8;
	shl.b64 	%rd40, %rd5, 2;
	shl.b64 	%rd8, %rd6, 2;
	mov.u64 	%rd39, %rd5;
$L__BB14_2:
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
	@%p2 bra 	$L__BB14_2;
$L__BB14_3:
	setp.ne.s64 	%p3, %rd5, 0;
	@%p3 bra 	$L__BB14_11;
	ld.param.u64 	%rd26, [keel_mse_param_3];
	cvta.to.global.u64 	%rd1, %rd26;
	setp.eq.s64 	%p4, %rd24, 0;
	mov.f32 	%f34, 0f00000000;
	@%p4 bra 	$L__BB14_10;
	and.b64  	%rd9, %rd24, 1;
	setp.eq.s64 	%p5, %rd24, 1;
	mov.f32 	%f34, 0f00000000;
	mov.u64 	%rd44, 0;
	@%p5 bra 	$L__BB14_8;
	and.b64  	%rd10, %rd24, -2;
	add.s64 	%rd43, %rd4, 4;
	add.s64 	%rd42, %rd3, 4;
	mov.f32 	%f34, 0f00000000;
	mov.u64 	%rd44, 0;
$L__BB14_7:
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
	@%p6 bra 	$L__BB14_8;
	bra.uni 	$L__BB14_7;
$L__BB14_8:
	setp.eq.s64 	%p7, %rd9, 0;
	@%p7 bra 	$L__BB14_10;
	shl.b64 	%rd36, %rd44, 2;
	add.s64 	%rd37, %rd4, %rd36;
	ld.global.f32 	%f26, [%rd37];
	add.s64 	%rd38, %rd3, %rd36;
	ld.global.f32 	%f27, [%rd38];
	sub.rn.f32 	%f28, %f26, %f27;
	mul.rn.f32 	%f29, %f28, %f28;
	add.rn.f32 	%f34, %f34, %f29;
$L__BB14_10:
	mul.rn.f32 	%f30, %f34, %f8;
	st.global.f32 	[%rd1], %f30;
$L__BB14_11:
	ret;
}
)ptx";

}  // namespace keel::cuda
