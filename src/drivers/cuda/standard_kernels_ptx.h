// Made by tools/kernels/make_ptx.py; change its sources instead.
// From b28a543004bc0f988666433ef8f8c4468d6d91c21d67f7ad7ad11e71336bbce3
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
	.reg .pred 	%p<24>;
	.reg .b16 	%rs<6>;
	.reg .b32 	%r<15>;
	.reg .b64 	%rd<198>;
	ld.param.u64 	%rd104, [keel_copy_table_param_2];
	mov.u32 	%r3, %ctaid.x;
	cvt.u64.u32 	%rd170, %r3;
	setp.ge.u64 	%p2, %rd170, %rd104;
	@%p2 bra 	$L__BB7_26;
	ld.param.u64 	%rd105, [keel_copy_table_param_0];
	ld.param.u64 	%rd106, [keel_copy_table_param_1];
	cvta.to.global.u64 	%rd1, %rd106;
	cvta.to.global.u64 	%rd2, %rd105;
	mov.u32 	%r4, %nctaid.x;
	cvt.u64.u32 	%rd4, %r4;
	mov.u32 	%r5, %tid.x;
	cvt.u64.u32 	%rd5, %r5;
	mov.u32 	%r6, %ntid.x;
	cvt.u64.u32 	%rd6, %r6;
	mul.lo.s64 	%rd7, %rd6, 3;
	add.s64 	%rd8, %rd7, %rd5;
	shl.b64 	%rd9, %rd5, 2;
	mul.lo.s64 	%rd10, %rd6, 12;
	shl.b64 	%rd11, %rd6, 4;
	shl.b64 	%rd12, %rd6, 3;
	shl.b64 	%rd13, %rd6, 2;
	shl.b64 	%rd14, %rd5, 4;
	mul.lo.s64 	%rd15, %rd6, 48;
	shl.b64 	%rd16, %rd6, 6;
	shl.b64 	%rd17, %rd6, 5;
	shl.b64 	%rd18, %rd6, 1;
	mov.b32 	%r7, 4;
$L__BB7_2:
	mul.lo.s64 	%rd117, %rd170, 24;
	add.s64 	%rd118, %rd2, %rd117;
	cvta.global.u64 	%rd108, %rd118;
	ld.u64 %rd107, [%rd108];
	shl.b64 	%rd119, %rd107, 4;
	add.s64 	%rd120, %rd1, %rd119;
	cvta.global.u64 	%rd110, %rd120;
	ld.u64 %rd109, [%rd110];
	add.s64 	%rd112, %rd110, 8;
	ld.u64 %rd111, [%rd112];
	add.s64 	%rd114, %rd108, 8;
	ld.u64 %rd113, [%rd114];
	add.s64 	%rd116, %rd108, 16;
	ld.u64 %rd115, [%rd116];
	setp.eq.s64 	%p3, %rd109, 0;
	mov.u32 	%r14, %r7;
	@%p3 bra 	$L__BB7_24;
	add.s64 	%rd61, %rd113, %rd109;
	add.s64 	%rd60, %rd113, %rd111;
	setp.eq.s64 	%p4, %rd61, 0;
	setp.eq.s64 	%p5, %rd60, 0;
	or.pred  	%p1, %p4, %p5;
	@%p1 bra 	$L__BB7_23;
	bra.uni 	$L__BB7_4;
$L__BB7_23:
	selp.u32 	%r14, 1, 0, %p1;
$L__BB7_24:
	or.b32  	%r13, %r14, 4;
	setp.eq.s32 	%p22, %r13, 4;
	@%p22 bra 	$L__BB7_25;
	bra.uni 	$L__BB7_26;
$L__BB7_25:
	add.s64 	%rd170, %rd170, %rd4;
	setp.lt.u64 	%p23, %rd170, %rd104;
	@%p23 bra 	$L__BB7_2;
	bra.uni 	$L__BB7_26;
$L__BB7_4:
	or.b64  	%rd122, %rd60, %rd61;
	or.b64  	%rd123, %rd122, %rd115;
	and.b64  	%rd124, %rd123, 15;
	setp.eq.s64 	%p6, %rd124, 0;
	and.b64  	%rd125, %rd123, 3;
	setp.eq.s64 	%p7, %rd125, 0;
	selp.b64 	%rd126, 4, 1, %p7;
	selp.b64 	%rd121, 16, %rd126, %p6;
	setp.eq.s64 	%p8, %rd121, 4;
	@%p8 bra 	$L__BB7_12;
	setp.ne.s64 	%p9, %rd121, 16;
	@%p9 bra 	$L__BB7_18;
	shr.u64 	%rd26, %rd115, 4;
	setp.ge.u64 	%p14, %rd8, %rd26;
	mov.u64 	%rd175, %rd5;
	@%p14 bra 	$L__BB7_9;
	add.s64 	%rd180, %rd61, %rd15;
	add.s64 	%rd179, %rd60, %rd15;
	add.s64 	%rd178, %rd61, %rd17;
	add.s64 	%rd177, %rd61, %rd11;
	add.s64 	%rd174, %rd60, %rd17;
	add.s64 	%rd173, %rd60, %rd11;
	mov.u64 	%rd172, %rd60;
	mov.u64 	%rd175, %rd5;
	mov.u64 	%rd176, %rd61;
$L__BB7_8:
	add.s64 	%rd138, %rd172, %rd14;
	ld.v2.u64 	{%rd139, %rd140}, [%rd138];
	add.s64 	%rd141, %rd173, %rd14;
	ld.v2.u64 	{%rd142, %rd143}, [%rd141];
	add.s64 	%rd144, %rd174, %rd14;
	ld.v2.u64 	{%rd145, %rd146}, [%rd144];
	add.s64 	%rd147, %rd179, %rd14;
	ld.v2.u64 	{%rd148, %rd149}, [%rd147];
	add.s64 	%rd150, %rd176, %rd14;
	st.v2.u64 	[%rd150], {%rd139, %rd140};
	add.s64 	%rd151, %rd177, %rd14;
	st.v2.u64 	[%rd151], {%rd142, %rd143};
	add.s64 	%rd152, %rd178, %rd14;
	st.v2.u64 	[%rd152], {%rd145, %rd146};
	add.s64 	%rd153, %rd180, %rd14;
	st.v2.u64 	[%rd153], {%rd148, %rd149};
	add.s64 	%rd180, %rd180, %rd16;
	add.s64 	%rd179, %rd179, %rd16;
	add.s64 	%rd178, %rd178, %rd16;
	add.s64 	%rd177, %rd177, %rd16;
	add.s64 	%rd176, %rd176, %rd16;
	add.s64 	%rd175, %rd175, %rd13;
	add.s64 	%rd154, %rd7, %rd175;
	add.s64 	%rd174, %rd174, %rd16;
	add.s64 	%rd173, %rd173, %rd16;
	add.s64 	%rd172, %rd172, %rd16;
	setp.lt.u64 	%p15, %rd154, %rd26;
	@%p15 bra 	$L__BB7_8;
$L__BB7_9:
	setp.ge.u64 	%p16, %rd175, %rd26;
	@%p16 bra 	$L__BB7_23;
	shl.b64 	%rd181, %rd175, 4;
$L__BB7_11:
	add.s64 	%rd155, %rd60, %rd181;
	ld.v2.u64 	{%rd156, %rd157}, [%rd155];
	add.s64 	%rd158, %rd61, %rd181;
	st.v2.u64 	[%rd158], {%rd156, %rd157};
	add.s64 	%rd175, %rd175, %rd6;
	add.s64 	%rd181, %rd181, %rd11;
	setp.lt.u64 	%p17, %rd175, %rd26;
	@%p17 bra 	$L__BB7_11;
	bra.uni 	$L__BB7_23;
$L__BB7_12:
	shr.u64 	%rd59, %rd115, 2;
	setp.ge.u64 	%p10, %rd8, %rd59;
	mov.u64 	%rd187, %rd5;
	@%p10 bra 	$L__BB7_15;
	add.s64 	%rd192, %rd61, %rd10;
	add.s64 	%rd191, %rd60, %rd10;
	add.s64 	%rd190, %rd61, %rd12;
	add.s64 	%rd189, %rd61, %rd13;
	add.s64 	%rd186, %rd60, %rd12;
	add.s64 	%rd185, %rd60, %rd13;
	mov.u64 	%rd184, %rd60;
	mov.u64 	%rd187, %rd5;
	mov.u64 	%rd188, %rd61;
$L__BB7_14:
	add.s64 	%rd127, %rd184, %rd9;
	ld.u32 	%r8, [%rd127];
	add.s64 	%rd128, %rd185, %rd9;
	ld.u32 	%r9, [%rd128];
	add.s64 	%rd129, %rd186, %rd9;
	ld.u32 	%r10, [%rd129];
	add.s64 	%rd130, %rd191, %rd9;
	ld.u32 	%r11, [%rd130];
	add.s64 	%rd131, %rd188, %rd9;
	st.u32 	[%rd131], %r8;
	add.s64 	%rd132, %rd189, %rd9;
	st.u32 	[%rd132], %r9;
	add.s64 	%rd133, %rd190, %rd9;
	st.u32 	[%rd133], %r10;
	add.s64 	%rd134, %rd192, %rd9;
	st.u32 	[%rd134], %r11;
	add.s64 	%rd192, %rd192, %rd11;
	add.s64 	%rd191, %rd191, %rd11;
	add.s64 	%rd190, %rd190, %rd11;
	add.s64 	%rd189, %rd189, %rd11;
	add.s64 	%rd188, %rd188, %rd11;
	add.s64 	%rd187, %rd187, %rd13;
	add.s64 	%rd135, %rd7, %rd187;
	add.s64 	%rd186, %rd186, %rd11;
	add.s64 	%rd185, %rd185, %rd11;
	add.s64 	%rd184, %rd184, %rd11;
	setp.lt.u64 	%p11, %rd135, %rd59;
	@%p11 bra 	$L__BB7_14;
$L__BB7_15:
	setp.ge.u64 	%p12, %rd187, %rd59;
	@%p12 bra 	$L__BB7_23;
	shl.b64 	%rd193, %rd187, 2;
$L__BB7_17:
	add.s64 	%rd136, %rd60, %rd193;
	ld.u32 	%r12, [%rd136];
	add.s64 	%rd137, %rd61, %rd193;
	st.u32 	[%rd137], %r12;
	add.s64 	%rd187, %rd187, %rd6;
	add.s64 	%rd193, %rd193, %rd13;
	setp.lt.u64 	%p13, %rd187, %rd59;
	@%p13 bra 	$L__BB7_17;
	bra.uni 	$L__BB7_23;
$L__BB7_18:
	setp.ge.u64 	%p18, %rd8, %rd115;
	mov.u64 	%rd196, %rd5;
	@%p18 bra 	$L__BB7_21;
	add.s64 	%rd92, %rd61, %rd7;
	add.s64 	%rd93, %rd60, %rd7;
	add.s64 	%rd94, %rd61, %rd18;
	add.s64 	%rd95, %rd61, %rd6;
	add.s64 	%rd96, %rd60, %rd18;
	add.s64 	%rd97, %rd60, %rd6;
	mov.u64 	%rd196, %rd5;
$L__BB7_20:
	add.s64 	%rd159, %rd60, %rd196;
	ld.u8 	%rs1, [%rd159];
	add.s64 	%rd160, %rd97, %rd196;
	ld.u8 	%rs2, [%rd160];
	add.s64 	%rd161, %rd96, %rd196;
	ld.u8 	%rs3, [%rd161];
	add.s64 	%rd162, %rd93, %rd196;
	ld.u8 	%rs4, [%rd162];
	add.s64 	%rd163, %rd61, %rd196;
	st.u8 	[%rd163], %rs1;
	add.s64 	%rd164, %rd95, %rd196;
	st.u8 	[%rd164], %rs2;
	add.s64 	%rd165, %rd94, %rd196;
	st.u8 	[%rd165], %rs3;
	add.s64 	%rd166, %rd92, %rd196;
	st.u8 	[%rd166], %rs4;
	add.s64 	%rd196, %rd196, %rd13;
	add.s64 	%rd167, %rd7, %rd196;
	setp.lt.u64 	%p19, %rd167, %rd115;
	@%p19 bra 	$L__BB7_20;
$L__BB7_21:
	setp.ge.u64 	%p20, %rd196, %rd115;
	@%p20 bra 	$L__BB7_23;
$L__BB7_22:
	add.s64 	%rd168, %rd60, %rd196;
	ld.u8 	%rs5, [%rd168];
	add.s64 	%rd169, %rd61, %rd196;
	st.u8 	[%rd169], %rs5;
	add.s64 	%rd196, %rd196, %rd6;
	setp.lt.u64 	%p21, %rd196, %rd115;
	@%p21 bra 	$L__BB7_22;
	bra.uni 	$L__BB7_23;
$L__BB7_26:
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
	.reg .pred 	%p<29>;
	.reg .b16 	%rs<6>;
	.reg .b32 	%r<16>;
	.reg .b64 	%rd<223>;
	ld.param.u64 	%rd115, [keel_copy_in_param_2];
	ld.param.u64 	%rd119, [keel_copy_in_param_6];
	mov.u32 	%r3, %ctaid.x;
	cvt.u64.u32 	%rd194, %r3;
	mov.u32 	%r4, %nctaid.x;
	cvt.u64.u32 	%rd5, %r4;
	mov.u32 	%r5, %tid.x;
	cvt.u64.u32 	%rd6, %r5;
	mov.u32 	%r7, %ntid.x;
	cvt.u64.u32 	%rd7, %r7;
	add.s64 	%rd122, %rd194, 1;
	setp.eq.s64 	%p2, %rd122, %rd5;
	setp.lt.u64 	%p3, %rd6, %rd119;
	and.pred  	%p4, %p2, %p3;
	shl.b64 	%rd191, %rd7, 3;
	@!%p4 bra 	$L__BB8_3;
	bra.uni 	$L__BB8_1;
$L__BB8_1:
	ld.param.u64 	%rd117, [keel_copy_in_param_4];
	ld.param.u64 	%rd120, [keel_copy_in_param_5];
	cvta.to.global.u64 	%rd1, %rd120;
	shl.b64 	%rd192, %rd6, 3;
	mov.u64 	%rd193, %rd6;
$L__BB8_2:
	add.s64 	%rd124, %rd117, %rd192;
	ld.u64 %rd123, [%rd124];
	add.s64 	%rd125, %rd1, %rd192;
	st.global.u64 	[%rd125], %rd123;
	add.s64 	%rd193, %rd193, %rd7;
	add.s64 	%rd192, %rd192, %rd191;
	setp.lt.u64 	%p5, %rd193, %rd119;
	@%p5 bra 	$L__BB8_2;
$L__BB8_3:
	setp.ge.u64 	%p6, %rd194, %rd115;
	@%p6 bra 	$L__BB8_31;
	ld.param.u64 	%rd114, [keel_copy_in_param_0];
	ld.param.u64 	%rd121, [keel_copy_in_param_1];
	ld.param.u64 	%rd116, [keel_copy_in_param_3];
	cvta.to.global.u64 	%rd2, %rd121;
	cvta.to.global.u64 	%rd3, %rd114;
	mul.lo.s64 	%rd14, %rd7, 3;
	add.s64 	%rd15, %rd14, %rd6;
	shl.b64 	%rd16, %rd6, 2;
	mul.lo.s64 	%rd17, %rd7, 12;
	shl.b64 	%rd18, %rd7, 4;
	shl.b64 	%rd20, %rd7, 2;
	shl.b64 	%rd21, %rd6, 4;
	mul.lo.s64 	%rd22, %rd7, 48;
	shl.b64 	%rd23, %rd7, 6;
	shl.b64 	%rd24, %rd7, 5;
	shl.b64 	%rd25, %rd7, 1;
	mov.b32 	%r8, 4;
$L__BB8_5:
	setp.lt.u64 	%p7, %rd194, %rd116;
	mul.lo.s64 	%rd126, %rd194, 24;
	mov.u64 	%rd195, %rd194;
	@%p7 bra 	$L__BB8_7;
	add.s64 	%rd128, %rd114, %rd126;
	ld.u64 %rd195, [%rd128];
$L__BB8_7:
	shl.b64 	%rd137, %rd195, 4;
	add.s64 	%rd138, %rd2, %rd137;
	cvta.global.u64 	%rd130, %rd138;
	ld.u64 %rd129, [%rd130];
	add.s64 	%rd132, %rd130, 8;
	ld.u64 %rd131, [%rd132];
	add.s64 	%rd140, %rd3, %rd126;
	cvta.global.u64 	%rd141, %rd140;
	add.s64 	%rd134, %rd141, 8;
	ld.u64 %rd133, [%rd134];
	add.s64 	%rd136, %rd141, 16;
	ld.u64 %rd135, [%rd136];
	setp.eq.s64 	%p8, %rd129, 0;
	mov.u32 	%r15, %r8;
	@%p8 bra 	$L__BB8_29;
	add.s64 	%rd71, %rd133, %rd129;
	add.s64 	%rd70, %rd133, %rd131;
	setp.eq.s64 	%p9, %rd71, 0;
	setp.eq.s64 	%p10, %rd70, 0;
	or.pred  	%p1, %p9, %p10;
	@%p1 bra 	$L__BB8_28;
	bra.uni 	$L__BB8_9;
$L__BB8_28:
	selp.u32 	%r15, 1, 0, %p1;
$L__BB8_29:
	or.b32  	%r14, %r15, 4;
	setp.eq.s32 	%p27, %r14, 4;
	@%p27 bra 	$L__BB8_30;
	bra.uni 	$L__BB8_31;
$L__BB8_30:
	add.s64 	%rd194, %rd194, %rd5;
	setp.lt.u64 	%p28, %rd194, %rd115;
	@%p28 bra 	$L__BB8_5;
	bra.uni 	$L__BB8_31;
$L__BB8_9:
	or.b64  	%rd143, %rd70, %rd71;
	or.b64  	%rd144, %rd143, %rd135;
	and.b64  	%rd145, %rd144, 15;
	setp.eq.s64 	%p11, %rd145, 0;
	and.b64  	%rd146, %rd144, 3;
	setp.eq.s64 	%p12, %rd146, 0;
	selp.b64 	%rd147, 4, 1, %p12;
	selp.b64 	%rd142, 16, %rd147, %p11;
	setp.eq.s64 	%p13, %rd142, 4;
	@%p13 bra 	$L__BB8_17;
	setp.ne.s64 	%p14, %rd142, 16;
	@%p14 bra 	$L__BB8_23;
	shr.u64 	%rd36, %rd135, 4;
	setp.ge.u64 	%p19, %rd15, %rd36;
	mov.u64 	%rd200, %rd6;
	@%p19 bra 	$L__BB8_14;
	add.s64 	%rd205, %rd71, %rd22;
	add.s64 	%rd204, %rd70, %rd22;
	add.s64 	%rd203, %rd71, %rd24;
	add.s64 	%rd202, %rd71, %rd18;
	add.s64 	%rd199, %rd70, %rd24;
	add.s64 	%rd198, %rd70, %rd18;
	mov.u64 	%rd197, %rd70;
	mov.u64 	%rd200, %rd6;
	mov.u64 	%rd201, %rd71;
$L__BB8_13:
	add.s64 	%rd159, %rd197, %rd21;
	ld.v2.u64 	{%rd160, %rd161}, [%rd159];
	add.s64 	%rd162, %rd198, %rd21;
	ld.v2.u64 	{%rd163, %rd164}, [%rd162];
	add.s64 	%rd165, %rd199, %rd21;
	ld.v2.u64 	{%rd166, %rd167}, [%rd165];
	add.s64 	%rd168, %rd204, %rd21;
	ld.v2.u64 	{%rd169, %rd170}, [%rd168];
	add.s64 	%rd171, %rd201, %rd21;
	st.v2.u64 	[%rd171], {%rd160, %rd161};
	add.s64 	%rd172, %rd202, %rd21;
	st.v2.u64 	[%rd172], {%rd163, %rd164};
	add.s64 	%rd173, %rd203, %rd21;
	st.v2.u64 	[%rd173], {%rd166, %rd167};
	add.s64 	%rd174, %rd205, %rd21;
	st.v2.u64 	[%rd174], {%rd169, %rd170};
	add.s64 	%rd205, %rd205, %rd23;
	add.s64 	%rd204, %rd204, %rd23;
	add.s64 	%rd203, %rd203, %rd23;
	add.s64 	%rd202, %rd202, %rd23;
	add.s64 	%rd201, %rd201, %rd23;
	add.s64 	%rd200, %rd200, %rd20;
	add.s64 	%rd175, %rd14, %rd200;
	add.s64 	%rd199, %rd199, %rd23;
	add.s64 	%rd198, %rd198, %rd23;
	add.s64 	%rd197, %rd197, %rd23;
	setp.lt.u64 	%p20, %rd175, %rd36;
	@%p20 bra 	$L__BB8_13;
$L__BB8_14:
	setp.ge.u64 	%p21, %rd200, %rd36;
	@%p21 bra 	$L__BB8_28;
	shl.b64 	%rd206, %rd200, 4;
$L__BB8_16:
	add.s64 	%rd176, %rd70, %rd206;
	ld.v2.u64 	{%rd177, %rd178}, [%rd176];
	add.s64 	%rd179, %rd71, %rd206;
	st.v2.u64 	[%rd179], {%rd177, %rd178};
	add.s64 	%rd200, %rd200, %rd7;
	add.s64 	%rd206, %rd206, %rd18;
	setp.lt.u64 	%p22, %rd200, %rd36;
	@%p22 bra 	$L__BB8_16;
	bra.uni 	$L__BB8_28;
$L__BB8_17:
	shr.u64 	%rd69, %rd135, 2;
	setp.ge.u64 	%p15, %rd15, %rd69;
	mov.u64 	%rd212, %rd6;
	@%p15 bra 	$L__BB8_20;
	add.s64 	%rd217, %rd71, %rd17;
	add.s64 	%rd216, %rd70, %rd17;
	add.s64 	%rd215, %rd71, %rd191;
	add.s64 	%rd214, %rd71, %rd20;
	add.s64 	%rd211, %rd70, %rd191;
	add.s64 	%rd210, %rd70, %rd20;
	mov.u64 	%rd209, %rd70;
	mov.u64 	%rd212, %rd6;
	mov.u64 	%rd213, %rd71;
$L__BB8_19:
	add.s64 	%rd148, %rd209, %rd16;
	ld.u32 	%r9, [%rd148];
	add.s64 	%rd149, %rd210, %rd16;
	ld.u32 	%r10, [%rd149];
	add.s64 	%rd150, %rd211, %rd16;
	ld.u32 	%r11, [%rd150];
	add.s64 	%rd151, %rd216, %rd16;
	ld.u32 	%r12, [%rd151];
	add.s64 	%rd152, %rd213, %rd16;
	st.u32 	[%rd152], %r9;
	add.s64 	%rd153, %rd214, %rd16;
	st.u32 	[%rd153], %r10;
	add.s64 	%rd154, %rd215, %rd16;
	st.u32 	[%rd154], %r11;
	add.s64 	%rd155, %rd217, %rd16;
	st.u32 	[%rd155], %r12;
	add.s64 	%rd217, %rd217, %rd18;
	add.s64 	%rd216, %rd216, %rd18;
	add.s64 	%rd215, %rd215, %rd18;
	add.s64 	%rd214, %rd214, %rd18;
	add.s64 	%rd213, %rd213, %rd18;
	add.s64 	%rd212, %rd212, %rd20;
	add.s64 	%rd156, %rd14, %rd212;
	add.s64 	%rd211, %rd211, %rd18;
	add.s64 	%rd210, %rd210, %rd18;
	add.s64 	%rd209, %rd209, %rd18;
	setp.lt.u64 	%p16, %rd156, %rd69;
	@%p16 bra 	$L__BB8_19;
$L__BB8_20:
	setp.ge.u64 	%p17, %rd212, %rd69;
	@%p17 bra 	$L__BB8_28;
	shl.b64 	%rd218, %rd212, 2;
$L__BB8_22:
	add.s64 	%rd157, %rd70, %rd218;
	ld.u32 	%r13, [%rd157];
	add.s64 	%rd158, %rd71, %rd218;
	st.u32 	[%rd158], %r13;
	add.s64 	%rd212, %rd212, %rd7;
	add.s64 	%rd218, %rd218, %rd20;
	setp.lt.u64 	%p18, %rd212, %rd69;
	@%p18 bra 	$L__BB8_22;
	bra.uni 	$L__BB8_28;
$L__BB8_23:
	setp.ge.u64 	%p23, %rd15, %rd135;
	mov.u64 	%rd221, %rd6;
	@%p23 bra 	$L__BB8_26;
	add.s64 	%rd102, %rd71, %rd14;
	add.s64 	%rd103, %rd70, %rd14;
	add.s64 	%rd104, %rd71, %rd25;
	add.s64 	%rd105, %rd71, %rd7;
	add.s64 	%rd106, %rd70, %rd25;
	add.s64 	%rd107, %rd70, %rd7;
	mov.u64 	%rd221, %rd6;
$L__BB8_25:
	add.s64 	%rd180, %rd70, %rd221;
	ld.u8 	%rs1, [%rd180];
	add.s64 	%rd181, %rd107, %rd221;
	ld.u8 	%rs2, [%rd181];
	add.s64 	%rd182, %rd106, %rd221;
	ld.u8 	%rs3, [%rd182];
	add.s64 	%rd183, %rd103, %rd221;
	ld.u8 	%rs4, [%rd183];
	add.s64 	%rd184, %rd71, %rd221;
	st.u8 	[%rd184], %rs1;
	add.s64 	%rd185, %rd105, %rd221;
	st.u8 	[%rd185], %rs2;
	add.s64 	%rd186, %rd104, %rd221;
	st.u8 	[%rd186], %rs3;
	add.s64 	%rd187, %rd102, %rd221;
	st.u8 	[%rd187], %rs4;
	add.s64 	%rd221, %rd221, %rd20;
	add.s64 	%rd188, %rd14, %rd221;
	setp.lt.u64 	%p24, %rd188, %rd135;
	@%p24 bra 	$L__BB8_25;
$L__BB8_26:
	setp.ge.u64 	%p25, %rd221, %rd135;
	@%p25 bra 	$L__BB8_28;
$L__BB8_27:
	add.s64 	%rd189, %rd70, %rd221;
	ld.u8 	%rs5, [%rd189];
	add.s64 	%rd190, %rd71, %rd221;
	st.u8 	[%rd190], %rs5;
	add.s64 	%rd221, %rd221, %rd7;
	setp.lt.u64 	%p26, %rd221, %rd135;
	@%p26 bra 	$L__BB8_27;
	bra.uni 	$L__BB8_28;
$L__BB8_31:
	ret;
}
.visible .entry keel_copy_in_rows(
	.param .align 8 .b8 keel_copy_in_rows_param_0[1920],
	.param .u64 keel_copy_in_rows_param_1,
	.param .u64 keel_copy_in_rows_param_2,
	.param .u64 keel_copy_in_rows_param_3,
	.param .u64 keel_copy_in_rows_param_4,
	.param .u64 keel_copy_in_rows_param_5,
	.param .u64 keel_copy_in_rows_param_6
)
{
	.reg .pred 	%p<117>;
	.reg .b16 	%rs<6>;
	.reg .b32 	%r<14>;
	.reg .b64 	%rd<595>;
	ld.param.u64 	%rd309, [keel_copy_in_rows_param_3];
	mov.b64 	%rd311, keel_copy_in_rows_param_0;
	mov.u64 	%rd2, %rd311;
	mov.u32 	%r3, %ctaid.x;
	cvt.u64.u32 	%rd3, %r3;
	ld.param.u64 	%rd313, [keel_copy_in_rows_param_4];
	mov.u32 	%r4, %nctaid.x;
	cvt.u64.u32 	%rd4, %r4;
	mov.u32 	%r5, %tid.x;
	cvt.u64.u32 	%rd594, %r5;
	mov.u32 	%r6, %ntid.x;
	cvt.u64.u32 	%rd6, %r6;
	setp.eq.s64 	%p5, %rd313, 0;
	@%p5 bra 	$L__BB9_105;
	shl.b64 	%rd499, %rd3, 2;
	setp.ge.u64 	%p6, %rd499, %rd309;
	@%p6 bra 	$L__BB9_139;
	mov.u64 	%rd314, 0;
	add.s64 	%rd8, %rd2, 1536;
	shl.b64 	%rd9, %rd4, 2;
	shl.b64 	%rd10, %rd594, 4;
	shl.b64 	%rd11, %rd6, 4;
	shl.b64 	%rd12, %rd594, 2;
	shl.b64 	%rd13, %rd6, 2;
	bra.uni 	$L__BB9_3;
$L__BB9_104:
	add.s64 	%rd499, %rd499, %rd9;
	setp.lt.u64 	%p85, %rd499, %rd309;
	@%p85 bra 	$L__BB9_3;
	bra.uni 	$L__BB9_139;
$L__BB9_3:
	shl.b64 	%rd316, %rd499, 4;
	add.s64 	%rd317, %rd2, %rd316;
	ld.param.u64 	%rd15, [%rd317];
	mul.lo.s64 	%rd318, %rd499, -12;
	add.s64 	%rd17, %rd317, %rd318;
	setp.eq.s64 	%p7, %rd15, 0;
	mov.u64 	%rd500, %rd314;
	mov.u64 	%rd501, %rd314;
	mov.u64 	%rd502, %rd314;
	mov.u64 	%rd503, %rd314;
	@%p7 bra 	$L__BB9_9;
	ld.param.u64 	%rd16, [%rd317+8];
	setp.eq.s64 	%p8, %rd16, 0;
	mov.u64 	%rd500, 0;
	mov.u64 	%rd501, %rd500;
	mov.u64 	%rd502, %rd500;
	mov.u64 	%rd503, %rd500;
	@%p8 bra 	$L__BB9_9;
	ld.param.u32 	%rd503, [%rd17+1536];
	or.b64  	%rd321, %rd16, %rd15;
	or.b64  	%rd322, %rd321, %rd503;
	and.b64  	%rd323, %rd322, 15;
	setp.eq.s64 	%p9, %rd323, 0;
	and.b64  	%rd324, %rd322, 3;
	setp.eq.s64 	%p10, %rd324, 0;
	selp.b64 	%rd325, 4, 1, %p10;
	selp.b64 	%rd502, 16, %rd325, %p9;
	setp.eq.s64 	%p11, %rd502, 4;
	@%p11 bra 	$L__BB9_8;
	setp.ne.s64 	%p12, %rd502, 16;
	mov.u64 	%rd500, %rd15;
	mov.u64 	%rd501, %rd16;
	@%p12 bra 	$L__BB9_9;
	shr.u64 	%rd503, %rd503, 4;
	mov.u64 	%rd502, 16;
	mov.u64 	%rd500, %rd15;
	mov.u64 	%rd501, %rd16;
	bra.uni 	$L__BB9_9;
$L__BB9_8:
	shr.u64 	%rd503, %rd503, 2;
	mov.u64 	%rd502, 4;
	mov.u64 	%rd500, %rd15;
	mov.u64 	%rd501, %rd16;
$L__BB9_9:
	or.b64  	%rd330, %rd499, 1;
	setp.ge.u64 	%p15, %rd330, %rd309;
	mul.lo.s64 	%rd496, %rd499, 12;
	shl.b64 	%rd497, %rd499, 2;
	mov.u64 	%rd504, %rd314;
	mov.u64 	%rd505, %rd314;
	mov.u64 	%rd506, %rd314;
	mov.u64 	%rd507, %rd314;
	@%p15 bra 	$L__BB9_16;
	add.s64 	%rd334, %rd17, %rd496;
	ld.param.u64 	%rd32, [%rd334+16];
	setp.eq.s64 	%p16, %rd32, 0;
	mov.u64 	%rd504, 0;
	mov.u64 	%rd505, %rd504;
	mov.u64 	%rd506, %rd504;
	mov.u64 	%rd507, %rd504;
	@%p16 bra 	$L__BB9_16;
	ld.param.u64 	%rd33, [%rd334+24];
	setp.eq.s64 	%p17, %rd33, 0;
	mov.u64 	%rd504, 0;
	mov.u64 	%rd505, %rd504;
	mov.u64 	%rd506, %rd504;
	mov.u64 	%rd507, %rd504;
	@%p17 bra 	$L__BB9_16;
	add.s64 	%rd336, %rd8, %rd497;
	ld.param.u32 	%rd507, [%rd336+4];
	or.b64  	%rd339, %rd33, %rd32;
	or.b64  	%rd340, %rd339, %rd507;
	and.b64  	%rd341, %rd340, 15;
	setp.eq.s64 	%p18, %rd341, 0;
	and.b64  	%rd342, %rd340, 3;
	setp.eq.s64 	%p19, %rd342, 0;
	selp.b64 	%rd343, 4, 1, %p19;
	selp.b64 	%rd506, 16, %rd343, %p18;
	setp.eq.s64 	%p20, %rd506, 16;
	@%p20 bra 	$L__BB9_15;
	setp.ne.s64 	%p21, %rd506, 4;
	mov.u64 	%rd504, %rd32;
	mov.u64 	%rd505, %rd33;
	@%p21 bra 	$L__BB9_16;
	shr.u64 	%rd507, %rd507, 2;
	mov.u64 	%rd506, 4;
	mov.u64 	%rd504, %rd32;
	mov.u64 	%rd505, %rd33;
	bra.uni 	$L__BB9_16;
$L__BB9_15:
	shr.u64 	%rd507, %rd507, 4;
	mov.u64 	%rd506, 16;
	mov.u64 	%rd504, %rd32;
	mov.u64 	%rd505, %rd33;
$L__BB9_16:
	max.u64 	%rd48, %rd507, %rd503;
	or.b64  	%rd348, %rd499, 2;
	setp.ge.u64 	%p26, %rd348, %rd309;
	mov.u64 	%rd508, %rd314;
	mov.u64 	%rd509, %rd314;
	mov.u64 	%rd510, %rd314;
	mov.u64 	%rd511, %rd314;
	@%p26 bra 	$L__BB9_23;
	add.s64 	%rd352, %rd17, %rd496;
	ld.param.u64 	%rd49, [%rd352+32];
	setp.eq.s64 	%p27, %rd49, 0;
	mov.u64 	%rd508, 0;
	mov.u64 	%rd509, %rd508;
	mov.u64 	%rd510, %rd508;
	mov.u64 	%rd511, %rd508;
	@%p27 bra 	$L__BB9_23;
	ld.param.u64 	%rd50, [%rd352+40];
	setp.eq.s64 	%p28, %rd50, 0;
	mov.u64 	%rd508, 0;
	mov.u64 	%rd509, %rd508;
	mov.u64 	%rd510, %rd508;
	mov.u64 	%rd511, %rd508;
	@%p28 bra 	$L__BB9_23;
	add.s64 	%rd354, %rd8, %rd497;
	ld.param.u32 	%rd511, [%rd354+8];
	or.b64  	%rd357, %rd50, %rd49;
	or.b64  	%rd358, %rd357, %rd511;
	and.b64  	%rd359, %rd358, 15;
	setp.eq.s64 	%p29, %rd359, 0;
	and.b64  	%rd360, %rd358, 3;
	setp.eq.s64 	%p30, %rd360, 0;
	selp.b64 	%rd361, 4, 1, %p30;
	selp.b64 	%rd510, 16, %rd361, %p29;
	setp.eq.s64 	%p31, %rd510, 16;
	@%p31 bra 	$L__BB9_22;
	setp.ne.s64 	%p32, %rd510, 4;
	mov.u64 	%rd508, %rd49;
	mov.u64 	%rd509, %rd50;
	@%p32 bra 	$L__BB9_23;
	shr.u64 	%rd511, %rd511, 2;
	mov.u64 	%rd510, 4;
	mov.u64 	%rd508, %rd49;
	mov.u64 	%rd509, %rd50;
	bra.uni 	$L__BB9_23;
$L__BB9_22:
	shr.u64 	%rd511, %rd511, 4;
	mov.u64 	%rd510, 16;
	mov.u64 	%rd508, %rd49;
	mov.u64 	%rd509, %rd50;
$L__BB9_23:
	setp.eq.s64 	%p13, %rd503, 0;
	setp.eq.s64 	%p14, %rd502, 16;
	setp.eq.s64 	%p22, %rd507, 0;
	setp.eq.s64 	%p23, %rd506, 16;
	max.u64 	%rd65, %rd511, %rd48;
	setp.eq.s64 	%p33, %rd511, 0;
	setp.eq.s64 	%p34, %rd510, 16;
	or.b64  	%rd366, %rd499, 3;
	setp.ge.u64 	%p37, %rd366, %rd309;
	mov.u64 	%rd512, %rd314;
	mov.u64 	%rd513, %rd314;
	mov.u64 	%rd514, %rd314;
	mov.u64 	%rd515, %rd314;
	@%p37 bra 	$L__BB9_30;
	add.s64 	%rd370, %rd17, %rd496;
	ld.param.u64 	%rd66, [%rd370+48];
	setp.eq.s64 	%p38, %rd66, 0;
	mov.u64 	%rd512, 0;
	mov.u64 	%rd513, %rd512;
	mov.u64 	%rd514, %rd512;
	mov.u64 	%rd515, %rd512;
	@%p38 bra 	$L__BB9_30;
	ld.param.u64 	%rd67, [%rd370+56];
	setp.eq.s64 	%p39, %rd67, 0;
	mov.u64 	%rd512, 0;
	mov.u64 	%rd513, %rd512;
	mov.u64 	%rd514, %rd512;
	mov.u64 	%rd515, %rd512;
	@%p39 bra 	$L__BB9_30;
	add.s64 	%rd372, %rd8, %rd497;
	ld.param.u32 	%rd515, [%rd372+12];
	or.b64  	%rd375, %rd67, %rd66;
	or.b64  	%rd376, %rd375, %rd515;
	and.b64  	%rd377, %rd376, 15;
	setp.eq.s64 	%p40, %rd377, 0;
	and.b64  	%rd378, %rd376, 3;
	setp.eq.s64 	%p41, %rd378, 0;
	selp.b64 	%rd379, 4, 1, %p41;
	selp.b64 	%rd514, 16, %rd379, %p40;
	setp.eq.s64 	%p42, %rd514, 16;
	@%p42 bra 	$L__BB9_29;
	setp.ne.s64 	%p43, %rd514, 4;
	mov.u64 	%rd512, %rd66;
	mov.u64 	%rd513, %rd67;
	@%p43 bra 	$L__BB9_30;
	shr.u64 	%rd515, %rd515, 2;
	mov.u64 	%rd514, 4;
	mov.u64 	%rd512, %rd66;
	mov.u64 	%rd513, %rd67;
	bra.uni 	$L__BB9_30;
$L__BB9_29:
	shr.u64 	%rd515, %rd515, 4;
	mov.u64 	%rd514, 16;
	mov.u64 	%rd512, %rd66;
	mov.u64 	%rd513, %rd67;
$L__BB9_30:
	or.pred  	%p1, %p14, %p13;
	or.pred  	%p24, %p23, %p22;
	and.pred  	%p2, %p1, %p24;
	or.pred  	%p35, %p34, %p33;
	and.pred  	%p3, %p2, %p35;
	max.u64 	%rd82, %rd515, %rd65;
	setp.eq.s64 	%p44, %rd515, 0;
	setp.eq.s64 	%p45, %rd514, 16;
	or.pred  	%p46, %p45, %p44;
	and.pred  	%p48, %p3, %p46;
	setp.le.u64 	%p116, %rd82, %rd594;
	@!%p48 bra 	$L__BB9_50;
	bra.uni 	$L__BB9_31;
$L__BB9_31:
	@%p116 bra 	$L__BB9_104;
	mov.u64 	%rd524, %rd594;
	bra.uni 	$L__BB9_33;
$L__BB9_49:
	add.s64 	%rd524, %rd524, %rd6;
	add.s64 	%rd501, %rd501, %rd11;
	add.s64 	%rd505, %rd505, %rd11;
	add.s64 	%rd509, %rd509, %rd11;
	add.s64 	%rd513, %rd513, %rd11;
	add.s64 	%rd500, %rd500, %rd11;
	add.s64 	%rd504, %rd504, %rd11;
	add.s64 	%rd508, %rd508, %rd11;
	add.s64 	%rd512, %rd512, %rd11;
	setp.lt.u64 	%p84, %rd524, %rd82;
	@%p84 bra 	$L__BB9_33;
	bra.uni 	$L__BB9_104;
$L__BB9_33:
	setp.ge.u64 	%p76, %rd524, %rd503;
	mov.u64 	%rd531, 0;
	mov.u64 	%rd525, %rd531;
	mov.u64 	%rd526, %rd531;
	@%p76 bra 	$L__BB9_35;
	add.s64 	%rd92, %rd501, %rd10;
	ld.v2.u64 	{%rd525, %rd526}, [%rd92];
$L__BB9_35:
	setp.ge.u64 	%p77, %rd524, %rd507;
	mov.u64 	%rd527, %rd531;
	mov.u64 	%rd528, %rd531;
	@%p77 bra 	$L__BB9_37;
	add.s64 	%rd97, %rd505, %rd10;
	ld.v2.u64 	{%rd527, %rd528}, [%rd97];
$L__BB9_37:
	setp.ge.u64 	%p78, %rd524, %rd511;
	mov.u64 	%rd529, %rd531;
	mov.u64 	%rd530, %rd531;
	@%p78 bra 	$L__BB9_39;
	add.s64 	%rd102, %rd509, %rd10;
	ld.v2.u64 	{%rd529, %rd530}, [%rd102];
$L__BB9_39:
	setp.ge.u64 	%p79, %rd524, %rd515;
	mov.u64 	%rd532, %rd531;
	@%p79 bra 	$L__BB9_41;
	add.s64 	%rd107, %rd513, %rd10;
	ld.v2.u64 	{%rd531, %rd532}, [%rd107];
$L__BB9_41:
	@%p76 bra 	$L__BB9_43;
	add.s64 	%rd112, %rd500, %rd10;
	st.v2.u64 	[%rd112], {%rd525, %rd526};
$L__BB9_43:
	@%p77 bra 	$L__BB9_45;
	add.s64 	%rd113, %rd504, %rd10;
	st.v2.u64 	[%rd113], {%rd527, %rd528};
$L__BB9_45:
	@%p78 bra 	$L__BB9_47;
	add.s64 	%rd114, %rd508, %rd10;
	st.v2.u64 	[%rd114], {%rd529, %rd530};
$L__BB9_47:
	@%p79 bra 	$L__BB9_49;
	add.s64 	%rd115, %rd512, %rd10;
	st.v2.u64 	[%rd115], {%rd531, %rd532};
	bra.uni 	$L__BB9_49;
$L__BB9_50:
	@%p116 bra 	$L__BB9_104;
	setp.eq.s64 	%p51, %rd502, 4;
	setp.ne.s64 	%p52, %rd502, 16;
	mov.u64 	%rd533, %rd512;
	mov.u64 	%rd534, %rd512;
	mov.u64 	%rd535, %rd508;
	mov.u64 	%rd536, %rd508;
	mov.u64 	%rd537, %rd504;
	mov.u64 	%rd538, %rd504;
	mov.u64 	%rd539, %rd500;
	mov.u64 	%rd540, %rd500;
	mov.u64 	%rd541, %rd513;
	mov.u64 	%rd542, %rd513;
	mov.u64 	%rd543, %rd509;
	mov.u64 	%rd544, %rd509;
	mov.u64 	%rd545, %rd505;
	mov.u64 	%rd546, %rd505;
	mov.u64 	%rd547, %rd501;
	mov.u64 	%rd548, %rd501;
	mov.u64 	%rd549, %rd594;
	bra.uni 	$L__BB9_52;
$L__BB9_101:
	add.s64 	%rd412, %rd534, %rd10;
	st.v2.u64 	[%rd412], {%rd560, %rd561};
$L__BB9_103:
	add.s64 	%rd549, %rd549, %rd6;
	add.s64 	%rd548, %rd548, %rd11;
	add.s64 	%rd547, %rd547, %rd13;
	add.s64 	%rd546, %rd546, %rd11;
	add.s64 	%rd545, %rd545, %rd13;
	add.s64 	%rd544, %rd544, %rd11;
	add.s64 	%rd543, %rd543, %rd13;
	add.s64 	%rd542, %rd542, %rd11;
	add.s64 	%rd541, %rd541, %rd13;
	add.s64 	%rd540, %rd540, %rd11;
	add.s64 	%rd539, %rd539, %rd13;
	add.s64 	%rd538, %rd538, %rd11;
	add.s64 	%rd537, %rd537, %rd13;
	add.s64 	%rd536, %rd536, %rd11;
	add.s64 	%rd535, %rd535, %rd13;
	add.s64 	%rd534, %rd534, %rd11;
	add.s64 	%rd533, %rd533, %rd13;
	setp.lt.u64 	%p74, %rd549, %rd82;
	@%p74 bra 	$L__BB9_52;
	bra.uni 	$L__BB9_104;
$L__BB9_52:
	setp.ge.u64 	%p50, %rd549, %rd503;
	mov.u64 	%rd561, 0;
	mov.u64 	%rd551, %rd561;
	mov.u64 	%rd552, %rd561;
	@%p50 bra 	$L__BB9_59;
	@%p51 bra 	$L__BB9_56;
	@%p52 bra 	$L__BB9_57;
	add.s64 	%rd385, %rd548, %rd10;
	ld.v2.u64 	{%rd551, %rd552}, [%rd385];
	bra.uni 	$L__BB9_59;
$L__BB9_56:
	add.s64 	%rd384, %rd547, %rd12;
	ld.u32 	%rd551, [%rd384];
	bra.uni 	$L__BB9_58;
$L__BB9_57:
	add.s64 	%rd386, %rd501, %rd549;
	ld.u8 	%rd551, [%rd386];
$L__BB9_58:
	mov.u64 	%rd552, %rd561;
$L__BB9_59:
	setp.ge.u64 	%p53, %rd549, %rd507;
	mov.u64 	%rd554, %rd561;
	mov.u64 	%rd555, %rd561;
	@%p53 bra 	$L__BB9_66;
	@%p23 bra 	$L__BB9_63;
	setp.ne.s64 	%p55, %rd506, 4;
	@%p55 bra 	$L__BB9_64;
	add.s64 	%rd389, %rd545, %rd12;
	ld.u32 	%rd554, [%rd389];
	bra.uni 	$L__BB9_65;
$L__BB9_63:
	add.s64 	%rd390, %rd546, %rd10;
	ld.v2.u64 	{%rd554, %rd555}, [%rd390];
	bra.uni 	$L__BB9_66;
$L__BB9_64:
	add.s64 	%rd391, %rd505, %rd549;
	ld.u8 	%rd554, [%rd391];
$L__BB9_65:
	mov.u64 	%rd555, %rd561;
$L__BB9_66:
	setp.ge.u64 	%p56, %rd549, %rd511;
	mov.u64 	%rd557, %rd561;
	mov.u64 	%rd558, %rd561;
	@%p56 bra 	$L__BB9_73;
	@%p34 bra 	$L__BB9_70;
	setp.ne.s64 	%p58, %rd510, 4;
	@%p58 bra 	$L__BB9_71;
	add.s64 	%rd394, %rd543, %rd12;
	ld.u32 	%rd557, [%rd394];
	bra.uni 	$L__BB9_72;
$L__BB9_70:
	add.s64 	%rd395, %rd544, %rd10;
	ld.v2.u64 	{%rd557, %rd558}, [%rd395];
	bra.uni 	$L__BB9_73;
$L__BB9_71:
	add.s64 	%rd396, %rd509, %rd549;
	ld.u8 	%rd557, [%rd396];
$L__BB9_72:
	mov.u64 	%rd558, %rd561;
$L__BB9_73:
	setp.ge.u64 	%p59, %rd549, %rd515;
	mov.u64 	%rd560, %rd561;
	@%p59 bra 	$L__BB9_79;
	@%p45 bra 	$L__BB9_77;
	setp.ne.s64 	%p61, %rd514, 4;
	@%p61 bra 	$L__BB9_78;
	add.s64 	%rd399, %rd541, %rd12;
	ld.u32 	%rd560, [%rd399];
	bra.uni 	$L__BB9_79;
$L__BB9_77:
	add.s64 	%rd400, %rd542, %rd10;
	ld.v2.u64 	{%rd560, %rd561}, [%rd400];
	bra.uni 	$L__BB9_79;
$L__BB9_78:
	add.s64 	%rd401, %rd513, %rd549;
	ld.u8 	%rd560, [%rd401];
$L__BB9_79:
	@%p50 bra 	$L__BB9_85;
	@%p51 bra 	$L__BB9_83;
	@%p52 bra 	$L__BB9_84;
	add.s64 	%rd403, %rd540, %rd10;
	st.v2.u64 	[%rd403], {%rd551, %rd552};
	bra.uni 	$L__BB9_85;
$L__BB9_83:
	add.s64 	%rd402, %rd539, %rd12;
	st.u32 	[%rd402], %rd551;
	bra.uni 	$L__BB9_85;
$L__BB9_84:
	add.s64 	%rd404, %rd500, %rd549;
	st.u8 	[%rd404], %rd551;
$L__BB9_85:
	@%p53 bra 	$L__BB9_91;
	@%p23 bra 	$L__BB9_89;
	setp.ne.s64 	%p67, %rd506, 4;
	@%p67 bra 	$L__BB9_90;
	add.s64 	%rd405, %rd537, %rd12;
	st.u32 	[%rd405], %rd554;
	bra.uni 	$L__BB9_91;
$L__BB9_89:
	add.s64 	%rd406, %rd538, %rd10;
	st.v2.u64 	[%rd406], {%rd554, %rd555};
	bra.uni 	$L__BB9_91;
$L__BB9_90:
	add.s64 	%rd407, %rd504, %rd549;
	st.u8 	[%rd407], %rd554;
$L__BB9_91:
	@%p56 bra 	$L__BB9_97;
	@%p34 bra 	$L__BB9_95;
	setp.ne.s64 	%p70, %rd510, 4;
	@%p70 bra 	$L__BB9_96;
	add.s64 	%rd408, %rd535, %rd12;
	st.u32 	[%rd408], %rd557;
	bra.uni 	$L__BB9_97;
$L__BB9_95:
	add.s64 	%rd409, %rd536, %rd10;
	st.v2.u64 	[%rd409], {%rd557, %rd558};
	bra.uni 	$L__BB9_97;
$L__BB9_96:
	add.s64 	%rd410, %rd508, %rd549;
	st.u8 	[%rd410], %rd557;
$L__BB9_97:
	@%p59 bra 	$L__BB9_103;
	@%p45 bra 	$L__BB9_101;
	setp.ne.s64 	%p73, %rd514, 4;
	@%p73 bra 	$L__BB9_102;
	add.s64 	%rd411, %rd533, %rd12;
	st.u32 	[%rd411], %rd560;
	bra.uni 	$L__BB9_103;
$L__BB9_102:
	add.s64 	%rd413, %rd512, %rd549;
	st.u8 	[%rd413], %rd560;
	bra.uni 	$L__BB9_103;
$L__BB9_105:
	ld.param.u64 	%rd308, [keel_copy_in_rows_param_2];
	setp.ge.u64 	%p86, %rd3, %rd308;
	@%p86 bra 	$L__BB9_139;
	ld.param.u64 	%rd307, [keel_copy_in_rows_param_1];
	mul.lo.s64 	%rd196, %rd6, 3;
	add.s64 	%rd197, %rd196, %rd594;
	shl.b64 	%rd198, %rd594, 2;
	mul.lo.s64 	%rd199, %rd6, 12;
	shl.b64 	%rd200, %rd6, 4;
	shl.b64 	%rd201, %rd6, 3;
	shl.b64 	%rd202, %rd6, 2;
	shl.b64 	%rd203, %rd594, 4;
	mul.lo.s64 	%rd204, %rd6, 48;
	shl.b64 	%rd205, %rd6, 6;
	shl.b64 	%rd206, %rd6, 5;
	shl.b64 	%rd207, %rd6, 1;
	mov.b32 	%r7, 7;
	mov.u64 	%rd562, %rd3;
	bra.uni 	$L__BB9_107;
$L__BB9_138:
	add.s64 	%rd562, %rd562, %rd4;
	setp.lt.u64 	%p111, %rd562, %rd308;
	@%p111 bra 	$L__BB9_107;
	bra.uni 	$L__BB9_139;
$L__BB9_107:
	setp.lt.u64 	%p87, %rd562, %rd309;
	mul.lo.s64 	%rd422, %rd562, 24;
	add.s64 	%rd209, %rd307, %rd422;
	mov.u64 	%rd563, %rd562;
	@%p87 bra 	$L__BB9_109;
	ld.u64 %rd563, [%rd209];
$L__BB9_109:
	mov.u64 	%rd564, 0;
	@%p87 bra 	$L__BB9_111;
	add.s64 	%rd429, %rd209, 8;
	ld.u64 %rd564, [%rd429];
$L__BB9_111:
	setp.ge.u64 	%p89, %rd562, %rd309;
	@%p89 bra 	$L__BB9_113;
	shl.b64 	%rd434, %rd562, 2;
	add.s64 	%rd435, %rd2, %rd434;
	ld.param.u32 	%rd217, [%rd435+1536];
	bra.uni 	$L__BB9_114;
$L__BB9_113:
	add.s64 	%rd431, %rd209, 16;
	ld.u64 %rd217, [%rd431];
$L__BB9_114:
	shl.b64 	%rd436, %rd563, 4;
	add.s64 	%rd218, %rd2, %rd436;
	ld.param.u64 	%rd219, [%rd218];
	setp.eq.s64 	%p90, %rd219, 0;
	mov.u32 	%r13, %r7;
	@%p90 bra 	$L__BB9_136;
	add.s64 	%rd257, %rd219, %rd564;
	ld.param.u64 	%rd437, [%rd218+8];
	add.s64 	%rd256, %rd437, %rd564;
	setp.eq.s64 	%p91, %rd257, 0;
	setp.eq.s64 	%p92, %rd256, 0;
	or.pred  	%p4, %p91, %p92;
	@%p4 bra 	$L__BB9_135;
	bra.uni 	$L__BB9_116;
$L__BB9_135:
	selp.u32 	%r13, 1, 0, %p4;
$L__BB9_136:
	setp.eq.s32 	%p109, %r13, 7;
	@%p109 bra 	$L__BB9_138;
	setp.ne.s32 	%p110, %r13, 0;
	@%p110 bra 	$L__BB9_142;
	bra.uni 	$L__BB9_138;
$L__BB9_116:
	or.b64  	%rd439, %rd257, %rd217;
	or.b64  	%rd440, %rd439, %rd256;
	and.b64  	%rd441, %rd440, 15;
	setp.eq.s64 	%p93, %rd441, 0;
	and.b64  	%rd442, %rd440, 3;
	setp.eq.s64 	%p94, %rd442, 0;
	selp.b64 	%rd443, 4, 1, %p94;
	selp.b64 	%rd438, 16, %rd443, %p93;
	setp.eq.s64 	%p95, %rd438, 4;
	@%p95 bra 	$L__BB9_124;
	setp.ne.s64 	%p96, %rd438, 16;
	@%p96 bra 	$L__BB9_130;
	shr.u64 	%rd222, %rd217, 4;
	setp.ge.u64 	%p101, %rd197, %rd222;
	mov.u64 	%rd570, %rd594;
	@%p101 bra 	$L__BB9_121;
	add.s64 	%rd575, %rd257, %rd204;
	add.s64 	%rd574, %rd256, %rd204;
	add.s64 	%rd573, %rd257, %rd206;
	add.s64 	%rd572, %rd257, %rd200;
	add.s64 	%rd569, %rd256, %rd206;
	add.s64 	%rd568, %rd256, %rd200;
	mov.u64 	%rd567, %rd256;
	mov.u64 	%rd570, %rd594;
	mov.u64 	%rd571, %rd257;
$L__BB9_120:
	add.s64 	%rd455, %rd567, %rd203;
	ld.v2.u64 	{%rd456, %rd457}, [%rd455];
	add.s64 	%rd458, %rd568, %rd203;
	ld.v2.u64 	{%rd459, %rd460}, [%rd458];
	add.s64 	%rd461, %rd569, %rd203;
	ld.v2.u64 	{%rd462, %rd463}, [%rd461];
	add.s64 	%rd464, %rd574, %rd203;
	ld.v2.u64 	{%rd465, %rd466}, [%rd464];
	add.s64 	%rd467, %rd571, %rd203;
	st.v2.u64 	[%rd467], {%rd456, %rd457};
	add.s64 	%rd468, %rd572, %rd203;
	st.v2.u64 	[%rd468], {%rd459, %rd460};
	add.s64 	%rd469, %rd573, %rd203;
	st.v2.u64 	[%rd469], {%rd462, %rd463};
	add.s64 	%rd470, %rd575, %rd203;
	st.v2.u64 	[%rd470], {%rd465, %rd466};
	add.s64 	%rd575, %rd575, %rd205;
	add.s64 	%rd574, %rd574, %rd205;
	add.s64 	%rd573, %rd573, %rd205;
	add.s64 	%rd572, %rd572, %rd205;
	add.s64 	%rd571, %rd571, %rd205;
	add.s64 	%rd570, %rd570, %rd202;
	add.s64 	%rd471, %rd196, %rd570;
	add.s64 	%rd569, %rd569, %rd205;
	add.s64 	%rd568, %rd568, %rd205;
	add.s64 	%rd567, %rd567, %rd205;
	setp.lt.u64 	%p102, %rd471, %rd222;
	@%p102 bra 	$L__BB9_120;
$L__BB9_121:
	setp.ge.u64 	%p103, %rd570, %rd222;
	@%p103 bra 	$L__BB9_135;
	shl.b64 	%rd576, %rd570, 4;
$L__BB9_123:
	add.s64 	%rd472, %rd256, %rd576;
	ld.v2.u64 	{%rd473, %rd474}, [%rd472];
	add.s64 	%rd475, %rd257, %rd576;
	st.v2.u64 	[%rd475], {%rd473, %rd474};
	add.s64 	%rd570, %rd570, %rd6;
	add.s64 	%rd576, %rd576, %rd200;
	setp.lt.u64 	%p104, %rd570, %rd222;
	@%p104 bra 	$L__BB9_123;
	bra.uni 	$L__BB9_135;
$L__BB9_124:
	shr.u64 	%rd255, %rd217, 2;
	setp.ge.u64 	%p97, %rd197, %rd255;
	mov.u64 	%rd582, %rd594;
	@%p97 bra 	$L__BB9_127;
	add.s64 	%rd587, %rd257, %rd199;
	add.s64 	%rd586, %rd256, %rd199;
	add.s64 	%rd585, %rd257, %rd201;
	add.s64 	%rd584, %rd257, %rd202;
	add.s64 	%rd581, %rd256, %rd201;
	add.s64 	%rd580, %rd256, %rd202;
	mov.u64 	%rd579, %rd256;
	mov.u64 	%rd582, %rd594;
	mov.u64 	%rd583, %rd257;
$L__BB9_126:
	add.s64 	%rd444, %rd579, %rd198;
	ld.u32 	%r8, [%rd444];
	add.s64 	%rd445, %rd580, %rd198;
	ld.u32 	%r9, [%rd445];
	add.s64 	%rd446, %rd581, %rd198;
	ld.u32 	%r10, [%rd446];
	add.s64 	%rd447, %rd586, %rd198;
	ld.u32 	%r11, [%rd447];
	add.s64 	%rd448, %rd583, %rd198;
	st.u32 	[%rd448], %r8;
	add.s64 	%rd449, %rd584, %rd198;
	st.u32 	[%rd449], %r9;
	add.s64 	%rd450, %rd585, %rd198;
	st.u32 	[%rd450], %r10;
	add.s64 	%rd451, %rd587, %rd198;
	st.u32 	[%rd451], %r11;
	add.s64 	%rd587, %rd587, %rd200;
	add.s64 	%rd586, %rd586, %rd200;
	add.s64 	%rd585, %rd585, %rd200;
	add.s64 	%rd584, %rd584, %rd200;
	add.s64 	%rd583, %rd583, %rd200;
	add.s64 	%rd582, %rd582, %rd202;
	add.s64 	%rd452, %rd196, %rd582;
	add.s64 	%rd581, %rd581, %rd200;
	add.s64 	%rd580, %rd580, %rd200;
	add.s64 	%rd579, %rd579, %rd200;
	setp.lt.u64 	%p98, %rd452, %rd255;
	@%p98 bra 	$L__BB9_126;
$L__BB9_127:
	setp.ge.u64 	%p99, %rd582, %rd255;
	@%p99 bra 	$L__BB9_135;
	shl.b64 	%rd588, %rd582, 2;
$L__BB9_129:
	add.s64 	%rd453, %rd256, %rd588;
	ld.u32 	%r12, [%rd453];
	add.s64 	%rd454, %rd257, %rd588;
	st.u32 	[%rd454], %r12;
	add.s64 	%rd582, %rd582, %rd6;
	add.s64 	%rd588, %rd588, %rd202;
	setp.lt.u64 	%p100, %rd582, %rd255;
	@%p100 bra 	$L__BB9_129;
	bra.uni 	$L__BB9_135;
$L__BB9_130:
	setp.ge.u64 	%p105, %rd197, %rd217;
	mov.u64 	%rd591, %rd594;
	@%p105 bra 	$L__BB9_133;
	add.s64 	%rd288, %rd257, %rd196;
	add.s64 	%rd289, %rd256, %rd196;
	add.s64 	%rd290, %rd257, %rd207;
	add.s64 	%rd291, %rd257, %rd6;
	add.s64 	%rd292, %rd256, %rd207;
	add.s64 	%rd293, %rd256, %rd6;
	mov.u64 	%rd591, %rd594;
$L__BB9_132:
	add.s64 	%rd476, %rd256, %rd591;
	ld.u8 	%rs1, [%rd476];
	add.s64 	%rd477, %rd293, %rd591;
	ld.u8 	%rs2, [%rd477];
	add.s64 	%rd478, %rd292, %rd591;
	ld.u8 	%rs3, [%rd478];
	add.s64 	%rd479, %rd289, %rd591;
	ld.u8 	%rs4, [%rd479];
	add.s64 	%rd480, %rd257, %rd591;
	st.u8 	[%rd480], %rs1;
	add.s64 	%rd481, %rd291, %rd591;
	st.u8 	[%rd481], %rs2;
	add.s64 	%rd482, %rd290, %rd591;
	st.u8 	[%rd482], %rs3;
	add.s64 	%rd483, %rd288, %rd591;
	st.u8 	[%rd483], %rs4;
	add.s64 	%rd591, %rd591, %rd202;
	add.s64 	%rd484, %rd196, %rd591;
	setp.lt.u64 	%p106, %rd484, %rd217;
	@%p106 bra 	$L__BB9_132;
$L__BB9_133:
	setp.ge.u64 	%p107, %rd591, %rd217;
	@%p107 bra 	$L__BB9_135;
$L__BB9_134:
	add.s64 	%rd485, %rd256, %rd591;
	ld.u8 	%rs5, [%rd485];
	add.s64 	%rd486, %rd257, %rd591;
	st.u8 	[%rd486], %rs5;
	add.s64 	%rd591, %rd591, %rd6;
	setp.lt.u64 	%p108, %rd591, %rd217;
	@%p108 bra 	$L__BB9_134;
	bra.uni 	$L__BB9_135;
$L__BB9_139:
	ld.param.u64 	%rd310, [keel_copy_in_rows_param_6];
	add.s64 	%rd487, %rd3, 1;
	setp.eq.s64 	%p112, %rd487, %rd4;
	setp.lt.u64 	%p113, %rd594, %rd310;
	and.pred  	%p114, %p112, %p113;
	@!%p114 bra 	$L__BB9_142;
	bra.uni 	$L__BB9_140;
$L__BB9_140:
	ld.param.u64 	%rd312, [keel_copy_in_rows_param_5];
	cvta.to.global.u64 	%rd1, %rd312;
	shl.b64 	%rd593, %rd594, 4;
	shl.b64 	%rd301, %rd6, 4;
	shl.b64 	%rd489, %rd309, 4;
	add.s64 	%rd302, %rd2, %rd489;
$L__BB9_141:
	add.s64 	%rd490, %rd302, %rd593;
	ld.param.u64 	%rd491, [%rd490];
	add.s64 	%rd492, %rd1, %rd593;
	st.global.u64 	[%rd492], %rd491;
	ld.param.u64 	%rd493, [%rd490+8];
	st.global.u64 	[%rd492+8], %rd493;
	add.s64 	%rd594, %rd594, %rd6;
	add.s64 	%rd593, %rd593, %rd301;
	setp.lt.u64 	%p115, %rd594, %rd310;
	@%p115 bra 	$L__BB9_141;
$L__BB9_142:
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
	.reg .pred 	%p<28>;
	.reg .b16 	%rs<6>;
	.reg .b32 	%r<19>;
	.reg .b64 	%rd<219>;
	ld.param.u64 	%rd112, [keel_copy_out_param_2];
	mov.u32 	%r3, %ctaid.x;
	cvt.u64.u32 	%rd189, %r3;
	mov.u32 	%r4, %nctaid.x;
	cvt.u64.u32 	%rd4, %r4;
	mov.u32 	%r5, %tid.x;
	cvt.u64.u32 	%rd5, %r5;
	setp.ge.u64 	%p2, %rd189, %rd112;
	@%p2 bra 	$L__BB10_28;
	ld.param.u64 	%rd113, [keel_copy_out_param_3];
	ld.param.u64 	%rd111, [keel_copy_out_param_0];
	ld.param.u64 	%rd116, [keel_copy_out_param_1];
	cvta.to.global.u64 	%rd1, %rd116;
	cvta.to.global.u64 	%rd2, %rd111;
	mov.u32 	%r6, %ntid.x;
	cvt.u64.u32 	%rd6, %r6;
	mul.lo.s64 	%rd7, %rd6, 3;
	add.s64 	%rd8, %rd7, %rd5;
	shl.b64 	%rd9, %rd5, 2;
	mul.lo.s64 	%rd10, %rd6, 12;
	shl.b64 	%rd11, %rd6, 4;
	shl.b64 	%rd12, %rd6, 3;
	shl.b64 	%rd13, %rd6, 2;
	shl.b64 	%rd14, %rd5, 4;
	mul.lo.s64 	%rd15, %rd6, 48;
	shl.b64 	%rd16, %rd6, 6;
	shl.b64 	%rd17, %rd6, 5;
	shl.b64 	%rd18, %rd6, 1;
	mov.b32 	%r7, 4;
$L__BB10_2:
	setp.lt.u64 	%p3, %rd189, %rd113;
	mul.lo.s64 	%rd117, %rd189, 24;
	mov.u64 	%rd190, %rd189;
	@%p3 bra 	$L__BB10_4;
	add.s64 	%rd119, %rd111, %rd117;
	ld.u64 %rd190, [%rd119];
$L__BB10_4:
	shl.b64 	%rd128, %rd190, 4;
	add.s64 	%rd129, %rd1, %rd128;
	cvta.global.u64 	%rd121, %rd129;
	ld.u64 %rd120, [%rd121];
	add.s64 	%rd123, %rd121, 8;
	ld.u64 %rd122, [%rd123];
	add.s64 	%rd131, %rd2, %rd117;
	cvta.global.u64 	%rd132, %rd131;
	add.s64 	%rd125, %rd132, 8;
	ld.u64 %rd124, [%rd125];
	add.s64 	%rd127, %rd132, 16;
	ld.u64 %rd126, [%rd127];
	setp.eq.s64 	%p4, %rd120, 0;
	mov.u32 	%r18, %r7;
	@%p4 bra 	$L__BB10_26;
	add.s64 	%rd64, %rd124, %rd120;
	add.s64 	%rd63, %rd124, %rd122;
	setp.eq.s64 	%p5, %rd64, 0;
	setp.eq.s64 	%p6, %rd63, 0;
	or.pred  	%p1, %p5, %p6;
	@%p1 bra 	$L__BB10_25;
	bra.uni 	$L__BB10_6;
$L__BB10_25:
	selp.u32 	%r18, 1, 0, %p1;
$L__BB10_26:
	or.b32  	%r13, %r18, 4;
	setp.eq.s32 	%p23, %r13, 4;
	@%p23 bra 	$L__BB10_27;
	bra.uni 	$L__BB10_34;
$L__BB10_27:
	add.s64 	%rd189, %rd189, %rd4;
	setp.lt.u64 	%p24, %rd189, %rd112;
	@%p24 bra 	$L__BB10_2;
	bra.uni 	$L__BB10_28;
$L__BB10_6:
	or.b64  	%rd134, %rd63, %rd64;
	or.b64  	%rd135, %rd134, %rd126;
	and.b64  	%rd136, %rd135, 15;
	setp.eq.s64 	%p7, %rd136, 0;
	and.b64  	%rd137, %rd135, 3;
	setp.eq.s64 	%p8, %rd137, 0;
	selp.b64 	%rd138, 4, 1, %p8;
	selp.b64 	%rd133, 16, %rd138, %p7;
	setp.eq.s64 	%p9, %rd133, 4;
	@%p9 bra 	$L__BB10_14;
	setp.ne.s64 	%p10, %rd133, 16;
	@%p10 bra 	$L__BB10_20;
	shr.u64 	%rd29, %rd126, 4;
	setp.ge.u64 	%p15, %rd8, %rd29;
	mov.u64 	%rd195, %rd5;
	@%p15 bra 	$L__BB10_11;
	add.s64 	%rd200, %rd64, %rd15;
	add.s64 	%rd199, %rd63, %rd15;
	add.s64 	%rd198, %rd64, %rd17;
	add.s64 	%rd197, %rd64, %rd11;
	add.s64 	%rd194, %rd63, %rd17;
	add.s64 	%rd193, %rd63, %rd11;
	mov.u64 	%rd192, %rd63;
	mov.u64 	%rd195, %rd5;
	mov.u64 	%rd196, %rd64;
$L__BB10_10:
	add.s64 	%rd150, %rd192, %rd14;
	ld.v2.u64 	{%rd151, %rd152}, [%rd150];
	add.s64 	%rd153, %rd193, %rd14;
	ld.v2.u64 	{%rd154, %rd155}, [%rd153];
	add.s64 	%rd156, %rd194, %rd14;
	ld.v2.u64 	{%rd157, %rd158}, [%rd156];
	add.s64 	%rd159, %rd199, %rd14;
	ld.v2.u64 	{%rd160, %rd161}, [%rd159];
	add.s64 	%rd162, %rd196, %rd14;
	st.v2.u64 	[%rd162], {%rd151, %rd152};
	add.s64 	%rd163, %rd197, %rd14;
	st.v2.u64 	[%rd163], {%rd154, %rd155};
	add.s64 	%rd164, %rd198, %rd14;
	st.v2.u64 	[%rd164], {%rd157, %rd158};
	add.s64 	%rd165, %rd200, %rd14;
	st.v2.u64 	[%rd165], {%rd160, %rd161};
	add.s64 	%rd200, %rd200, %rd16;
	add.s64 	%rd199, %rd199, %rd16;
	add.s64 	%rd198, %rd198, %rd16;
	add.s64 	%rd197, %rd197, %rd16;
	add.s64 	%rd196, %rd196, %rd16;
	add.s64 	%rd195, %rd195, %rd13;
	add.s64 	%rd166, %rd7, %rd195;
	add.s64 	%rd194, %rd194, %rd16;
	add.s64 	%rd193, %rd193, %rd16;
	add.s64 	%rd192, %rd192, %rd16;
	setp.lt.u64 	%p16, %rd166, %rd29;
	@%p16 bra 	$L__BB10_10;
$L__BB10_11:
	setp.ge.u64 	%p17, %rd195, %rd29;
	@%p17 bra 	$L__BB10_25;
	shl.b64 	%rd201, %rd195, 4;
$L__BB10_13:
	add.s64 	%rd167, %rd63, %rd201;
	ld.v2.u64 	{%rd168, %rd169}, [%rd167];
	add.s64 	%rd170, %rd64, %rd201;
	st.v2.u64 	[%rd170], {%rd168, %rd169};
	add.s64 	%rd195, %rd195, %rd6;
	add.s64 	%rd201, %rd201, %rd11;
	setp.lt.u64 	%p18, %rd195, %rd29;
	@%p18 bra 	$L__BB10_13;
	bra.uni 	$L__BB10_25;
$L__BB10_14:
	shr.u64 	%rd62, %rd126, 2;
	setp.ge.u64 	%p11, %rd8, %rd62;
	mov.u64 	%rd207, %rd5;
	@%p11 bra 	$L__BB10_17;
	add.s64 	%rd212, %rd64, %rd10;
	add.s64 	%rd211, %rd63, %rd10;
	add.s64 	%rd210, %rd64, %rd12;
	add.s64 	%rd209, %rd64, %rd13;
	add.s64 	%rd206, %rd63, %rd12;
	add.s64 	%rd205, %rd63, %rd13;
	mov.u64 	%rd204, %rd63;
	mov.u64 	%rd207, %rd5;
	mov.u64 	%rd208, %rd64;
$L__BB10_16:
	add.s64 	%rd139, %rd204, %rd9;
	ld.u32 	%r8, [%rd139];
	add.s64 	%rd140, %rd205, %rd9;
	ld.u32 	%r9, [%rd140];
	add.s64 	%rd141, %rd206, %rd9;
	ld.u32 	%r10, [%rd141];
	add.s64 	%rd142, %rd211, %rd9;
	ld.u32 	%r11, [%rd142];
	add.s64 	%rd143, %rd208, %rd9;
	st.u32 	[%rd143], %r8;
	add.s64 	%rd144, %rd209, %rd9;
	st.u32 	[%rd144], %r9;
	add.s64 	%rd145, %rd210, %rd9;
	st.u32 	[%rd145], %r10;
	add.s64 	%rd146, %rd212, %rd9;
	st.u32 	[%rd146], %r11;
	add.s64 	%rd212, %rd212, %rd11;
	add.s64 	%rd211, %rd211, %rd11;
	add.s64 	%rd210, %rd210, %rd11;
	add.s64 	%rd209, %rd209, %rd11;
	add.s64 	%rd208, %rd208, %rd11;
	add.s64 	%rd207, %rd207, %rd13;
	add.s64 	%rd147, %rd7, %rd207;
	add.s64 	%rd206, %rd206, %rd11;
	add.s64 	%rd205, %rd205, %rd11;
	add.s64 	%rd204, %rd204, %rd11;
	setp.lt.u64 	%p12, %rd147, %rd62;
	@%p12 bra 	$L__BB10_16;
$L__BB10_17:
	setp.ge.u64 	%p13, %rd207, %rd62;
	@%p13 bra 	$L__BB10_25;
	shl.b64 	%rd213, %rd207, 2;
$L__BB10_19:
	add.s64 	%rd148, %rd63, %rd213;
	ld.u32 	%r12, [%rd148];
	add.s64 	%rd149, %rd64, %rd213;
	st.u32 	[%rd149], %r12;
	add.s64 	%rd207, %rd207, %rd6;
	add.s64 	%rd213, %rd213, %rd13;
	setp.lt.u64 	%p14, %rd207, %rd62;
	@%p14 bra 	$L__BB10_19;
	bra.uni 	$L__BB10_25;
$L__BB10_20:
	setp.ge.u64 	%p19, %rd8, %rd126;
	mov.u64 	%rd216, %rd5;
	@%p19 bra 	$L__BB10_23;
	add.s64 	%rd95, %rd64, %rd7;
	add.s64 	%rd96, %rd63, %rd7;
	add.s64 	%rd97, %rd64, %rd18;
	add.s64 	%rd98, %rd64, %rd6;
	add.s64 	%rd99, %rd63, %rd18;
	add.s64 	%rd100, %rd63, %rd6;
	mov.u64 	%rd216, %rd5;
$L__BB10_22:
	add.s64 	%rd171, %rd63, %rd216;
	ld.u8 	%rs1, [%rd171];
	add.s64 	%rd172, %rd100, %rd216;
	ld.u8 	%rs2, [%rd172];
	add.s64 	%rd173, %rd99, %rd216;
	ld.u8 	%rs3, [%rd173];
	add.s64 	%rd174, %rd96, %rd216;
	ld.u8 	%rs4, [%rd174];
	add.s64 	%rd175, %rd64, %rd216;
	st.u8 	[%rd175], %rs1;
	add.s64 	%rd176, %rd98, %rd216;
	st.u8 	[%rd176], %rs2;
	add.s64 	%rd177, %rd97, %rd216;
	st.u8 	[%rd177], %rs3;
	add.s64 	%rd178, %rd95, %rd216;
	st.u8 	[%rd178], %rs4;
	add.s64 	%rd216, %rd216, %rd13;
	add.s64 	%rd179, %rd7, %rd216;
	setp.lt.u64 	%p20, %rd179, %rd126;
	@%p20 bra 	$L__BB10_22;
$L__BB10_23:
	setp.ge.u64 	%p21, %rd216, %rd126;
	@%p21 bra 	$L__BB10_25;
$L__BB10_24:
	add.s64 	%rd180, %rd63, %rd216;
	ld.u8 	%rs5, [%rd180];
	add.s64 	%rd181, %rd64, %rd216;
	st.u8 	[%rd181], %rs5;
	add.s64 	%rd216, %rd216, %rd6;
	setp.lt.u64 	%p22, %rd216, %rd126;
	@%p22 bra 	$L__BB10_24;
	bra.uni 	$L__BB10_25;
$L__BB10_28:
	cvt.u32.u64 	%r14, %rd5;
	bar.sync 	0;
	setp.ne.s32 	%p25, %r14, 0;
	@%p25 bra 	$L__BB10_34;
	ld.param.u64 	%rd114, [keel_copy_out_param_4];
	atom.acq_rel.gpu.add.u64 %rd182, [%rd114], 1;
	add.s64 	%rd107, %rd182, 1;
	and.b64  	%rd184, %rd107, -4294967296;
	setp.ne.s64 	%p26, %rd184, 0;
	@%p26 bra 	$L__BB10_31;
	bra.uni 	$L__BB10_30;
$L__BB10_31:
	div.u64 	%rd218, %rd107, %rd4;
	bra.uni 	$L__BB10_32;
$L__BB10_30:
	cvt.u32.u64 	%r15, %rd4;
	cvt.u32.u64 	%r16, %rd107;
	div.u32 	%r17, %r16, %r15;
	cvt.u64.u32 	%rd218, %r17;
$L__BB10_32:
	mul.lo.s64 	%rd185, %rd218, %rd4;
	sub.s64 	%rd186, %rd107, %rd185;
	setp.ne.s64 	%p27, %rd186, 0;
	@%p27 bra 	$L__BB10_34;
	ld.param.u64 	%rd187, [keel_copy_out_param_5];
	st.release.sys.u64 [%rd187], %rd218;
$L__BB10_34:
	ret;
}
.visible .entry keel_mark(
	.param .u64 keel_mark_param_0,
	.param .u64 keel_mark_param_1,
	.param .u64 keel_mark_param_2
)
{
	.reg .pred 	%p<3>;
	.reg .b32 	%r<7>;
	.reg .b64 	%rd<18>;
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r2, %tid.x;
	cvt.u64.u32 	%rd9, %r2;
	mov.u32 	%r3, %ntid.x;
	mul.wide.u32 	%rd10, %r1, %r3;
	or.b64  	%rd11, %rd10, %rd9;
	setp.ne.s64 	%p1, %rd11, 0;
	@%p1 bra 	$L__BB11_5;
	ld.param.u64 	%rd7, [keel_mark_param_2];
	ld.param.u64 	%rd15, [keel_mark_param_1];
	ld.param.u64 	%rd8, [keel_mark_param_0];
	cvta.to.global.u64 	%rd1, %rd8;
	ld.global.u64 	%rd12, [%rd1];
	add.s64 	%rd2, %rd12, %rd7;
	st.global.u64 	[%rd1], %rd2;
	or.b64  	%rd13, %rd2, %rd7;
	and.b64  	%rd14, %rd13, -4294967296;
	setp.ne.s64 	%p2, %rd14, 0;
	@%p2 bra 	$L__BB11_3;
	bra.uni 	$L__BB11_2;
$L__BB11_3:
	div.u64 	%rd17, %rd2, %rd7;
	bra.uni 	$L__BB11_4;
$L__BB11_2:
	cvt.u32.u64 	%r4, %rd7;
	cvt.u32.u64 	%r5, %rd2;
	div.u32 	%r6, %r5, %r4;
	cvt.u64.u32 	%rd17, %r6;
$L__BB11_4:
	st.release.sys.u64 [%rd15], %rd17;
$L__BB11_5:
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
	@%p3 bra 	$L__BB12_12;
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
	bra.uni 	$L__BB12_2;
$L__BB12_11:
	shl.b64 	%rd59, %rd61, 2;
	add.s64 	%rd60, %rd1, %rd59;
	st.global.f32 	[%rd60], %f23;
	add.s64 	%rd61, %rd61, %rd5;
	setp.lt.u64 	%p9, %rd61, %rd10;
	@%p9 bra 	$L__BB12_2;
	bra.uni 	$L__BB12_12;
$L__BB12_2:
	or.b64  	%rd35, %rd61, %rd27;
	and.b64  	%rd36, %rd35, -4294967296;
	setp.ne.s64 	%p4, %rd36, 0;
	@%p4 bra 	$L__BB12_4;
	bra.uni 	$L__BB12_3;
$L__BB12_4:
	div.u64 	%rd62, %rd61, %rd27;
	bra.uni 	$L__BB12_5;
$L__BB12_3:
	cvt.u32.u64 	%r9, %rd61;
	div.u32 	%r10, %r9, %r8;
	cvt.u64.u32 	%rd62, %r10;
$L__BB12_5:
	mov.f32 	%f23, %f7;
	@%p5 bra 	$L__BB12_11;
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
	@%p6 bra 	$L__BB12_9;
	mov.u64 	%rd64, 0;
	mov.f32 	%f23, %f7;
$L__BB12_8:
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
	@%p7 bra 	$L__BB12_9;
	bra.uni 	$L__BB12_8;
$L__BB12_9:
	setp.eq.s64 	%p8, %rd11, 0;
	@%p8 bra 	$L__BB12_11;
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
	bra.uni 	$L__BB12_11;
$L__BB12_12:
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
	@%p1 bra 	$L__BB13_3;
	ld.param.u64 	%rd12, [keel_relu_param_0];
	ld.param.u64 	%rd13, [keel_relu_param_1];
	cvta.to.global.u64 	%rd1, %rd13;
	cvta.to.global.u64 	%rd2, %rd12;
	mov.u32 	%r2, %nctaid.x;
	mul.wide.u32 	%rd4, %r4, %r2;
	shl.b64 	%rd19, %rd18, 2;
	shl.b64 	%rd6, %rd4, 2;
$L__BB13_2:
	add.s64 	%rd16, %rd2, %rd19;
	ld.global.f32 	%f1, [%rd16];
	max.f32 	%f2, %f1, 0f00000000;
	add.s64 	%rd17, %rd1, %rd19;
	st.global.f32 	[%rd17], %f2;
	add.s64 	%rd19, %rd19, %rd6;
	add.s64 	%rd18, %rd18, %rd4;
	setp.lt.u64 	%p2, %rd18, %rd11;
	@%p2 bra 	$L__BB13_2;
$L__BB13_3:
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
	@%p1 bra 	$L__BB14_5;
	ld.param.u64 	%rd13, [keel_relu_grad_param_0];
	ld.param.u64 	%rd14, [keel_relu_grad_param_1];
	cvta.to.global.u64 	%rd1, %rd14;
	cvta.to.global.u64 	%rd2, %rd13;
	mov.u32 	%r2, %nctaid.x;
	mul.wide.u32 	%rd4, %r4, %r2;
	shl.b64 	%rd19, %rd18, 2;
	shl.b64 	%rd6, %rd4, 2;
	mov.b32 	%r5, 0;
	bra.uni 	$L__BB14_2;
$L__BB14_4:
	add.s64 	%rd19, %rd19, %rd6;
	add.s64 	%rd18, %rd18, %rd4;
	setp.lt.u64 	%p3, %rd18, %rd12;
	@%p3 bra 	$L__BB14_2;
	bra.uni 	$L__BB14_5;
$L__BB14_2:
	add.s64 	%rd17, %rd2, %rd19;
	ld.global.f32 	%f1, [%rd17];
	setp.gt.f32 	%p2, %f1, 0f00000000;
	@%p2 bra 	$L__BB14_4;
	add.s64 	%rd9, %rd1, %rd19;
	st.global.u32 	[%rd9], %r5;
	bra.uni 	$L__BB14_4;
$L__BB14_5:
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
	@%p1 bra 	$L__BB15_3;
	ld.param.u64 	%rd28, [keel_mse_param_2];
	cvta.to.global.u64 	%rd2, %rd28;
	mov.u32 	%r2, %nctaid.x;
	mul.wide.u32 	%rd6, %r4, %r2;
	add.rn.f32 	%f1, %f8, %f8;
	shl.b64 	%rd40, %rd5, 2;
	shl.b64 	%rd8, %rd6, 2;
	mov.u64 	%rd39, %rd5;
$L__BB15_2:
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
	@%p2 bra 	$L__BB15_2;
$L__BB15_3:
	setp.ne.s64 	%p3, %rd5, 0;
	@%p3 bra 	$L__BB15_11;
	ld.param.u64 	%rd26, [keel_mse_param_3];
	cvta.to.global.u64 	%rd1, %rd26;
	setp.eq.s64 	%p4, %rd24, 0;
	mov.f32 	%f34, 0f00000000;
	@%p4 bra 	$L__BB15_10;
	and.b64  	%rd9, %rd24, 1;
	setp.eq.s64 	%p5, %rd24, 1;
	mov.f32 	%f34, 0f00000000;
	mov.u64 	%rd44, 0;
	@%p5 bra 	$L__BB15_8;
	and.b64  	%rd10, %rd24, -2;
	add.s64 	%rd43, %rd4, 4;
	add.s64 	%rd42, %rd3, 4;
	mov.f32 	%f34, 0f00000000;
	mov.u64 	%rd44, 0;
$L__BB15_7:
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
	@%p6 bra 	$L__BB15_8;
	bra.uni 	$L__BB15_7;
$L__BB15_8:
	setp.eq.s64 	%p7, %rd9, 0;
	@%p7 bra 	$L__BB15_10;
	shl.b64 	%rd36, %rd44, 2;
	add.s64 	%rd37, %rd4, %rd36;
	ld.global.f32 	%f26, [%rd37];
	add.s64 	%rd38, %rd3, %rd36;
	ld.global.f32 	%f27, [%rd38];
	sub.rn.f32 	%f28, %f26, %f27;
	mul.rn.f32 	%f29, %f28, %f28;
	add.rn.f32 	%f34, %f34, %f29;
$L__BB15_10:
	mul.rn.f32 	%f30, %f34, %f8;
	st.global.f32 	[%rd1], %f30;
$L__BB15_11:
	ret;
}
)ptx";

}  // namespace keel::cuda
