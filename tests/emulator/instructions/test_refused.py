"""Instructions and forms that do not exist, or that nobody has modelled: each is refused."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator import UnsupportedError
from tests.emulator.kernel import kernel, run, vector

REFUSED = """
add.sat.u32 %r1, %r2, %r3; sub.u16x2 %r1, %r2, %r3; mad.lo.sat.s32 %r1, %r2, %r3, %r4;
min.relu.s64 %d1, %d2, %d3; neg.u32 %r1, %r2; mul.wide.u64 %d1, %d2, %d3; add.s32 %d1, %r2, %r3;
add.s64 %d1, %r2, %d3;
setp.lt.b32 %p1, %r1, %r2; setp.lo.s32 %p1, %r1, %r2; setp.equ.s32 %p1, %r1, %r2;
setp.lt.ftz.bf16 %p1, %h1, %h2; setp.lt.f16x2 %p1, %r1, %r2; lop3.b32 %r1, %r2, %r3, %r4, 256;
lop3.b32 %r1, %r2, %r3, %r4, %r5; selp.pred %p1, %p2, %p3, %p4; shl.s32 %r1, %r2, %r3;
and.s32 %r1, %r2, %r3;
fma.f32 %r1, %r2, %r3, %r4; add.rz.f16 %h1, %h2, %h3; add.ftz.bf16 %h1, %h2, %h3;
add.sat.f64 %d1, %d2, %d3; max.NaN.f64 %d1, %d2, %d3; max.abs.f32 %r1, %r2, %r3;
div.f32 %r1, %r2, %r3; rcp.approx.f64 %d1, %d2; sqrt.f32 %r1, %r2; ex2.f32 %r1, %r2;
ex2.approx.bf16 %h1, %h2; tanh.approx.ftz.f32 %r1, %r2; sin.approx.f16 %h1, %h2;
fma.rn.oob.f16 %h1, %h2, %h3, %h4; add.f32.s32 %r1, %r2, %r3;
add.sat.bf16x2 %r1, %r2, %r3; add.rz.f16x2 %r1, %r2, %r3; mul.sat.f32x2 %d1, %d2, %d3;
min.f32x2 %d1, %d2, %d3; fma.f32x2 %d1, %d2, %d3, %d4; max.ftz.bf16x2 %r1, %r2, %r3;
ex2.approx.ftz.f16x2 %r1, %r2; fma.rn.oob.relu.bf16x2 %r1, %r2, %r3, %r4;
div.rn.f16x2 %r1, %r2, %r3;
cvt.f32.s32 %r1, %r2; cvt.s32.f32 %r1, %r2; cvt.f16.f32 %h1, %r2;
cvt.rm.bf16x2.f32 %r1, %r2, %r3; cvt.rn.e4m3x2.f32 %h1, %r2, %r3;
cvt.rs.f16x2.f32 %r1, %r2, %r3, %r4; cvt.rn.bf16x2.e4m3x2 %r1, %h2;
cvt.rn.ue8m0x2.f32 %h1, %r2, %r3; cvt.rn.s32.f32 %r1, %r2; cvt.rni.f16.f32 %h1, %r2;
cvt.pack.sat.u8.s32 %r1, %r2, %r3; cvt.rna.satfinite.relu.tf32.f32 %r1, %r2; cvt.u32.u64 %r1, %r2;
cvt.rs.satfinite.f16x2.f32 %r5, %r1, %r2, %r6;
cvt.rs.satfinite.e4m3x4.f32 %r5, {%r1, %r2, %r3, %r4}, %r6;
cvt.rs.satfinite.e2m1x4.f32 %r5, {%r1, %r2, %r3, %r4}, %r6;
mov.u8 %h1, %h2; mov.b32 %r1, %d1; mov.b64 %d1, %r1; mov.b64 %d1, %q1;
mov.b64 %d1, {%r1, %r2, %r3}; mov.f32 %r1, 1; cvta.shared.u32 %r1, %r2; isspacep.const %p1, %d1;
vadd.s32.s32.s32.add %r4, %r1, %r2; vadd2.u32.u32.u32.sat.add %r4, %r1, %r2, %r3;
vshl.u32.u32.s32.clamp %r4, %r1, %r2; vshl.s32.s32.u32.sat.clamp %r4, %r1, %r2;
vset.u32.u32 %r4, %r1, %r2; suq.width.b32 %r1, [%d0]; tensormap.x.b32 %r1;

ld.global.f16 %h1, [%d0]; ld.global.b32 %h1, [%d0]; st.param.b32 [p0], %r1;
ld.shared.nc.b32 %r1, [%d0]; ld.relaxed.global.b32 %r1, [%d0]; st.global.nc.b32 [%d0], %r1;
ld.global.v2.b128 {%q1, %q2}, [%d0]; ld.global.v2.b32 {%r1, %r2, %r3}, [%d0];
@%p1 st.const.b32 [%d0], %r1; ld.global.wt.b32 %r1, [%d0]; ld.global.acq_rel.gpu.b32 %r1, [%d0];
discard.global.L2 [%d0], 64; prefetch.shared.L1 [%d0]; ld.global.pred %p1, [%d0];
atom.global.and.u32 %r1, [%d0], 1; atom.global.add.s64 %d5, [%d0], 1; red.global.exch.b32 [%d0], 1;
atom.global.add.f16x2 %r1, [%d0], %r2; atom.global.min.f32 %r1, [%d0], %r2;
atom.local.add.u32 %r1, [%d0], 1; red.acquire.gpu.global.add.u32 [%d0], 1;
atom.global.cas.b32 %r1, [%d0], 1; red.shared.add.v2.f32 [%r1], {%r1, %r2};
atom.global.max.noftz.f16x2 %r1, [%d0], %r2;
multimem.ld_reduce.global.and.u32 %r1, [%d0];
multimem.ld_reduce.global.add.acc::f32.u32 %r1, [%d0];
multimem.ld_reduce.global.add.v2.u32 {%r1, %r2}, [%d0]; multimem.red.global.add.e4m3x4 [%d0], %r1;
multimem.red.weak.global.add.u32 [%d0], %r1; multimem.red.weak.global.add.f32 [%d0], %r1;
multimem.st.acquire.sys.global.u32 [%d0], %r1; multimem.st.release.global.u32 [%d0], %r1;

fence.acq_rel; fence.sc.gl; fence.proxy.async.local; fence.mbarrier_init.release.cta;
membar.gpu; membar.proxy.async; fence.acquire.sync_restrict::shared::cta.cluster;
fence.proxy.tensormap::generic.acquire.gpu;
mapa.u32 %r5, %r20, 1; mapa.shared::cta.u32 %r5, %r20, 1; griddepcontrol.cancel;
clusterlaunchcontrol.query_cancel.get_first_ctaid::w.b32.b128 %r5, %q0;
clusterlaunchcontrol.try_cancel.shared::cta.mbarrier::complete_tx::bytes.b128 [tile], [bar];

cp.async.cg.shared.global [%r21], [%d0], 8; cp.async.wait_group %r1;
cp.async.ca.shared::cluster.global [%r21], [%d0], 16; cp.async.ca.shared.global [%r21], [%d0], 12;
cp.async.wait_all 0; cp.async.ca.global.shared [%d0], [%r21], 16;
cp.async.mbarrier.arrive.shared::cluster.b64 [%r21];
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.multicast::cluster
    [tile], [%d0], 16, [bar], %h1;
cp.async.bulk.shared::cta.global.bulk_group [tile], [%d0], 16;
cp.async.bulk.global.shared::cta.bulk_group.ignored [%d0], [tile], 16;
cp.async.bulk.wait_group.write 0; cp.async.bulk.wait_group %r1;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%d0], [tile], 256;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f32 [%d0], [tile], 256;
cp.reduce.async.bulk.global.shared::cta.bulk_group.and.u32 [%d0], [tile], 256;
cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.s32 [%d0], [tile], 256;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s64 [%d0], [tile], 256;
st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b64 [%r1], {%d1, %d1, %d1, %d1}, [bar];
red.async.relaxed.gpu.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1], %r2, [bar];
st.async.release.sys.global.b32 [%d0], %r4; st.bulk.weak.shared::cta [tile], %d5, 1;
cp.async.bulk.tensor.2d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes
    [tile], [%d1, {0, 0}], [bar];
cp.async.bulk.tensor.2d.shared::cluster.global.im2col::w.mbarrier::complete_tx::bytes
    [tile], [%d1, {0, 0}], [bar];
cp.async.bulk.tensor.2d.shared::cta.global.tile.multicast::cluster.mbarrier::complete_tx::bytes
    [tile], [%d1, {0, 0}], [bar];
cp.async.bulk.tensor.2d.shared::cluster.global.tile.bulk_group [tile], [%d1, {0, 0}], [bar];
tensormap.replace.tile.rank.global.b1024.b64 [%d0], 1;
tensormap.replace.tile.global_address.global.b1024.b32 [%d0], %r1;
tensormap.replace.tile.colour.global.b1024.b32 [%d0], 1;
tensormap.replace.tile.elemtype.global.b1024.b32 [%d0], %r1;
tensormap.replace.tile.box_dim.global.b1024.b32 [%d0], 5, %r1;
tensormap.replace.tile.box_dim.global.b1024.b32 [%d0], %r1;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned
    [%d0], [tile], 64;

ldmatrix.sync.aligned.m8n8.x2.shared.b16 R1, [%r2];
ldmatrix.sync.aligned.m8n8.x1.shared::cluster.b16 R1, [%r2];
ldmatrix.sync.aligned.m16n16.x1.shared.b8 R2, [%r2];
ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8 R8, [%r2];
ldmatrix.sync.aligned.m8n16.x1.shared.b8 R1, [%r2];
stmatrix.sync.aligned.m16n8.x1.shared.b8 [%r2], R1;
stmatrix.sync.aligned.m16n8.x1.trans.shared.b8x16.b4x16_p64 [%r2], R1;
movmatrix.sync.aligned.m8n8.b16 %r1, %r2;
mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 R4, R4, R2, R4;
mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 R4, R4, R2, R4;
mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 R4, R4, R1, R4;
mma.sp.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 R4, R2, R2, R4, %r1, 0;
mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 R4, R2, R2, R4, %r1, 4;
mma.sync.aligned.m16n8k64.row.col.s32.s4.s8.s32 R4, R4, R2, R4;
mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32 R4, R4, R2, R4;
mma.sync.aligned.m8n8k4.row.col.f32.f16.bf16.f32 R8, R2, R2, R8;
wmma.load.a.sync.aligned.row.m16n16k16.f16 R4, [%d0], 16;
wmma.load.a.sync.aligned.row.m16n16k16.f32 R8, [%d0], 16;
wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16.bf16.f32 R8, R8, R4, R8;
wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32.satfinite R8, R8, R8, R8;

tcgen05.ld.sync.aligned.16x256b.x64.b32 R1, [%r10];
tcgen05.cp.cta_group::1.128x256b.b8x16.b6x16_p32 [%r9], %d7;
tcgen05.cp.cta_group::1.64x128b [%r9], %d7; tcgen05.shift.cta_group::1.down [%r9];
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile], 48;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 48;
tcgen05.mma.cta_group::1.kind::f16.ashift [%r9], %d7, %d8, %r21, %p6;
tcgen05.mma.sp.sp.cta_group::1.kind::f16 [%r9], %d7, %d8, %r21, %p6;
tcgen05.mma.cta_group::1.kind::f64 [%r9], %d7, %d8, %r21, %p6;
tcgen05.mma.cta_group::1.kind::f16.collector::a::keep [%r9], %d7, %d8, %r21, %p6;
tcgen05.mma.cta_group::1.kind::f16 [%r9], %d7, %d8, %r21, %p6, 16;
tcgen05.mma.cta_group::1.kind::f16 [%r9], %d7, %d8, %r21, {%r30, %r31}, %p6;
tcgen05.mma.ws.cta_group::1.kind::f16 [%r9], %d7, %d8, %r21, %p6, 0, 0;
tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale [%r9], %d7, %d8, %r21, [%r9], [%r9], %p6;
tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::4X
    [%r9], %d7, %d8, %r21, [%r9], [%r9], %p6;
tcgen05.mma.cta_group::1.kind::mxf8f6f4 [%r9], %d7, %d8, %r21, [%r9], [%r9], %p6;
"""


@pytest.mark.parametrize("text", [" ".join(one.split()) for one in REFUSED.split(";")[:-1]])
def test_what_does_not_exist_is_refused(text: str) -> None:
    """R1, R2, R4 and R8 stand for so many registers."""
    for count in (1, 2, 4, 8):
        text = text.replace(f"R{count}", vector(1, count))
    body = f".shared .align 8 .b64 bar; {text};"
    ptx = kernel(body, ("u64", "tensor_map"), shared=1024, target="sm_100a")
    with pytest.raises(UnsupportedError):
        run(ptx, np.zeros(64), bytes(128))
