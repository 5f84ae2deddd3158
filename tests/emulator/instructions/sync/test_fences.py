"""Which fences there are."""

from __future__ import annotations

from tests.emulator.kernel import clean

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
