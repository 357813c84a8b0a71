// Made by tools/kernels/make_ptx.py; change its sources instead.
// From 6b662c0a2a4ce72915216d9331c4888d5d119202d5c5bcd81b1e343018de454a
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
	.param .u64 keel_copy_in_rows_param_5
)
{
	.reg .pred 	%p<31>;
	.reg .b16 	%rs<6>;
	.reg .b32 	%r<16>;
	.reg .b64 	%rd<231>;
	ld.param.u64 	%rd120, [keel_copy_in_rows_param_3];
	ld.param.u64 	%rd119, [keel_copy_in_rows_param_2];
	ld.param.u64 	%rd122, [keel_copy_in_rows_param_5];
	mov.b64 	%rd123, keel_copy_in_rows_param_0;
	mov.u64 	%rd2, %rd123;
	mov.u32 	%r3, %ctaid.x;
	cvt.u64.u32 	%rd200, %r3;
	mov.u32 	%r4, %nctaid.x;
	cvt.u64.u32 	%rd4, %r4;
	mov.u32 	%r5, %tid.x;
	cvt.u64.u32 	%rd5, %r5;
	mov.u32 	%r7, %ntid.x;
	cvt.u64.u32 	%rd6, %r7;
	add.s64 	%rd125, %rd200, 1;
	setp.eq.s64 	%p2, %rd125, %rd4;
	setp.lt.u64 	%p3, %rd5, %rd122;
	and.pred  	%p4, %p2, %p3;
	shl.b64 	%rd196, %rd5, 4;
	shl.b64 	%rd197, %rd6, 4;
	@!%p4 bra 	$L__BB9_3;
	bra.uni 	$L__BB9_1;
$L__BB9_1:
	ld.param.u64 	%rd124, [keel_copy_in_rows_param_4];
	cvta.to.global.u64 	%rd1, %rd124;
	shl.b64 	%rd126, %rd120, 4;
	add.s64 	%rd9, %rd2, %rd126;
	mov.u64 	%rd198, %rd196;
	mov.u64 	%rd199, %rd5;
$L__BB9_2:
	add.s64 	%rd127, %rd9, %rd198;
	ld.param.u64 	%rd128, [%rd127];
	add.s64 	%rd129, %rd1, %rd198;
	st.global.u64 	[%rd129], %rd128;
	ld.param.u64 	%rd130, [%rd127+8];
	st.global.u64 	[%rd129+8], %rd130;
	add.s64 	%rd199, %rd199, %rd6;
	add.s64 	%rd198, %rd198, %rd197;
	setp.lt.u64 	%p5, %rd199, %rd122;
	@%p5 bra 	$L__BB9_2;
$L__BB9_3:
	setp.ge.u64 	%p6, %rd200, %rd119;
	@%p6 bra 	$L__BB9_36;
	ld.param.u64 	%rd118, [keel_copy_in_rows_param_1];
	mul.lo.s64 	%rd14, %rd6, 3;
	add.s64 	%rd15, %rd14, %rd5;
	shl.b64 	%rd16, %rd5, 2;
	mul.lo.s64 	%rd17, %rd6, 12;
	shl.b64 	%rd19, %rd6, 3;
	shl.b64 	%rd20, %rd6, 2;
	mul.lo.s64 	%rd22, %rd6, 48;
	shl.b64 	%rd23, %rd6, 6;
	shl.b64 	%rd24, %rd6, 5;
	shl.b64 	%rd25, %rd6, 1;
	mov.b32 	%r8, 4;
$L__BB9_5:
	setp.lt.u64 	%p7, %rd200, %rd120;
	mul.lo.s64 	%rd131, %rd200, 24;
	add.s64 	%rd27, %rd118, %rd131;
	mov.u64 	%rd201, %rd200;
	@%p7 bra 	$L__BB9_7;
	ld.u64 %rd201, [%rd27];
$L__BB9_7:
	mov.u64 	%rd202, 0;
	@%p7 bra 	$L__BB9_9;
	add.s64 	%rd138, %rd27, 8;
	ld.u64 %rd202, [%rd138];
$L__BB9_9:
	setp.ge.u64 	%p9, %rd200, %rd120;
	@%p9 bra 	$L__BB9_11;
	shl.b64 	%rd143, %rd200, 2;
	add.s64 	%rd144, %rd2, %rd143;
	ld.param.u32 	%rd35, [%rd144+1536];
	bra.uni 	$L__BB9_12;
$L__BB9_11:
	add.s64 	%rd140, %rd27, 16;
	ld.u64 %rd35, [%rd140];
$L__BB9_12:
	shl.b64 	%rd145, %rd201, 4;
	add.s64 	%rd36, %rd2, %rd145;
	ld.param.u64 	%rd37, [%rd36];
	setp.eq.s64 	%p10, %rd37, 0;
	mov.u32 	%r15, %r8;
	@%p10 bra 	$L__BB9_34;
	add.s64 	%rd75, %rd37, %rd202;
	ld.param.u64 	%rd146, [%rd36+8];
	add.s64 	%rd74, %rd146, %rd202;
	setp.eq.s64 	%p11, %rd75, 0;
	setp.eq.s64 	%p12, %rd74, 0;
	or.pred  	%p1, %p11, %p12;
	@%p1 bra 	$L__BB9_33;
	bra.uni 	$L__BB9_14;
$L__BB9_33:
	selp.u32 	%r15, 1, 0, %p1;
$L__BB9_34:
	or.b32  	%r14, %r15, 4;
	setp.eq.s32 	%p29, %r14, 4;
	@%p29 bra 	$L__BB9_35;
	bra.uni 	$L__BB9_36;
$L__BB9_35:
	add.s64 	%rd200, %rd200, %rd4;
	setp.lt.u64 	%p30, %rd200, %rd119;
	@%p30 bra 	$L__BB9_5;
	bra.uni 	$L__BB9_36;
$L__BB9_14:
	or.b64  	%rd148, %rd75, %rd35;
	or.b64  	%rd149, %rd148, %rd74;
	and.b64  	%rd150, %rd149, 15;
	setp.eq.s64 	%p13, %rd150, 0;
	and.b64  	%rd151, %rd149, 3;
	setp.eq.s64 	%p14, %rd151, 0;
	selp.b64 	%rd152, 4, 1, %p14;
	selp.b64 	%rd147, 16, %rd152, %p13;
	setp.eq.s64 	%p15, %rd147, 4;
	@%p15 bra 	$L__BB9_22;
	setp.ne.s64 	%p16, %rd147, 16;
	@%p16 bra 	$L__BB9_28;
	shr.u64 	%rd40, %rd35, 4;
	setp.ge.u64 	%p21, %rd15, %rd40;
	mov.u64 	%rd208, %rd5;
	@%p21 bra 	$L__BB9_19;
	add.s64 	%rd213, %rd75, %rd22;
	add.s64 	%rd212, %rd74, %rd22;
	add.s64 	%rd211, %rd75, %rd24;
	add.s64 	%rd210, %rd75, %rd197;
	add.s64 	%rd207, %rd74, %rd24;
	add.s64 	%rd206, %rd74, %rd197;
	mov.u64 	%rd205, %rd74;
	mov.u64 	%rd208, %rd5;
	mov.u64 	%rd209, %rd75;
$L__BB9_18:
	add.s64 	%rd164, %rd205, %rd196;
	ld.v2.u64 	{%rd165, %rd166}, [%rd164];
	add.s64 	%rd167, %rd206, %rd196;
	ld.v2.u64 	{%rd168, %rd169}, [%rd167];
	add.s64 	%rd170, %rd207, %rd196;
	ld.v2.u64 	{%rd171, %rd172}, [%rd170];
	add.s64 	%rd173, %rd212, %rd196;
	ld.v2.u64 	{%rd174, %rd175}, [%rd173];
	add.s64 	%rd176, %rd209, %rd196;
	st.v2.u64 	[%rd176], {%rd165, %rd166};
	add.s64 	%rd177, %rd210, %rd196;
	st.v2.u64 	[%rd177], {%rd168, %rd169};
	add.s64 	%rd178, %rd211, %rd196;
	st.v2.u64 	[%rd178], {%rd171, %rd172};
	add.s64 	%rd179, %rd213, %rd196;
	st.v2.u64 	[%rd179], {%rd174, %rd175};
	add.s64 	%rd213, %rd213, %rd23;
	add.s64 	%rd212, %rd212, %rd23;
	add.s64 	%rd211, %rd211, %rd23;
	add.s64 	%rd210, %rd210, %rd23;
	add.s64 	%rd209, %rd209, %rd23;
	add.s64 	%rd208, %rd208, %rd20;
	add.s64 	%rd180, %rd14, %rd208;
	add.s64 	%rd207, %rd207, %rd23;
	add.s64 	%rd206, %rd206, %rd23;
	add.s64 	%rd205, %rd205, %rd23;
	setp.lt.u64 	%p22, %rd180, %rd40;
	@%p22 bra 	$L__BB9_18;
$L__BB9_19:
	setp.ge.u64 	%p23, %rd208, %rd40;
	@%p23 bra 	$L__BB9_33;
	shl.b64 	%rd214, %rd208, 4;
$L__BB9_21:
	add.s64 	%rd181, %rd74, %rd214;
	ld.v2.u64 	{%rd182, %rd183}, [%rd181];
	add.s64 	%rd184, %rd75, %rd214;
	st.v2.u64 	[%rd184], {%rd182, %rd183};
	add.s64 	%rd208, %rd208, %rd6;
	add.s64 	%rd214, %rd214, %rd197;
	setp.lt.u64 	%p24, %rd208, %rd40;
	@%p24 bra 	$L__BB9_21;
	bra.uni 	$L__BB9_33;
$L__BB9_22:
	shr.u64 	%rd73, %rd35, 2;
	setp.ge.u64 	%p17, %rd15, %rd73;
	mov.u64 	%rd220, %rd5;
	@%p17 bra 	$L__BB9_25;
	add.s64 	%rd225, %rd75, %rd17;
	add.s64 	%rd224, %rd74, %rd17;
	add.s64 	%rd223, %rd75, %rd19;
	add.s64 	%rd222, %rd75, %rd20;
	add.s64 	%rd219, %rd74, %rd19;
	add.s64 	%rd218, %rd74, %rd20;
	mov.u64 	%rd217, %rd74;
	mov.u64 	%rd220, %rd5;
	mov.u64 	%rd221, %rd75;
$L__BB9_24:
	add.s64 	%rd153, %rd217, %rd16;
	ld.u32 	%r9, [%rd153];
	add.s64 	%rd154, %rd218, %rd16;
	ld.u32 	%r10, [%rd154];
	add.s64 	%rd155, %rd219, %rd16;
	ld.u32 	%r11, [%rd155];
	add.s64 	%rd156, %rd224, %rd16;
	ld.u32 	%r12, [%rd156];
	add.s64 	%rd157, %rd221, %rd16;
	st.u32 	[%rd157], %r9;
	add.s64 	%rd158, %rd222, %rd16;
	st.u32 	[%rd158], %r10;
	add.s64 	%rd159, %rd223, %rd16;
	st.u32 	[%rd159], %r11;
	add.s64 	%rd160, %rd225, %rd16;
	st.u32 	[%rd160], %r12;
	add.s64 	%rd225, %rd225, %rd197;
	add.s64 	%rd224, %rd224, %rd197;
	add.s64 	%rd223, %rd223, %rd197;
	add.s64 	%rd222, %rd222, %rd197;
	add.s64 	%rd221, %rd221, %rd197;
	add.s64 	%rd220, %rd220, %rd20;
	add.s64 	%rd161, %rd14, %rd220;
	add.s64 	%rd219, %rd219, %rd197;
	add.s64 	%rd218, %rd218, %rd197;
	add.s64 	%rd217, %rd217, %rd197;
	setp.lt.u64 	%p18, %rd161, %rd73;
	@%p18 bra 	$L__BB9_24;
$L__BB9_25:
	setp.ge.u64 	%p19, %rd220, %rd73;
	@%p19 bra 	$L__BB9_33;
	shl.b64 	%rd226, %rd220, 2;
$L__BB9_27:
	add.s64 	%rd162, %rd74, %rd226;
	ld.u32 	%r13, [%rd162];
	add.s64 	%rd163, %rd75, %rd226;
	st.u32 	[%rd163], %r13;
	add.s64 	%rd220, %rd220, %rd6;
	add.s64 	%rd226, %rd226, %rd20;
	setp.lt.u64 	%p20, %rd220, %rd73;
	@%p20 bra 	$L__BB9_27;
	bra.uni 	$L__BB9_33;
$L__BB9_28:
	setp.ge.u64 	%p25, %rd15, %rd35;
	mov.u64 	%rd229, %rd5;
	@%p25 bra 	$L__BB9_31;
	add.s64 	%rd106, %rd75, %rd14;
	add.s64 	%rd107, %rd74, %rd14;
	add.s64 	%rd108, %rd75, %rd25;
	add.s64 	%rd109, %rd75, %rd6;
	add.s64 	%rd110, %rd74, %rd25;
	add.s64 	%rd111, %rd74, %rd6;
	mov.u64 	%rd229, %rd5;
$L__BB9_30:
	add.s64 	%rd185, %rd74, %rd229;
	ld.u8 	%rs1, [%rd185];
	add.s64 	%rd186, %rd111, %rd229;
	ld.u8 	%rs2, [%rd186];
	add.s64 	%rd187, %rd110, %rd229;
	ld.u8 	%rs3, [%rd187];
	add.s64 	%rd188, %rd107, %rd229;
	ld.u8 	%rs4, [%rd188];
	add.s64 	%rd189, %rd75, %rd229;
	st.u8 	[%rd189], %rs1;
	add.s64 	%rd190, %rd109, %rd229;
	st.u8 	[%rd190], %rs2;
	add.s64 	%rd191, %rd108, %rd229;
	st.u8 	[%rd191], %rs3;
	add.s64 	%rd192, %rd106, %rd229;
	st.u8 	[%rd192], %rs4;
	add.s64 	%rd229, %rd229, %rd20;
	add.s64 	%rd193, %rd14, %rd229;
	setp.lt.u64 	%p26, %rd193, %rd35;
	@%p26 bra 	$L__BB9_30;
$L__BB9_31:
	setp.ge.u64 	%p27, %rd229, %rd35;
	@%p27 bra 	$L__BB9_33;
$L__BB9_32:
	add.s64 	%rd194, %rd74, %rd229;
	ld.u8 	%rs5, [%rd194];
	add.s64 	%rd195, %rd75, %rd229;
	st.u8 	[%rd195], %rs5;
	add.s64 	%rd229, %rd229, %rd6;
	setp.lt.u64 	%p28, %rd229, %rd35;
	@%p28 bra 	$L__BB9_32;
	bra.uni 	$L__BB9_33;
$L__BB9_36:
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
	@%p2 bra 	$L__BB11_28;
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
$L__BB11_2:
	setp.lt.u64 	%p3, %rd189, %rd113;
	mul.lo.s64 	%rd117, %rd189, 24;
	mov.u64 	%rd190, %rd189;
	@%p3 bra 	$L__BB11_4;
	add.s64 	%rd119, %rd111, %rd117;
	ld.u64 %rd190, [%rd119];
$L__BB11_4:
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
	@%p4 bra 	$L__BB11_26;
	add.s64 	%rd64, %rd124, %rd120;
	add.s64 	%rd63, %rd124, %rd122;
	setp.eq.s64 	%p5, %rd64, 0;
	setp.eq.s64 	%p6, %rd63, 0;
	or.pred  	%p1, %p5, %p6;
	@%p1 bra 	$L__BB11_25;
	bra.uni 	$L__BB11_6;
$L__BB11_25:
	selp.u32 	%r18, 1, 0, %p1;
$L__BB11_26:
	or.b32  	%r13, %r18, 4;
	setp.eq.s32 	%p23, %r13, 4;
	@%p23 bra 	$L__BB11_27;
	bra.uni 	$L__BB11_34;
$L__BB11_27:
	add.s64 	%rd189, %rd189, %rd4;
	setp.lt.u64 	%p24, %rd189, %rd112;
	@%p24 bra 	$L__BB11_2;
	bra.uni 	$L__BB11_28;
$L__BB11_6:
	or.b64  	%rd134, %rd63, %rd64;
	or.b64  	%rd135, %rd134, %rd126;
	and.b64  	%rd136, %rd135, 15;
	setp.eq.s64 	%p7, %rd136, 0;
	and.b64  	%rd137, %rd135, 3;
	setp.eq.s64 	%p8, %rd137, 0;
	selp.b64 	%rd138, 4, 1, %p8;
	selp.b64 	%rd133, 16, %rd138, %p7;
	setp.eq.s64 	%p9, %rd133, 4;
	@%p9 bra 	$L__BB11_14;
	setp.ne.s64 	%p10, %rd133, 16;
	@%p10 bra 	$L__BB11_20;
	shr.u64 	%rd29, %rd126, 4;
	setp.ge.u64 	%p15, %rd8, %rd29;
	mov.u64 	%rd195, %rd5;
	@%p15 bra 	$L__BB11_11;
	add.s64 	%rd200, %rd64, %rd15;
	add.s64 	%rd199, %rd63, %rd15;
	add.s64 	%rd198, %rd64, %rd17;
	add.s64 	%rd197, %rd64, %rd11;
	add.s64 	%rd194, %rd63, %rd17;
	add.s64 	%rd193, %rd63, %rd11;
	mov.u64 	%rd192, %rd63;
	mov.u64 	%rd195, %rd5;
	mov.u64 	%rd196, %rd64;
$L__BB11_10:
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
	@%p16 bra 	$L__BB11_10;
$L__BB11_11:
	setp.ge.u64 	%p17, %rd195, %rd29;
	@%p17 bra 	$L__BB11_25;
	shl.b64 	%rd201, %rd195, 4;
$L__BB11_13:
	add.s64 	%rd167, %rd63, %rd201;
	ld.v2.u64 	{%rd168, %rd169}, [%rd167];
	add.s64 	%rd170, %rd64, %rd201;
	st.v2.u64 	[%rd170], {%rd168, %rd169};
	add.s64 	%rd195, %rd195, %rd6;
	add.s64 	%rd201, %rd201, %rd11;
	setp.lt.u64 	%p18, %rd195, %rd29;
	@%p18 bra 	$L__BB11_13;
	bra.uni 	$L__BB11_25;
$L__BB11_14:
	shr.u64 	%rd62, %rd126, 2;
	setp.ge.u64 	%p11, %rd8, %rd62;
	mov.u64 	%rd207, %rd5;
	@%p11 bra 	$L__BB11_17;
	add.s64 	%rd212, %rd64, %rd10;
	add.s64 	%rd211, %rd63, %rd10;
	add.s64 	%rd210, %rd64, %rd12;
	add.s64 	%rd209, %rd64, %rd13;
	add.s64 	%rd206, %rd63, %rd12;
	add.s64 	%rd205, %rd63, %rd13;
	mov.u64 	%rd204, %rd63;
	mov.u64 	%rd207, %rd5;
	mov.u64 	%rd208, %rd64;
$L__BB11_16:
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
	@%p12 bra 	$L__BB11_16;
$L__BB11_17:
	setp.ge.u64 	%p13, %rd207, %rd62;
	@%p13 bra 	$L__BB11_25;
	shl.b64 	%rd213, %rd207, 2;
$L__BB11_19:
	add.s64 	%rd148, %rd63, %rd213;
	ld.u32 	%r12, [%rd148];
	add.s64 	%rd149, %rd64, %rd213;
	st.u32 	[%rd149], %r12;
	add.s64 	%rd207, %rd207, %rd6;
	add.s64 	%rd213, %rd213, %rd13;
	setp.lt.u64 	%p14, %rd207, %rd62;
	@%p14 bra 	$L__BB11_19;
	bra.uni 	$L__BB11_25;
$L__BB11_20:
	setp.ge.u64 	%p19, %rd8, %rd126;
	mov.u64 	%rd216, %rd5;
	@%p19 bra 	$L__BB11_23;
	add.s64 	%rd95, %rd64, %rd7;
	add.s64 	%rd96, %rd63, %rd7;
	add.s64 	%rd97, %rd64, %rd18;
	add.s64 	%rd98, %rd64, %rd6;
	add.s64 	%rd99, %rd63, %rd18;
	add.s64 	%rd100, %rd63, %rd6;
	mov.u64 	%rd216, %rd5;
$L__BB11_22:
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
	@%p20 bra 	$L__BB11_22;
$L__BB11_23:
	setp.ge.u64 	%p21, %rd216, %rd126;
	@%p21 bra 	$L__BB11_25;
$L__BB11_24:
	add.s64 	%rd180, %rd63, %rd216;
	ld.u8 	%rs5, [%rd180];
	add.s64 	%rd181, %rd64, %rd216;
	st.u8 	[%rd181], %rs5;
	add.s64 	%rd216, %rd216, %rd6;
	setp.lt.u64 	%p22, %rd216, %rd126;
	@%p22 bra 	$L__BB11_24;
	bra.uni 	$L__BB11_25;
$L__BB11_28:
	cvt.u32.u64 	%r14, %rd5;
	bar.sync 	0;
	setp.ne.s32 	%p25, %r14, 0;
	@%p25 bra 	$L__BB11_34;
	ld.param.u64 	%rd114, [keel_copy_out_param_4];
	atom.acq_rel.gpu.add.u64 %rd182, [%rd114], 1;
	add.s64 	%rd107, %rd182, 1;
	and.b64  	%rd184, %rd107, -4294967296;
	setp.ne.s64 	%p26, %rd184, 0;
	@%p26 bra 	$L__BB11_31;
	bra.uni 	$L__BB11_30;
$L__BB11_31:
	div.u64 	%rd218, %rd107, %rd4;
	bra.uni 	$L__BB11_32;
$L__BB11_30:
	cvt.u32.u64 	%r15, %rd4;
	cvt.u32.u64 	%r16, %rd107;
	div.u32 	%r17, %r16, %r15;
	cvt.u64.u32 	%rd218, %r17;
$L__BB11_32:
	mul.lo.s64 	%rd185, %rd218, %rd4;
	sub.s64 	%rd186, %rd107, %rd185;
	setp.ne.s64 	%p27, %rd186, 0;
	@%p27 bra 	$L__BB11_34;
	ld.param.u64 	%rd187, [keel_copy_out_param_5];
	st.release.sys.u64 [%rd187], %rd218;
$L__BB11_34:
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
