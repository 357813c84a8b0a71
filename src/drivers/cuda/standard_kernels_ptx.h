// Made by tools/kernels/make_ptx.py; change its sources instead.
// From 035bd85ec44ee199d07935783d20dfcbccb344c23b0bfeb78e1755cc2eeb90cb
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
	.reg .pred 	%p<22>;
	.reg .b16 	%rs<10>;
	.reg .b32 	%r<25>;
	.reg .b64 	%rd<158>;
	ld.param.u64 	%rd52, [keel_copy_table_param_2];
	mov.u32 	%r2, %ctaid.x;
	cvt.u64.u32 	%rd147, %r2;
	setp.ge.u64 	%p1, %rd147, %rd52;
	@%p1 bra 	$L__BB6_19;
	ld.param.u64 	%rd53, [keel_copy_table_param_0];
	ld.param.u64 	%rd54, [keel_copy_table_param_1];
	cvta.to.global.u64 	%rd1, %rd54;
	cvta.to.global.u64 	%rd2, %rd53;
	mov.u32 	%r3, %nctaid.x;
	cvt.u64.u32 	%rd4, %r3;
	mov.u32 	%r4, %tid.x;
	cvt.u64.u32 	%rd5, %r4;
	mov.u32 	%r5, %ntid.x;
	cvt.u64.u32 	%rd6, %r5;
	mul.lo.s64 	%rd7, %rd6, 7;
	add.s64 	%rd8, %rd7, %rd5;
	shl.b64 	%rd9, %rd6, 3;
	shl.b64 	%rd10, %rd5, 2;
	shl.b64 	%rd11, %rd6, 5;
	shl.b64 	%rd12, %rd6, 2;
	shl.b64 	%rd13, %rd5, 4;
	shl.b64 	%rd14, %rd6, 7;
	shl.b64 	%rd15, %rd6, 4;
	mov.b32 	%r6, 4;
	mov.b32 	%r7, 1;
	mov.b32 	%r21, 0;
$L__BB6_2:
	mul.lo.s64 	%rd65, %rd147, 24;
	add.s64 	%rd66, %rd2, %rd65;
	cvta.global.u64 	%rd56, %rd66;
	ld.u64 %rd55, [%rd56];
	shl.b64 	%rd67, %rd55, 4;
	add.s64 	%rd68, %rd1, %rd67;
	cvta.global.u64 	%rd58, %rd68;
	ld.u64 %rd57, [%rd58];
	add.s64 	%rd60, %rd58, 8;
	ld.u64 %rd59, [%rd60];
	add.s64 	%rd62, %rd56, 8;
	ld.u64 %rd61, [%rd62];
	add.s64 	%rd64, %rd56, 16;
	ld.u64 %rd63, [%rd64];
	setp.eq.s64 	%p2, %rd57, 0;
	mov.u32 	%r24, %r6;
	@%p2 bra 	$L__BB6_17;
	add.s64 	%rd21, %rd61, %rd57;
	add.s64 	%rd22, %rd61, %rd59;
	setp.eq.s64 	%p3, %rd21, 0;
	setp.eq.s64 	%p4, %rd22, 0;
	or.pred  	%p5, %p3, %p4;
	mov.u32 	%r24, %r7;
	@%p5 bra 	$L__BB6_17;
	bra.uni 	$L__BB6_4;
$L__BB6_17:
	or.b32  	%r23, %r24, 4;
	setp.eq.s32 	%p20, %r23, 4;
	@%p20 bra 	$L__BB6_18;
	bra.uni 	$L__BB6_19;
$L__BB6_18:
	add.s64 	%rd147, %rd147, %rd4;
	setp.lt.u64 	%p21, %rd147, %rd52;
	@%p21 bra 	$L__BB6_2;
	bra.uni 	$L__BB6_19;
$L__BB6_4:
	or.b64  	%rd69, %rd21, %rd22;
	or.b64  	%rd23, %rd69, %rd63;
	and.b64  	%rd70, %rd23, 15;
	setp.ne.s64 	%p6, %rd70, 0;
	@%p6 bra 	$L__BB6_9;
	bra.uni 	$L__BB6_5;
$L__BB6_9:
	and.b64  	%rd71, %rd23, 3;
	setp.ne.s64 	%p7, %rd71, 0;
	@%p7 bra 	$L__BB6_14;
	bra.uni 	$L__BB6_10;
$L__BB6_14:
	setp.ge.u64 	%p8, %rd8, %rd63;
	mov.u64 	%rd156, %rd5;
	@%p8 bra 	$L__BB6_15;
$L__BB6_22:
	add.s64 	%rd72, %rd22, %rd156;
	ld.u8 	%rs1, [%rd72];
	add.s64 	%rd73, %rd72, %rd6;
	ld.u8 	%rs2, [%rd73];
	add.s64 	%rd74, %rd73, %rd6;
	ld.u8 	%rs3, [%rd74];
	add.s64 	%rd75, %rd74, %rd6;
	ld.u8 	%rs4, [%rd75];
	add.s64 	%rd76, %rd75, %rd6;
	ld.u8 	%rs5, [%rd76];
	add.s64 	%rd77, %rd76, %rd6;
	ld.u8 	%rs6, [%rd77];
	add.s64 	%rd78, %rd77, %rd6;
	ld.u8 	%rs7, [%rd78];
	add.s64 	%rd79, %rd78, %rd6;
	ld.u8 	%rs8, [%rd79];
	add.s64 	%rd80, %rd21, %rd156;
	st.u8 	[%rd80], %rs1;
	add.s64 	%rd81, %rd80, %rd6;
	st.u8 	[%rd81], %rs2;
	add.s64 	%rd82, %rd81, %rd6;
	st.u8 	[%rd82], %rs3;
	add.s64 	%rd83, %rd82, %rd6;
	st.u8 	[%rd83], %rs4;
	add.s64 	%rd84, %rd83, %rd6;
	st.u8 	[%rd84], %rs5;
	add.s64 	%rd85, %rd84, %rd6;
	st.u8 	[%rd85], %rs6;
	add.s64 	%rd86, %rd85, %rd6;
	st.u8 	[%rd86], %rs7;
	add.s64 	%rd87, %rd86, %rd6;
	st.u8 	[%rd87], %rs8;
	add.s64 	%rd156, %rd156, %rd9;
	add.s64 	%rd88, %rd7, %rd156;
	setp.lt.u64 	%p9, %rd88, %rd63;
	@%p9 bra 	$L__BB6_22;
$L__BB6_15:
	setp.ge.u64 	%p10, %rd156, %rd63;
	mov.u32 	%r24, %r21;
	@%p10 bra 	$L__BB6_17;
$L__BB6_16:
	add.s64 	%rd89, %rd22, %rd156;
	ld.u8 	%rs9, [%rd89];
	add.s64 	%rd90, %rd21, %rd156;
	st.u8 	[%rd90], %rs9;
	add.s64 	%rd156, %rd156, %rd6;
	setp.lt.u64 	%p11, %rd156, %rd63;
	mov.u32 	%r24, %r21;
	@%p11 bra 	$L__BB6_16;
	bra.uni 	$L__BB6_17;
$L__BB6_5:
	shr.u64 	%rd24, %rd63, 4;
	setp.ge.u64 	%p16, %rd8, %rd24;
	mov.u64 	%rd148, %rd5;
	mov.u64 	%rd149, %rd13;
	@%p16 bra 	$L__BB6_6;
$L__BB6_20:
	add.s64 	%rd110, %rd22, %rd149;
	ld.v2.u64 	{%rd111, %rd112}, [%rd110];
	add.s64 	%rd113, %rd110, %rd15;
	ld.v2.u64 	{%rd114, %rd115}, [%rd113];
	add.s64 	%rd116, %rd113, %rd15;
	ld.v2.u64 	{%rd117, %rd118}, [%rd116];
	add.s64 	%rd119, %rd116, %rd15;
	ld.v2.u64 	{%rd120, %rd121}, [%rd119];
	add.s64 	%rd122, %rd119, %rd15;
	ld.v2.u64 	{%rd123, %rd124}, [%rd122];
	add.s64 	%rd125, %rd122, %rd15;
	ld.v2.u64 	{%rd126, %rd127}, [%rd125];
	add.s64 	%rd128, %rd125, %rd15;
	ld.v2.u64 	{%rd129, %rd130}, [%rd128];
	add.s64 	%rd131, %rd128, %rd15;
	ld.v2.u64 	{%rd132, %rd133}, [%rd131];
	add.s64 	%rd134, %rd21, %rd149;
	st.v2.u64 	[%rd134], {%rd111, %rd112};
	add.s64 	%rd135, %rd134, %rd15;
	st.v2.u64 	[%rd135], {%rd114, %rd115};
	add.s64 	%rd136, %rd135, %rd15;
	st.v2.u64 	[%rd136], {%rd117, %rd118};
	add.s64 	%rd137, %rd136, %rd15;
	st.v2.u64 	[%rd137], {%rd120, %rd121};
	add.s64 	%rd138, %rd137, %rd15;
	st.v2.u64 	[%rd138], {%rd123, %rd124};
	add.s64 	%rd139, %rd138, %rd15;
	st.v2.u64 	[%rd139], {%rd126, %rd127};
	add.s64 	%rd140, %rd139, %rd15;
	st.v2.u64 	[%rd140], {%rd129, %rd130};
	add.s64 	%rd141, %rd140, %rd15;
	st.v2.u64 	[%rd141], {%rd132, %rd133};
	add.s64 	%rd148, %rd148, %rd9;
	add.s64 	%rd142, %rd7, %rd148;
	add.s64 	%rd149, %rd149, %rd14;
	setp.lt.u64 	%p17, %rd142, %rd24;
	@%p17 bra 	$L__BB6_20;
$L__BB6_6:
	setp.ge.u64 	%p18, %rd148, %rd24;
	mov.u32 	%r24, %r21;
	@%p18 bra 	$L__BB6_17;
	shl.b64 	%rd150, %rd148, 4;
$L__BB6_8:
	add.s64 	%rd143, %rd22, %rd150;
	ld.v2.u64 	{%rd144, %rd145}, [%rd143];
	add.s64 	%rd146, %rd21, %rd150;
	st.v2.u64 	[%rd146], {%rd144, %rd145};
	add.s64 	%rd148, %rd148, %rd6;
	add.s64 	%rd150, %rd150, %rd15;
	setp.lt.u64 	%p19, %rd148, %rd24;
	mov.u32 	%r24, %r21;
	@%p19 bra 	$L__BB6_8;
	bra.uni 	$L__BB6_17;
$L__BB6_10:
	shr.u64 	%rd35, %rd63, 2;
	setp.ge.u64 	%p12, %rd8, %rd35;
	mov.u64 	%rd152, %rd5;
	mov.u64 	%rd153, %rd10;
	@%p12 bra 	$L__BB6_11;
$L__BB6_21:
	add.s64 	%rd91, %rd22, %rd153;
	ld.u32 	%r10, [%rd91];
	add.s64 	%rd92, %rd91, %rd12;
	ld.u32 	%r11, [%rd92];
	add.s64 	%rd93, %rd92, %rd12;
	ld.u32 	%r12, [%rd93];
	add.s64 	%rd94, %rd93, %rd12;
	ld.u32 	%r13, [%rd94];
	add.s64 	%rd95, %rd94, %rd12;
	ld.u32 	%r14, [%rd95];
	add.s64 	%rd96, %rd95, %rd12;
	ld.u32 	%r15, [%rd96];
	add.s64 	%rd97, %rd96, %rd12;
	ld.u32 	%r16, [%rd97];
	add.s64 	%rd98, %rd97, %rd12;
	ld.u32 	%r17, [%rd98];
	add.s64 	%rd99, %rd21, %rd153;
	st.u32 	[%rd99], %r10;
	add.s64 	%rd100, %rd99, %rd12;
	st.u32 	[%rd100], %r11;
	add.s64 	%rd101, %rd100, %rd12;
	st.u32 	[%rd101], %r12;
	add.s64 	%rd102, %rd101, %rd12;
	st.u32 	[%rd102], %r13;
	add.s64 	%rd103, %rd102, %rd12;
	st.u32 	[%rd103], %r14;
	add.s64 	%rd104, %rd103, %rd12;
	st.u32 	[%rd104], %r15;
	add.s64 	%rd105, %rd104, %rd12;
	st.u32 	[%rd105], %r16;
	add.s64 	%rd106, %rd105, %rd12;
	st.u32 	[%rd106], %r17;
	add.s64 	%rd152, %rd152, %rd9;
	add.s64 	%rd107, %rd7, %rd152;
	add.s64 	%rd153, %rd153, %rd11;
	setp.lt.u64 	%p13, %rd107, %rd35;
	@%p13 bra 	$L__BB6_21;
$L__BB6_11:
	setp.ge.u64 	%p14, %rd152, %rd35;
	mov.u32 	%r24, %r21;
	@%p14 bra 	$L__BB6_17;
	shl.b64 	%rd154, %rd152, 2;
$L__BB6_13:
	add.s64 	%rd108, %rd22, %rd154;
	ld.u32 	%r20, [%rd108];
	add.s64 	%rd109, %rd21, %rd154;
	st.u32 	[%rd109], %r20;
	add.s64 	%rd152, %rd152, %rd6;
	add.s64 	%rd154, %rd154, %rd12;
	setp.lt.u64 	%p15, %rd152, %rd35;
	mov.u32 	%r24, %r21;
	@%p15 bra 	$L__BB6_13;
	bra.uni 	$L__BB6_17;
$L__BB6_19:
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
	.reg .b16 	%rs<10>;
	.reg .b32 	%r<26>;
	.reg .b64 	%rd<182>;
	ld.param.u64 	%rd63, [keel_copy_in_param_2];
	ld.param.u64 	%rd67, [keel_copy_in_param_6];
	mov.u32 	%r2, %ctaid.x;
	cvt.u64.u32 	%rd170, %r2;
	mov.u32 	%r3, %nctaid.x;
	cvt.u64.u32 	%rd5, %r3;
	mov.u32 	%r4, %tid.x;
	cvt.u64.u32 	%rd6, %r4;
	mov.u32 	%r6, %ntid.x;
	cvt.u64.u32 	%rd7, %r6;
	add.s64 	%rd70, %rd170, 1;
	setp.eq.s64 	%p1, %rd70, %rd5;
	setp.lt.u64 	%p2, %rd6, %rd67;
	and.pred  	%p3, %p1, %p2;
	@!%p3 bra 	$L__BB7_3;
	bra.uni 	$L__BB7_1;
$L__BB7_1:
	ld.param.u64 	%rd65, [keel_copy_in_param_4];
	ld.param.u64 	%rd68, [keel_copy_in_param_5];
	cvta.to.global.u64 	%rd1, %rd68;
	shl.b64 	%rd168, %rd6, 3;
	shl.b64 	%rd9, %rd7, 3;
	mov.u64 	%rd169, %rd6;
$L__BB7_2:
	add.s64 	%rd72, %rd65, %rd168;
	ld.u64 %rd71, [%rd72];
	add.s64 	%rd73, %rd1, %rd168;
	st.global.u64 	[%rd73], %rd71;
	add.s64 	%rd169, %rd169, %rd7;
	add.s64 	%rd168, %rd168, %rd9;
	setp.lt.u64 	%p4, %rd169, %rd67;
	@%p4 bra 	$L__BB7_2;
$L__BB7_3:
	setp.ge.u64 	%p5, %rd170, %rd63;
	@%p5 bra 	$L__BB7_24;
	ld.param.u64 	%rd62, [keel_copy_in_param_0];
	ld.param.u64 	%rd69, [keel_copy_in_param_1];
	ld.param.u64 	%rd64, [keel_copy_in_param_3];
	cvta.to.global.u64 	%rd2, %rd69;
	cvta.to.global.u64 	%rd3, %rd62;
	mul.lo.s64 	%rd14, %rd7, 7;
	add.s64 	%rd15, %rd14, %rd6;
	shl.b64 	%rd16, %rd7, 3;
	shl.b64 	%rd17, %rd6, 2;
	shl.b64 	%rd18, %rd7, 5;
	shl.b64 	%rd19, %rd7, 2;
	shl.b64 	%rd20, %rd6, 4;
	shl.b64 	%rd21, %rd7, 7;
	shl.b64 	%rd22, %rd7, 4;
	mov.b32 	%r7, 4;
	mov.b32 	%r8, 1;
	mov.b32 	%r22, 0;
$L__BB7_5:
	setp.lt.u64 	%p6, %rd170, %rd64;
	mul.lo.s64 	%rd74, %rd170, 24;
	mov.u64 	%rd171, %rd170;
	@%p6 bra 	$L__BB7_7;
	add.s64 	%rd76, %rd62, %rd74;
	ld.u64 %rd171, [%rd76];
$L__BB7_7:
	shl.b64 	%rd85, %rd171, 4;
	add.s64 	%rd86, %rd2, %rd85;
	cvta.global.u64 	%rd78, %rd86;
	ld.u64 %rd77, [%rd78];
	add.s64 	%rd80, %rd78, 8;
	ld.u64 %rd79, [%rd80];
	add.s64 	%rd88, %rd3, %rd74;
	cvta.global.u64 	%rd89, %rd88;
	add.s64 	%rd82, %rd89, 8;
	ld.u64 %rd81, [%rd82];
	add.s64 	%rd84, %rd89, 16;
	ld.u64 %rd83, [%rd84];
	setp.eq.s64 	%p7, %rd77, 0;
	mov.u32 	%r25, %r7;
	@%p7 bra 	$L__BB7_22;
	add.s64 	%rd31, %rd81, %rd77;
	add.s64 	%rd32, %rd81, %rd79;
	setp.eq.s64 	%p8, %rd31, 0;
	setp.eq.s64 	%p9, %rd32, 0;
	or.pred  	%p10, %p8, %p9;
	mov.u32 	%r25, %r8;
	@%p10 bra 	$L__BB7_22;
	bra.uni 	$L__BB7_9;
$L__BB7_22:
	or.b32  	%r24, %r25, 4;
	setp.eq.s32 	%p25, %r24, 4;
	@%p25 bra 	$L__BB7_23;
	bra.uni 	$L__BB7_24;
$L__BB7_23:
	add.s64 	%rd170, %rd170, %rd5;
	setp.lt.u64 	%p26, %rd170, %rd63;
	@%p26 bra 	$L__BB7_5;
	bra.uni 	$L__BB7_24;
$L__BB7_9:
	or.b64  	%rd90, %rd31, %rd32;
	or.b64  	%rd33, %rd90, %rd83;
	and.b64  	%rd91, %rd33, 15;
	setp.ne.s64 	%p11, %rd91, 0;
	@%p11 bra 	$L__BB7_14;
	bra.uni 	$L__BB7_10;
$L__BB7_14:
	and.b64  	%rd92, %rd33, 3;
	setp.ne.s64 	%p12, %rd92, 0;
	@%p12 bra 	$L__BB7_19;
	bra.uni 	$L__BB7_15;
$L__BB7_19:
	setp.ge.u64 	%p13, %rd15, %rd83;
	mov.u64 	%rd180, %rd6;
	@%p13 bra 	$L__BB7_20;
$L__BB7_27:
	add.s64 	%rd93, %rd32, %rd180;
	ld.u8 	%rs1, [%rd93];
	add.s64 	%rd94, %rd93, %rd7;
	ld.u8 	%rs2, [%rd94];
	add.s64 	%rd95, %rd94, %rd7;
	ld.u8 	%rs3, [%rd95];
	add.s64 	%rd96, %rd95, %rd7;
	ld.u8 	%rs4, [%rd96];
	add.s64 	%rd97, %rd96, %rd7;
	ld.u8 	%rs5, [%rd97];
	add.s64 	%rd98, %rd97, %rd7;
	ld.u8 	%rs6, [%rd98];
	add.s64 	%rd99, %rd98, %rd7;
	ld.u8 	%rs7, [%rd99];
	add.s64 	%rd100, %rd99, %rd7;
	ld.u8 	%rs8, [%rd100];
	add.s64 	%rd101, %rd31, %rd180;
	st.u8 	[%rd101], %rs1;
	add.s64 	%rd102, %rd101, %rd7;
	st.u8 	[%rd102], %rs2;
	add.s64 	%rd103, %rd102, %rd7;
	st.u8 	[%rd103], %rs3;
	add.s64 	%rd104, %rd103, %rd7;
	st.u8 	[%rd104], %rs4;
	add.s64 	%rd105, %rd104, %rd7;
	st.u8 	[%rd105], %rs5;
	add.s64 	%rd106, %rd105, %rd7;
	st.u8 	[%rd106], %rs6;
	add.s64 	%rd107, %rd106, %rd7;
	st.u8 	[%rd107], %rs7;
	add.s64 	%rd108, %rd107, %rd7;
	st.u8 	[%rd108], %rs8;
	add.s64 	%rd180, %rd180, %rd16;
	add.s64 	%rd109, %rd14, %rd180;
	setp.lt.u64 	%p14, %rd109, %rd83;
	@%p14 bra 	$L__BB7_27;
$L__BB7_20:
	setp.ge.u64 	%p15, %rd180, %rd83;
	mov.u32 	%r25, %r22;
	@%p15 bra 	$L__BB7_22;
$L__BB7_21:
	add.s64 	%rd110, %rd32, %rd180;
	ld.u8 	%rs9, [%rd110];
	add.s64 	%rd111, %rd31, %rd180;
	st.u8 	[%rd111], %rs9;
	add.s64 	%rd180, %rd180, %rd7;
	setp.lt.u64 	%p16, %rd180, %rd83;
	mov.u32 	%r25, %r22;
	@%p16 bra 	$L__BB7_21;
	bra.uni 	$L__BB7_22;
$L__BB7_10:
	shr.u64 	%rd34, %rd83, 4;
	setp.ge.u64 	%p21, %rd15, %rd34;
	mov.u64 	%rd172, %rd6;
	mov.u64 	%rd173, %rd20;
	@%p21 bra 	$L__BB7_11;
$L__BB7_25:
	add.s64 	%rd131, %rd32, %rd173;
	ld.v2.u64 	{%rd132, %rd133}, [%rd131];
	add.s64 	%rd134, %rd131, %rd22;
	ld.v2.u64 	{%rd135, %rd136}, [%rd134];
	add.s64 	%rd137, %rd134, %rd22;
	ld.v2.u64 	{%rd138, %rd139}, [%rd137];
	add.s64 	%rd140, %rd137, %rd22;
	ld.v2.u64 	{%rd141, %rd142}, [%rd140];
	add.s64 	%rd143, %rd140, %rd22;
	ld.v2.u64 	{%rd144, %rd145}, [%rd143];
	add.s64 	%rd146, %rd143, %rd22;
	ld.v2.u64 	{%rd147, %rd148}, [%rd146];
	add.s64 	%rd149, %rd146, %rd22;
	ld.v2.u64 	{%rd150, %rd151}, [%rd149];
	add.s64 	%rd152, %rd149, %rd22;
	ld.v2.u64 	{%rd153, %rd154}, [%rd152];
	add.s64 	%rd155, %rd31, %rd173;
	st.v2.u64 	[%rd155], {%rd132, %rd133};
	add.s64 	%rd156, %rd155, %rd22;
	st.v2.u64 	[%rd156], {%rd135, %rd136};
	add.s64 	%rd157, %rd156, %rd22;
	st.v2.u64 	[%rd157], {%rd138, %rd139};
	add.s64 	%rd158, %rd157, %rd22;
	st.v2.u64 	[%rd158], {%rd141, %rd142};
	add.s64 	%rd159, %rd158, %rd22;
	st.v2.u64 	[%rd159], {%rd144, %rd145};
	add.s64 	%rd160, %rd159, %rd22;
	st.v2.u64 	[%rd160], {%rd147, %rd148};
	add.s64 	%rd161, %rd160, %rd22;
	st.v2.u64 	[%rd161], {%rd150, %rd151};
	add.s64 	%rd162, %rd161, %rd22;
	st.v2.u64 	[%rd162], {%rd153, %rd154};
	add.s64 	%rd172, %rd172, %rd16;
	add.s64 	%rd163, %rd14, %rd172;
	add.s64 	%rd173, %rd173, %rd21;
	setp.lt.u64 	%p22, %rd163, %rd34;
	@%p22 bra 	$L__BB7_25;
$L__BB7_11:
	setp.ge.u64 	%p23, %rd172, %rd34;
	mov.u32 	%r25, %r22;
	@%p23 bra 	$L__BB7_22;
	shl.b64 	%rd174, %rd172, 4;
$L__BB7_13:
	add.s64 	%rd164, %rd32, %rd174;
	ld.v2.u64 	{%rd165, %rd166}, [%rd164];
	add.s64 	%rd167, %rd31, %rd174;
	st.v2.u64 	[%rd167], {%rd165, %rd166};
	add.s64 	%rd172, %rd172, %rd7;
	add.s64 	%rd174, %rd174, %rd22;
	setp.lt.u64 	%p24, %rd172, %rd34;
	mov.u32 	%r25, %r22;
	@%p24 bra 	$L__BB7_13;
	bra.uni 	$L__BB7_22;
$L__BB7_15:
	shr.u64 	%rd45, %rd83, 2;
	setp.ge.u64 	%p17, %rd15, %rd45;
	mov.u64 	%rd176, %rd6;
	mov.u64 	%rd177, %rd17;
	@%p17 bra 	$L__BB7_16;
$L__BB7_26:
	add.s64 	%rd112, %rd32, %rd177;
	ld.u32 	%r11, [%rd112];
	add.s64 	%rd113, %rd112, %rd19;
	ld.u32 	%r12, [%rd113];
	add.s64 	%rd114, %rd113, %rd19;
	ld.u32 	%r13, [%rd114];
	add.s64 	%rd115, %rd114, %rd19;
	ld.u32 	%r14, [%rd115];
	add.s64 	%rd116, %rd115, %rd19;
	ld.u32 	%r15, [%rd116];
	add.s64 	%rd117, %rd116, %rd19;
	ld.u32 	%r16, [%rd117];
	add.s64 	%rd118, %rd117, %rd19;
	ld.u32 	%r17, [%rd118];
	add.s64 	%rd119, %rd118, %rd19;
	ld.u32 	%r18, [%rd119];
	add.s64 	%rd120, %rd31, %rd177;
	st.u32 	[%rd120], %r11;
	add.s64 	%rd121, %rd120, %rd19;
	st.u32 	[%rd121], %r12;
	add.s64 	%rd122, %rd121, %rd19;
	st.u32 	[%rd122], %r13;
	add.s64 	%rd123, %rd122, %rd19;
	st.u32 	[%rd123], %r14;
	add.s64 	%rd124, %rd123, %rd19;
	st.u32 	[%rd124], %r15;
	add.s64 	%rd125, %rd124, %rd19;
	st.u32 	[%rd125], %r16;
	add.s64 	%rd126, %rd125, %rd19;
	st.u32 	[%rd126], %r17;
	add.s64 	%rd127, %rd126, %rd19;
	st.u32 	[%rd127], %r18;
	add.s64 	%rd176, %rd176, %rd16;
	add.s64 	%rd128, %rd14, %rd176;
	add.s64 	%rd177, %rd177, %rd18;
	setp.lt.u64 	%p18, %rd128, %rd45;
	@%p18 bra 	$L__BB7_26;
$L__BB7_16:
	setp.ge.u64 	%p19, %rd176, %rd45;
	mov.u32 	%r25, %r22;
	@%p19 bra 	$L__BB7_22;
	shl.b64 	%rd178, %rd176, 2;
$L__BB7_18:
	add.s64 	%rd129, %rd32, %rd178;
	ld.u32 	%r21, [%rd129];
	add.s64 	%rd130, %rd31, %rd178;
	st.u32 	[%rd130], %r21;
	add.s64 	%rd176, %rd176, %rd7;
	add.s64 	%rd178, %rd178, %rd19;
	setp.lt.u64 	%p20, %rd176, %rd45;
	mov.u32 	%r25, %r22;
	@%p20 bra 	$L__BB7_18;
	bra.uni 	$L__BB7_22;
$L__BB7_24:
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
	.reg .b16 	%rs<10>;
	.reg .b32 	%r<27>;
	.reg .b64 	%rd<176>;
	ld.param.u64 	%rd58, [keel_copy_out_param_2];
	mov.u32 	%r2, %ctaid.x;
	cvt.u64.u32 	%rd164, %r2;
	mov.u32 	%r3, %nctaid.x;
	cvt.u64.u32 	%rd5, %r3;
	mov.u32 	%r4, %tid.x;
	cvt.u64.u32 	%rd6, %r4;
	setp.ge.u64 	%p1, %rd164, %rd58;
	@%p1 bra 	$L__BB8_21;
	ld.param.u64 	%rd59, [keel_copy_out_param_3];
	ld.param.u64 	%rd57, [keel_copy_out_param_0];
	ld.param.u64 	%rd62, [keel_copy_out_param_1];
	cvta.to.global.u64 	%rd2, %rd62;
	cvta.to.global.u64 	%rd3, %rd57;
	mov.u32 	%r5, %ntid.x;
	cvt.u64.u32 	%rd7, %r5;
	mul.lo.s64 	%rd8, %rd7, 7;
	add.s64 	%rd9, %rd8, %rd6;
	shl.b64 	%rd10, %rd7, 3;
	shl.b64 	%rd11, %rd6, 2;
	shl.b64 	%rd12, %rd7, 5;
	shl.b64 	%rd13, %rd7, 2;
	shl.b64 	%rd14, %rd6, 4;
	shl.b64 	%rd15, %rd7, 7;
	shl.b64 	%rd16, %rd7, 4;
	mov.b32 	%r6, 4;
	mov.b32 	%r7, 1;
	mov.b32 	%r21, 0;
$L__BB8_2:
	setp.lt.u64 	%p2, %rd164, %rd59;
	mul.lo.s64 	%rd63, %rd164, 24;
	mov.u64 	%rd165, %rd164;
	@%p2 bra 	$L__BB8_4;
	add.s64 	%rd65, %rd57, %rd63;
	ld.u64 %rd165, [%rd65];
$L__BB8_4:
	shl.b64 	%rd74, %rd165, 4;
	add.s64 	%rd75, %rd2, %rd74;
	cvta.global.u64 	%rd67, %rd75;
	ld.u64 %rd66, [%rd67];
	add.s64 	%rd69, %rd67, 8;
	ld.u64 %rd68, [%rd69];
	add.s64 	%rd77, %rd3, %rd63;
	cvta.global.u64 	%rd78, %rd77;
	add.s64 	%rd71, %rd78, 8;
	ld.u64 %rd70, [%rd71];
	add.s64 	%rd73, %rd78, 16;
	ld.u64 %rd72, [%rd73];
	setp.eq.s64 	%p3, %rd66, 0;
	mov.u32 	%r26, %r6;
	@%p3 bra 	$L__BB8_19;
	add.s64 	%rd25, %rd70, %rd66;
	add.s64 	%rd26, %rd70, %rd68;
	setp.eq.s64 	%p4, %rd25, 0;
	setp.eq.s64 	%p5, %rd26, 0;
	or.pred  	%p6, %p4, %p5;
	mov.u32 	%r26, %r7;
	@%p6 bra 	$L__BB8_19;
	bra.uni 	$L__BB8_6;
$L__BB8_19:
	or.b32  	%r23, %r26, 4;
	setp.eq.s32 	%p21, %r23, 4;
	@%p21 bra 	$L__BB8_20;
	bra.uni 	$L__BB8_26;
$L__BB8_20:
	add.s64 	%rd164, %rd164, %rd5;
	setp.lt.u64 	%p22, %rd164, %rd58;
	@%p22 bra 	$L__BB8_2;
	bra.uni 	$L__BB8_21;
$L__BB8_6:
	or.b64  	%rd79, %rd25, %rd26;
	or.b64  	%rd27, %rd79, %rd72;
	and.b64  	%rd80, %rd27, 15;
	setp.ne.s64 	%p7, %rd80, 0;
	@%p7 bra 	$L__BB8_11;
	bra.uni 	$L__BB8_7;
$L__BB8_11:
	and.b64  	%rd81, %rd27, 3;
	setp.ne.s64 	%p8, %rd81, 0;
	@%p8 bra 	$L__BB8_16;
	bra.uni 	$L__BB8_12;
$L__BB8_16:
	setp.ge.u64 	%p9, %rd9, %rd72;
	mov.u64 	%rd174, %rd6;
	@%p9 bra 	$L__BB8_17;
$L__BB8_29:
	add.s64 	%rd82, %rd26, %rd174;
	ld.u8 	%rs1, [%rd82];
	add.s64 	%rd83, %rd82, %rd7;
	ld.u8 	%rs2, [%rd83];
	add.s64 	%rd84, %rd83, %rd7;
	ld.u8 	%rs3, [%rd84];
	add.s64 	%rd85, %rd84, %rd7;
	ld.u8 	%rs4, [%rd85];
	add.s64 	%rd86, %rd85, %rd7;
	ld.u8 	%rs5, [%rd86];
	add.s64 	%rd87, %rd86, %rd7;
	ld.u8 	%rs6, [%rd87];
	add.s64 	%rd88, %rd87, %rd7;
	ld.u8 	%rs7, [%rd88];
	add.s64 	%rd89, %rd88, %rd7;
	ld.u8 	%rs8, [%rd89];
	add.s64 	%rd90, %rd25, %rd174;
	st.u8 	[%rd90], %rs1;
	add.s64 	%rd91, %rd90, %rd7;
	st.u8 	[%rd91], %rs2;
	add.s64 	%rd92, %rd91, %rd7;
	st.u8 	[%rd92], %rs3;
	add.s64 	%rd93, %rd92, %rd7;
	st.u8 	[%rd93], %rs4;
	add.s64 	%rd94, %rd93, %rd7;
	st.u8 	[%rd94], %rs5;
	add.s64 	%rd95, %rd94, %rd7;
	st.u8 	[%rd95], %rs6;
	add.s64 	%rd96, %rd95, %rd7;
	st.u8 	[%rd96], %rs7;
	add.s64 	%rd97, %rd96, %rd7;
	st.u8 	[%rd97], %rs8;
	add.s64 	%rd174, %rd174, %rd10;
	add.s64 	%rd98, %rd8, %rd174;
	setp.lt.u64 	%p10, %rd98, %rd72;
	@%p10 bra 	$L__BB8_29;
$L__BB8_17:
	setp.ge.u64 	%p11, %rd174, %rd72;
	mov.u32 	%r26, %r21;
	@%p11 bra 	$L__BB8_19;
$L__BB8_18:
	add.s64 	%rd99, %rd26, %rd174;
	ld.u8 	%rs9, [%rd99];
	add.s64 	%rd100, %rd25, %rd174;
	st.u8 	[%rd100], %rs9;
	add.s64 	%rd174, %rd174, %rd7;
	setp.lt.u64 	%p12, %rd174, %rd72;
	mov.u32 	%r26, %r21;
	@%p12 bra 	$L__BB8_18;
	bra.uni 	$L__BB8_19;
$L__BB8_7:
	shr.u64 	%rd28, %rd72, 4;
	setp.ge.u64 	%p17, %rd9, %rd28;
	mov.u64 	%rd166, %rd6;
	mov.u64 	%rd167, %rd14;
	@%p17 bra 	$L__BB8_8;
$L__BB8_27:
	add.s64 	%rd120, %rd26, %rd167;
	ld.v2.u64 	{%rd121, %rd122}, [%rd120];
	add.s64 	%rd123, %rd120, %rd16;
	ld.v2.u64 	{%rd124, %rd125}, [%rd123];
	add.s64 	%rd126, %rd123, %rd16;
	ld.v2.u64 	{%rd127, %rd128}, [%rd126];
	add.s64 	%rd129, %rd126, %rd16;
	ld.v2.u64 	{%rd130, %rd131}, [%rd129];
	add.s64 	%rd132, %rd129, %rd16;
	ld.v2.u64 	{%rd133, %rd134}, [%rd132];
	add.s64 	%rd135, %rd132, %rd16;
	ld.v2.u64 	{%rd136, %rd137}, [%rd135];
	add.s64 	%rd138, %rd135, %rd16;
	ld.v2.u64 	{%rd139, %rd140}, [%rd138];
	add.s64 	%rd141, %rd138, %rd16;
	ld.v2.u64 	{%rd142, %rd143}, [%rd141];
	add.s64 	%rd144, %rd25, %rd167;
	st.v2.u64 	[%rd144], {%rd121, %rd122};
	add.s64 	%rd145, %rd144, %rd16;
	st.v2.u64 	[%rd145], {%rd124, %rd125};
	add.s64 	%rd146, %rd145, %rd16;
	st.v2.u64 	[%rd146], {%rd127, %rd128};
	add.s64 	%rd147, %rd146, %rd16;
	st.v2.u64 	[%rd147], {%rd130, %rd131};
	add.s64 	%rd148, %rd147, %rd16;
	st.v2.u64 	[%rd148], {%rd133, %rd134};
	add.s64 	%rd149, %rd148, %rd16;
	st.v2.u64 	[%rd149], {%rd136, %rd137};
	add.s64 	%rd150, %rd149, %rd16;
	st.v2.u64 	[%rd150], {%rd139, %rd140};
	add.s64 	%rd151, %rd150, %rd16;
	st.v2.u64 	[%rd151], {%rd142, %rd143};
	add.s64 	%rd166, %rd166, %rd10;
	add.s64 	%rd152, %rd8, %rd166;
	add.s64 	%rd167, %rd167, %rd15;
	setp.lt.u64 	%p18, %rd152, %rd28;
	@%p18 bra 	$L__BB8_27;
$L__BB8_8:
	setp.ge.u64 	%p19, %rd166, %rd28;
	mov.u32 	%r26, %r21;
	@%p19 bra 	$L__BB8_19;
	shl.b64 	%rd168, %rd166, 4;
$L__BB8_10:
	add.s64 	%rd153, %rd26, %rd168;
	ld.v2.u64 	{%rd154, %rd155}, [%rd153];
	add.s64 	%rd156, %rd25, %rd168;
	st.v2.u64 	[%rd156], {%rd154, %rd155};
	add.s64 	%rd166, %rd166, %rd7;
	add.s64 	%rd168, %rd168, %rd16;
	setp.lt.u64 	%p20, %rd166, %rd28;
	mov.u32 	%r26, %r21;
	@%p20 bra 	$L__BB8_10;
	bra.uni 	$L__BB8_19;
$L__BB8_12:
	shr.u64 	%rd39, %rd72, 2;
	setp.ge.u64 	%p13, %rd9, %rd39;
	mov.u64 	%rd170, %rd6;
	mov.u64 	%rd171, %rd11;
	@%p13 bra 	$L__BB8_13;
$L__BB8_28:
	add.s64 	%rd101, %rd26, %rd171;
	ld.u32 	%r10, [%rd101];
	add.s64 	%rd102, %rd101, %rd13;
	ld.u32 	%r11, [%rd102];
	add.s64 	%rd103, %rd102, %rd13;
	ld.u32 	%r12, [%rd103];
	add.s64 	%rd104, %rd103, %rd13;
	ld.u32 	%r13, [%rd104];
	add.s64 	%rd105, %rd104, %rd13;
	ld.u32 	%r14, [%rd105];
	add.s64 	%rd106, %rd105, %rd13;
	ld.u32 	%r15, [%rd106];
	add.s64 	%rd107, %rd106, %rd13;
	ld.u32 	%r16, [%rd107];
	add.s64 	%rd108, %rd107, %rd13;
	ld.u32 	%r17, [%rd108];
	add.s64 	%rd109, %rd25, %rd171;
	st.u32 	[%rd109], %r10;
	add.s64 	%rd110, %rd109, %rd13;
	st.u32 	[%rd110], %r11;
	add.s64 	%rd111, %rd110, %rd13;
	st.u32 	[%rd111], %r12;
	add.s64 	%rd112, %rd111, %rd13;
	st.u32 	[%rd112], %r13;
	add.s64 	%rd113, %rd112, %rd13;
	st.u32 	[%rd113], %r14;
	add.s64 	%rd114, %rd113, %rd13;
	st.u32 	[%rd114], %r15;
	add.s64 	%rd115, %rd114, %rd13;
	st.u32 	[%rd115], %r16;
	add.s64 	%rd116, %rd115, %rd13;
	st.u32 	[%rd116], %r17;
	add.s64 	%rd170, %rd170, %rd10;
	add.s64 	%rd117, %rd8, %rd170;
	add.s64 	%rd171, %rd171, %rd12;
	setp.lt.u64 	%p14, %rd117, %rd39;
	@%p14 bra 	$L__BB8_28;
$L__BB8_13:
	setp.ge.u64 	%p15, %rd170, %rd39;
	mov.u32 	%r26, %r21;
	@%p15 bra 	$L__BB8_19;
	shl.b64 	%rd172, %rd170, 2;
$L__BB8_15:
	add.s64 	%rd118, %rd26, %rd172;
	ld.u32 	%r20, [%rd118];
	add.s64 	%rd119, %rd25, %rd172;
	st.u32 	[%rd119], %r20;
	add.s64 	%rd170, %rd170, %rd7;
	add.s64 	%rd172, %rd172, %rd13;
	setp.lt.u64 	%p16, %rd170, %rd39;
	mov.u32 	%r26, %r21;
	@%p16 bra 	$L__BB8_15;
	bra.uni 	$L__BB8_19;
$L__BB8_21:
	cvt.u32.u64 	%r24, %rd6;
	bar.sync 	0;
	setp.ne.s32 	%p23, %r24, 0;
	@%p23 bra 	$L__BB8_26;
	ld.param.u64 	%rd61, [keel_copy_out_param_4];
	cvta.to.global.u64 	%rd1, %rd61;
	cvt.u32.u64 	%r25, %rd5;
	setp.lt.u32 	%p24, %r25, 2;
	@%p24 bra 	$L__BB8_25;
	add.s64 	%rd56, %rd1, 8;
	cvta.global.u64 	%rd158, %rd56;
	atom.acq_rel.gpu.add.u64 %rd157, [%rd158], 1;
	add.s64 	%rd159, %rd157, 1;
	setp.ne.s64 	%p25, %rd159, %rd5;
	@%p25 bra 	$L__BB8_26;
	mov.u64 	%rd160, 0;
	st.global.u64 	[%rd56], %rd160;
$L__BB8_25:
	ld.param.u64 	%rd161, [keel_copy_out_param_5];
	ld.global.u64 	%rd163, [%rd1];
	add.s64 	%rd162, %rd163, 1;
	st.global.u64 	[%rd1], %rd162;
	st.release.sys.u64 [%rd161], %rd162;
$L__BB8_26:
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
	@%p1 bra 	$L__BB9_2;
	ld.param.u64 	%rd7, [keel_mark_param_1];
	ld.param.u64 	%rd3, [keel_mark_param_0];
	cvta.to.global.u64 	%rd1, %rd3;
	ld.global.u64 	%rd9, [%rd1];
	add.s64 	%rd8, %rd9, 1;
	st.global.u64 	[%rd1], %rd8;
	st.release.sys.u64 [%rd7], %rd8;
$L__BB9_2:
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
	@%p3 bra 	$L__BB10_12;
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
	bra.uni 	$L__BB10_2;
$L__BB10_11:
	shl.b64 	%rd59, %rd61, 2;
	add.s64 	%rd60, %rd1, %rd59;
	st.global.f32 	[%rd60], %f23;
	add.s64 	%rd61, %rd61, %rd5;
	setp.lt.u64 	%p9, %rd61, %rd10;
	@%p9 bra 	$L__BB10_2;
	bra.uni 	$L__BB10_12;
$L__BB10_2:
	or.b64  	%rd35, %rd61, %rd27;
	and.b64  	%rd36, %rd35, -4294967296;
	setp.ne.s64 	%p4, %rd36, 0;
	@%p4 bra 	$L__BB10_4;
	bra.uni 	$L__BB10_3;
$L__BB10_4:
	div.u64 	%rd62, %rd61, %rd27;
	bra.uni 	$L__BB10_5;
$L__BB10_3:
	cvt.u32.u64 	%r9, %rd61;
	div.u32 	%r10, %r9, %r8;
	cvt.u64.u32 	%rd62, %r10;
$L__BB10_5:
	mov.f32 	%f23, %f7;
	@%p5 bra 	$L__BB10_11;
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
	@%p6 bra 	$L__BB10_9;
	mov.u64 	%rd64, 0;
	mov.f32 	%f23, %f7;
$L__BB10_8:
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
	@%p7 bra 	$L__BB10_9;
	bra.uni 	$L__BB10_8;
$L__BB10_9:
	setp.eq.s64 	%p8, %rd11, 0;
	@%p8 bra 	$L__BB10_11;
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
	bra.uni 	$L__BB10_11;
$L__BB10_12:
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
	@%p1 bra 	$L__BB11_3;
	ld.param.u64 	%rd12, [keel_relu_param_0];
	ld.param.u64 	%rd13, [keel_relu_param_1];
	cvta.to.global.u64 	%rd1, %rd13;
	cvta.to.global.u64 	%rd2, %rd12;
	mov.u32 	%r2, %nctaid.x;
	mul.wide.u32 	%rd4, %r4, %r2;
	shl.b64 	%rd19, %rd18, 2;
	shl.b64 	%rd6, %rd4, 2;
$L__BB11_2:
	add.s64 	%rd16, %rd2, %rd19;
	ld.global.f32 	%f1, [%rd16];
	max.f32 	%f2, %f1, 0f00000000;
	add.s64 	%rd17, %rd1, %rd19;
	st.global.f32 	[%rd17], %f2;
	add.s64 	%rd19, %rd19, %rd6;
	add.s64 	%rd18, %rd18, %rd4;
	setp.lt.u64 	%p2, %rd18, %rd11;
	@%p2 bra 	$L__BB11_2;
$L__BB11_3:
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
	@%p1 bra 	$L__BB12_5;
	ld.param.u64 	%rd13, [keel_relu_grad_param_0];
	ld.param.u64 	%rd14, [keel_relu_grad_param_1];
	cvta.to.global.u64 	%rd1, %rd14;
	cvta.to.global.u64 	%rd2, %rd13;
	mov.u32 	%r2, %nctaid.x;
	mul.wide.u32 	%rd4, %r4, %r2;
	shl.b64 	%rd19, %rd18, 2;
	shl.b64 	%rd6, %rd4, 2;
	mov.b32 	%r5, 0;
	bra.uni 	$L__BB12_2;
$L__BB12_4:
	add.s64 	%rd19, %rd19, %rd6;
	add.s64 	%rd18, %rd18, %rd4;
	setp.lt.u64 	%p3, %rd18, %rd12;
	@%p3 bra 	$L__BB12_2;
	bra.uni 	$L__BB12_5;
$L__BB12_2:
	add.s64 	%rd17, %rd2, %rd19;
	ld.global.f32 	%f1, [%rd17];
	setp.gt.f32 	%p2, %f1, 0f00000000;
	@%p2 bra 	$L__BB12_4;
	add.s64 	%rd9, %rd1, %rd19;
	st.global.u32 	[%rd9], %r5;
	bra.uni 	$L__BB12_4;
$L__BB12_5:
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
	@%p1 bra 	$L__BB13_3;
	ld.param.u64 	%rd28, [keel_mse_param_2];
	cvta.to.global.u64 	%rd2, %rd28;
	mov.u32 	%r2, %nctaid.x;
	mul.wide.u32 	%rd6, %r4, %r2;
	add.rn.f32 	%f1, %f8, %f8;
	shl.b64 	%rd40, %rd5, 2;
	shl.b64 	%rd8, %rd6, 2;
	mov.u64 	%rd39, %rd5;
$L__BB13_2:
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
	@%p2 bra 	$L__BB13_2;
$L__BB13_3:
	setp.ne.s64 	%p3, %rd5, 0;
	@%p3 bra 	$L__BB13_11;
	ld.param.u64 	%rd26, [keel_mse_param_3];
	cvta.to.global.u64 	%rd1, %rd26;
	setp.eq.s64 	%p4, %rd24, 0;
	mov.f32 	%f34, 0f00000000;
	@%p4 bra 	$L__BB13_10;
	and.b64  	%rd9, %rd24, 1;
	setp.eq.s64 	%p5, %rd24, 1;
	mov.f32 	%f34, 0f00000000;
	mov.u64 	%rd44, 0;
	@%p5 bra 	$L__BB13_8;
	and.b64  	%rd10, %rd24, -2;
	add.s64 	%rd43, %rd4, 4;
	add.s64 	%rd42, %rd3, 4;
	mov.f32 	%f34, 0f00000000;
	mov.u64 	%rd44, 0;
$L__BB13_7:
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
	@%p6 bra 	$L__BB13_8;
	bra.uni 	$L__BB13_7;
$L__BB13_8:
	setp.eq.s64 	%p7, %rd9, 0;
	@%p7 bra 	$L__BB13_10;
	shl.b64 	%rd36, %rd44, 2;
	add.s64 	%rd37, %rd4, %rd36;
	ld.global.f32 	%f26, [%rd37];
	add.s64 	%rd38, %rd3, %rd36;
	ld.global.f32 	%f27, [%rd38];
	sub.rn.f32 	%f28, %f26, %f27;
	mul.rn.f32 	%f29, %f28, %f28;
	add.rn.f32 	%f34, %f34, %f29;
$L__BB13_10:
	mul.rn.f32 	%f30, %f34, %f8;
	st.global.f32 	[%rd1], %f30;
$L__BB13_11:
	ret;
}
)ptx";

}  // namespace keel::cuda
