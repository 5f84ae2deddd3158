"""Which fences there are, and what the observer hears of them."""

from __future__ import annotations

import numpy as np

from tests.emulator.kernel import clean, launch

LEGAL = """fence.gpu; fence.sc.cta; fence.acq_rel.cluster; fence.acquire.gpu; fence.release.sys;
fence.acquire.sync_restrict::shared::cluster.cluster; fence.proxy.alias; fence.proxy.async;
fence.release.sync_restrict::shared::cta.cluster; fence.proxy.async.global; membar.cta; membar.gl;
fence.proxy.async.shared::cta; fence.proxy.async.shared::cluster; membar.sys; membar.proxy.alias;
fence.mbarrier_init.release.cluster; fence.proxy.tensormap::generic.release.gpu;
fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;
fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;"""


def test_legal_fences_run() -> None:
    clean(LEGAL)


def test_fence_of_a_tensor_map() -> None:
    body = "fence.proxy.tensormap::generic.acquire.gpu [%d0], 128;"
    clean(body, bytes(128))


def test_a_proxy_fence_orders_stores_before_a_bulk_copy() -> None:
    """Without the fence the checks complain; so the observer hears of it."""
    body = """
    mov.u32 %r1, tile; mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 2; add.u32 %r3, %r1, %r3;
    st.shared.b32 [%r3], %r2;
    FENCE
    bar.sync 0;
    setp.ne.u32 %p1, %r2, 0; @%p1 bra END;
    cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r1], 128;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    END:"""
    kinds = {}
    for fence in ("fence.proxy.async.shared::cta;", ""):
        out = np.zeros(32, np.uint32)
        report = launch(body.replace("FENCE", fence), out, shared=128)
        kinds[fence] = [finding.kind for finding in report.findings]
    assert kinds == {"fence.proxy.async.shared::cta;": [], "": ["missing-proxy-fence"]}
