// Made by tools/kernels/make_ptx.py; change its sources instead.
// From 2e6afbde235684e45cd8730730a0177b3eb4e93061eee8db92768ea178e101fa
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
	.local .align 16 .b8 	__local_depot6[48];
	.reg .b64 	%SP;
	.reg .b64 	%SPL;
	.reg .pred 	%p<22>;
	.reg .b16 	%rs<6>;
	.reg .b32 	%r<21>;
	.reg .b64 	%rd<199>;
	mov.u64 	%SPL, __local_depot6;
	cvta.local.u64 	%SP, %SPL;
	ld.param.u64 	%rd105, [keel_copy_table_param_2];
	mov.u32 	%r2, %ctaid.x;
	cvt.u64.u32 	%rd171, %r2;
	setp.ge.u64 	%p1, %rd171, %rd105;
	@%p1 bra 	$L__BB6_25;
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
$L__BB6_2:
	mul.lo.s64 	%rd108, %rd171, 24;
	add.s64 	%rd20, %rd2, %rd108;
	ld.global.u64 	%rd109, [%rd20];
	shl.b64 	%rd110, %rd109, 4;
	add.s64 	%rd22, %rd1, %rd110;
	ld.global.u64 	%rd23, [%rd22];
	setp.eq.s64 	%p2, %rd23, 0;
	mov.u32 	%r20, %r6;
	@%p2 bra 	$L__BB6_23;
	ld.global.u64 	%rd111, [%rd22+8];
	ld.global.u64 	%rd112, [%rd20+8];
	add.s64 	%rd62, %rd112, %rd23;
	add.s64 	%rd61, %rd112, %rd111;
	setp.eq.s64 	%p3, %rd62, 0;
	setp.eq.s64 	%p4, %rd61, 0;
	or.pred  	%p5, %p3, %p4;
	mov.u32 	%r20, %r7;
	@%p5 bra 	$L__BB6_23;
	bra.uni 	$L__BB6_4;
$L__BB6_23:
	or.b32  	%r19, %r20, 4;
	setp.eq.s32 	%p20, %r19, 4;
	@%p20 bra 	$L__BB6_24;
	bra.uni 	$L__BB6_25;
$L__BB6_24:
	add.s64 	%rd171, %rd171, %rd4;
	setp.lt.u64 	%p21, %rd171, %rd105;
	@%p21 bra 	$L__BB6_2;
	bra.uni 	$L__BB6_25;
$L__BB6_4:
	ld.global.u64 	%rd21, [%rd20+16];
	or.b64  	%rd113, %rd61, %rd21;
	or.b64  	%rd26, %rd113, %rd62;
	and.b64  	%rd114, %rd26, 15;
	setp.ne.s64 	%p6, %rd114, 0;
	@%p6 bra 	$L__BB6_11;
	bra.uni 	$L__BB6_5;
$L__BB6_11:
	and.b64  	%rd115, %rd26, 3;
	setp.ne.s64 	%p7, %rd115, 0;
	@%p7 bra 	$L__BB6_18;
	bra.uni 	$L__BB6_12;
$L__BB6_18:
	setp.ge.u64 	%p8, %rd8, %rd21;
	mov.u64 	%rd197, %rd5;
	@%p8 bra 	$L__BB6_21;
	add.s64 	%rd93, %rd62, %rd7;
	add.s64 	%rd94, %rd61, %rd7;
	add.s64 	%rd95, %rd62, %rd10;
	add.s64 	%rd96, %rd62, %rd6;
	add.s64 	%rd97, %rd61, %rd10;
	add.s64 	%rd98, %rd61, %rd6;
	mov.u64 	%rd197, %rd5;
$L__BB6_20:
	add.s64 	%rd116, %rd61, %rd197;
	ld.u8 	%rs1, [%rd116];
	add.s64 	%rd117, %rd98, %rd197;
	ld.u8 	%rs2, [%rd117];
	add.s64 	%rd118, %rd97, %rd197;
	ld.u8 	%rs3, [%rd118];
	add.s64 	%rd119, %rd94, %rd197;
	ld.u8 	%rs4, [%rd119];
	add.s64 	%rd120, %rd62, %rd197;
	st.u8 	[%rd120], %rs1;
	add.s64 	%rd121, %rd96, %rd197;
	st.u8 	[%rd121], %rs2;
	add.s64 	%rd122, %rd95, %rd197;
	st.u8 	[%rd122], %rs3;
	add.s64 	%rd123, %rd93, %rd197;
	st.u8 	[%rd123], %rs4;
	add.s64 	%rd197, %rd197, %rd9;
	add.s64 	%rd124, %rd7, %rd197;
	setp.lt.u64 	%p9, %rd124, %rd21;
	@%p9 bra 	$L__BB6_20;
$L__BB6_21:
	setp.ge.u64 	%p10, %rd197, %rd21;
	mov.u32 	%r20, %r17;
	@%p10 bra 	$L__BB6_23;
$L__BB6_22:
	add.s64 	%rd125, %rd61, %rd197;
	ld.u8 	%rs5, [%rd125];
	add.s64 	%rd126, %rd62, %rd197;
	st.u8 	[%rd126], %rs5;
	add.s64 	%rd197, %rd197, %rd6;
	setp.lt.u64 	%p11, %rd197, %rd21;
	mov.u32 	%r20, %r17;
	@%p11 bra 	$L__BB6_22;
	bra.uni 	$L__BB6_23;
$L__BB6_5:
	shr.u64 	%rd27, %rd21, 4;
	setp.ge.u64 	%p16, %rd8, %rd27;
	mov.u64 	%rd176, %rd5;
	@%p16 bra 	$L__BB6_8;
	add.s64 	%rd181, %rd62, %rd16;
	add.s64 	%rd180, %rd61, %rd16;
	add.s64 	%rd179, %rd62, %rd18;
	add.s64 	%rd178, %rd62, %rd13;
	add.s64 	%rd175, %rd61, %rd18;
	add.s64 	%rd174, %rd61, %rd13;
	mov.u64 	%rd173, %rd61;
	mov.u64 	%rd176, %rd5;
	mov.u64 	%rd177, %rd62;
$L__BB6_7:
	add.s64 	%rd138, %rd173, %rd15;
	add.s64 	%rd139, %rd174, %rd15;
	ld.u64 	%rd140, [%rd139+8];
	add.u64 	%rd141, %SP, 0;
	or.b64  	%rd142, %rd141, 8;
	st.u64 	[%rd142], %rd140;
	ld.u64 	%rd143, [%rd139];
	st.u64 	[%SP+0], %rd143;
	add.s64 	%rd144, %rd175, %rd15;
	ld.u64 	%rd145, [%rd144+8];
	add.u64 	%rd146, %SP, 16;
	or.b64  	%rd147, %rd146, 8;
	st.u64 	[%rd147], %rd145;
	ld.u64 	%rd148, [%rd144];
	st.u64 	[%SP+16], %rd148;
	add.s64 	%rd149, %rd180, %rd15;
	ld.u64 	%rd150, [%rd149+8];
	add.u64 	%rd151, %SP, 32;
	or.b64  	%rd152, %rd151, 8;
	st.u64 	[%rd152], %rd150;
	ld.u64 	%rd153, [%rd149];
	st.u64 	[%SP+32], %rd153;
	add.s64 	%rd154, %rd177, %rd15;
	ld.u64 	%rd155, [%rd138];
	st.u64 	[%rd154], %rd155;
	ld.u64 	%rd156, [%rd138+8];
	st.u64 	[%rd154+8], %rd156;
	add.s64 	%rd157, %rd178, %rd15;
	ld.u64 	%rd158, [%rd142];
	st.u64 	[%rd157+8], %rd158;
	ld.u64 	%rd159, [%SP+0];
	st.u64 	[%rd157], %rd159;
	add.s64 	%rd160, %rd179, %rd15;
	ld.u64 	%rd161, [%rd147];
	st.u64 	[%rd160+8], %rd161;
	ld.u64 	%rd162, [%SP+16];
	st.u64 	[%rd160], %rd162;
	add.s64 	%rd163, %rd181, %rd15;
	ld.u64 	%rd164, [%rd152];
	st.u64 	[%rd163+8], %rd164;
	ld.u64 	%rd165, [%SP+32];
	st.u64 	[%rd163], %rd165;
	add.s64 	%rd181, %rd181, %rd17;
	add.s64 	%rd180, %rd180, %rd17;
	add.s64 	%rd179, %rd179, %rd17;
	add.s64 	%rd178, %rd178, %rd17;
	add.s64 	%rd177, %rd177, %rd17;
	add.s64 	%rd176, %rd176, %rd9;
	add.s64 	%rd166, %rd7, %rd176;
	add.s64 	%rd175, %rd175, %rd17;
	add.s64 	%rd174, %rd174, %rd17;
	add.s64 	%rd173, %rd173, %rd17;
	setp.lt.u64 	%p17, %rd166, %rd27;
	@%p17 bra 	$L__BB6_7;
$L__BB6_8:
	setp.ge.u64 	%p18, %rd176, %rd27;
	mov.u32 	%r20, %r17;
	@%p18 bra 	$L__BB6_23;
	shl.b64 	%rd182, %rd176, 4;
$L__BB6_10:
	add.s64 	%rd167, %rd61, %rd182;
	add.s64 	%rd168, %rd62, %rd182;
	ld.u64 	%rd169, [%rd167+8];
	st.u64 	[%rd168+8], %rd169;
	ld.u64 	%rd170, [%rd167];
	st.u64 	[%rd168], %rd170;
	add.s64 	%rd176, %rd176, %rd6;
	add.s64 	%rd182, %rd182, %rd13;
	setp.lt.u64 	%p19, %rd176, %rd27;
	mov.u32 	%r20, %r17;
	@%p19 bra 	$L__BB6_10;
	bra.uni 	$L__BB6_23;
$L__BB6_12:
	shr.u64 	%rd60, %rd21, 2;
	setp.ge.u64 	%p12, %rd8, %rd60;
	mov.u64 	%rd188, %rd5;
	@%p12 bra 	$L__BB6_15;
	add.s64 	%rd193, %rd62, %rd12;
	add.s64 	%rd192, %rd61, %rd12;
	add.s64 	%rd191, %rd62, %rd14;
	add.s64 	%rd190, %rd62, %rd9;
	add.s64 	%rd187, %rd61, %rd14;
	add.s64 	%rd186, %rd61, %rd9;
	mov.u64 	%rd185, %rd61;
	mov.u64 	%rd188, %rd5;
	mov.u64 	%rd189, %rd62;
$L__BB6_14:
	add.s64 	%rd127, %rd185, %rd11;
	ld.u32 	%r10, [%rd127];
	add.s64 	%rd128, %rd186, %rd11;
	ld.u32 	%r11, [%rd128];
	add.s64 	%rd129, %rd187, %rd11;
	ld.u32 	%r12, [%rd129];
	add.s64 	%rd130, %rd192, %rd11;
	ld.u32 	%r13, [%rd130];
	add.s64 	%rd131, %rd189, %rd11;
	st.u32 	[%rd131], %r10;
	add.s64 	%rd132, %rd190, %rd11;
	st.u32 	[%rd132], %r11;
	add.s64 	%rd133, %rd191, %rd11;
	st.u32 	[%rd133], %r12;
	add.s64 	%rd134, %rd193, %rd11;
	st.u32 	[%rd134], %r13;
	add.s64 	%rd193, %rd193, %rd13;
	add.s64 	%rd192, %rd192, %rd13;
	add.s64 	%rd191, %rd191, %rd13;
	add.s64 	%rd190, %rd190, %rd13;
	add.s64 	%rd189, %rd189, %rd13;
	add.s64 	%rd188, %rd188, %rd9;
	add.s64 	%rd135, %rd7, %rd188;
	add.s64 	%rd187, %rd187, %rd13;
	add.s64 	%rd186, %rd186, %rd13;
	add.s64 	%rd185, %rd185, %rd13;
	setp.lt.u64 	%p13, %rd135, %rd60;
	@%p13 bra 	$L__BB6_14;
$L__BB6_15:
	setp.ge.u64 	%p14, %rd188, %rd60;
	mov.u32 	%r20, %r17;
	@%p14 bra 	$L__BB6_23;
	shl.b64 	%rd194, %rd188, 2;
$L__BB6_17:
	add.s64 	%rd136, %rd61, %rd194;
	ld.u32 	%r16, [%rd136];
	add.s64 	%rd137, %rd62, %rd194;
	st.u32 	[%rd137], %r16;
	add.s64 	%rd188, %rd188, %rd6;
	add.s64 	%rd194, %rd194, %rd9;
	setp.lt.u64 	%p15, %rd188, %rd60;
	mov.u32 	%r20, %r17;
	@%p15 bra 	$L__BB6_17;
	bra.uni 	$L__BB6_23;
$L__BB6_25:
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
	@%p3 bra 	$L__BB8_12;
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
	bra.uni 	$L__BB8_2;
$L__BB8_11:
	shl.b64 	%rd59, %rd61, 2;
	add.s64 	%rd60, %rd1, %rd59;
	st.global.f32 	[%rd60], %f23;
	add.s64 	%rd61, %rd61, %rd5;
	setp.lt.u64 	%p9, %rd61, %rd10;
	@%p9 bra 	$L__BB8_2;
	bra.uni 	$L__BB8_12;
$L__BB8_2:
	or.b64  	%rd35, %rd61, %rd27;
	and.b64  	%rd36, %rd35, -4294967296;
	setp.ne.s64 	%p4, %rd36, 0;
	@%p4 bra 	$L__BB8_4;
	bra.uni 	$L__BB8_3;
$L__BB8_4:
	div.u64 	%rd62, %rd61, %rd27;
	bra.uni 	$L__BB8_5;
$L__BB8_3:
	cvt.u32.u64 	%r9, %rd61;
	div.u32 	%r10, %r9, %r8;
	cvt.u64.u32 	%rd62, %r10;
$L__BB8_5:
	mov.f32 	%f23, %f7;
	@%p5 bra 	$L__BB8_11;
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
	@%p6 bra 	$L__BB8_9;
	mov.u64 	%rd64, 0;
	mov.f32 	%f23, %f7;
$L__BB8_8:
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
	@%p7 bra 	$L__BB8_9;
	bra.uni 	$L__BB8_8;
$L__BB8_9:
	setp.eq.s64 	%p8, %rd11, 0;
	@%p8 bra 	$L__BB8_11;
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
	bra.uni 	$L__BB8_11;
$L__BB8_12:
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
	@%p1 bra 	$L__BB9_3;
	ld.param.u64 	%rd12, [keel_relu_param_0];
	ld.param.u64 	%rd13, [keel_relu_param_1];
	cvta.to.global.u64 	%rd1, %rd13;
	cvta.to.global.u64 	%rd2, %rd12;
	mov.u32 	%r2, %nctaid.x;
	mul.wide.u32 	%rd4, %r4, %r2;
	shl.b64 	%rd19, %rd18, 2;
	shl.b64 	%rd6, %rd4, 2;
$L__BB9_2:
	add.s64 	%rd16, %rd2, %rd19;
	ld.global.f32 	%f1, [%rd16];
	max.f32 	%f2, %f1, 0f00000000;
	add.s64 	%rd17, %rd1, %rd19;
	st.global.f32 	[%rd17], %f2;
	add.s64 	%rd19, %rd19, %rd6;
	add.s64 	%rd18, %rd18, %rd4;
	setp.lt.u64 	%p2, %rd18, %rd11;
	@%p2 bra 	$L__BB9_2;
$L__BB9_3:
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
	@%p1 bra 	$L__BB10_5;
	ld.param.u64 	%rd13, [keel_relu_grad_param_0];
	ld.param.u64 	%rd14, [keel_relu_grad_param_1];
	cvta.to.global.u64 	%rd1, %rd14;
	cvta.to.global.u64 	%rd2, %rd13;
	mov.u32 	%r2, %nctaid.x;
	mul.wide.u32 	%rd4, %r4, %r2;
	shl.b64 	%rd19, %rd18, 2;
	shl.b64 	%rd6, %rd4, 2;
	mov.b32 	%r5, 0;
	bra.uni 	$L__BB10_2;
$L__BB10_4:
	add.s64 	%rd19, %rd19, %rd6;
	add.s64 	%rd18, %rd18, %rd4;
	setp.lt.u64 	%p3, %rd18, %rd12;
	@%p3 bra 	$L__BB10_2;
	bra.uni 	$L__BB10_5;
$L__BB10_2:
	add.s64 	%rd17, %rd2, %rd19;
	ld.global.f32 	%f1, [%rd17];
	setp.gt.f32 	%p2, %f1, 0f00000000;
	@%p2 bra 	$L__BB10_4;
	add.s64 	%rd9, %rd1, %rd19;
	st.global.u32 	[%rd9], %r5;
	bra.uni 	$L__BB10_4;
$L__BB10_5:
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
	@%p1 bra 	$L__BB11_3;
	ld.param.u64 	%rd28, [keel_mse_param_2];
	cvta.to.global.u64 	%rd2, %rd28;
	mov.u32 	%r2, %nctaid.x;
	mul.wide.u32 	%rd6, %r4, %r2;
	add.rn.f32 	%f1, %f8, %f8;
	shl.b64 	%rd40, %rd5, 2;
	shl.b64 	%rd8, %rd6, 2;
	mov.u64 	%rd39, %rd5;
$L__BB11_2:
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
	@%p2 bra 	$L__BB11_2;
$L__BB11_3:
	setp.ne.s64 	%p3, %rd5, 0;
	@%p3 bra 	$L__BB11_11;
	ld.param.u64 	%rd26, [keel_mse_param_3];
	cvta.to.global.u64 	%rd1, %rd26;
	setp.eq.s64 	%p4, %rd24, 0;
	mov.f32 	%f34, 0f00000000;
	@%p4 bra 	$L__BB11_10;
	and.b64  	%rd9, %rd24, 1;
	setp.eq.s64 	%p5, %rd24, 1;
	mov.f32 	%f34, 0f00000000;
	mov.u64 	%rd44, 0;
	@%p5 bra 	$L__BB11_8;
	and.b64  	%rd10, %rd24, -2;
	add.s64 	%rd43, %rd4, 4;
	add.s64 	%rd42, %rd3, 4;
	mov.f32 	%f34, 0f00000000;
	mov.u64 	%rd44, 0;
$L__BB11_7:
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
	@%p6 bra 	$L__BB11_8;
	bra.uni 	$L__BB11_7;
$L__BB11_8:
	setp.eq.s64 	%p7, %rd9, 0;
	@%p7 bra 	$L__BB11_10;
	shl.b64 	%rd36, %rd44, 2;
	add.s64 	%rd37, %rd4, %rd36;
	ld.global.f32 	%f26, [%rd37];
	add.s64 	%rd38, %rd3, %rd36;
	ld.global.f32 	%f27, [%rd38];
	sub.rn.f32 	%f28, %f26, %f27;
	mul.rn.f32 	%f29, %f28, %f28;
	add.rn.f32 	%f34, %f34, %f29;
$L__BB11_10:
	mul.rn.f32 	%f30, %f34, %f8;
	st.global.f32 	[%rd1], %f30;
$L__BB11_11:
	ret;
}
)ptx";

}  // namespace keel::cuda
