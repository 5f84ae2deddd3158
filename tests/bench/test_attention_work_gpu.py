"""On a GPU: a kernel is timed with the peers that are installed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fa4gen.bench.peers import find_peers
from fa4gen.bench.run import Bench, BenchOptions
from fa4gen.bench.workload import parse_sizes
from fa4gen.designs.common.candidates import changed
from fa4gen.errors import Fa4genError
from fa4gen.runtime.timing import TimingProtocol

pytestmark = pytest.mark.gpu

QUICK = BenchOptions(
    (1024, 4096), rounds=2, protocol=TimingProtocol(0.002, 0.01), family="attention"
)


@pytest.fixture(scope="module")
def built():
    from fa4gen.config.find import find_configs
    from fa4gen.verify.build import build_kernel

    kernel = build_kernel(str(find_configs(["d128_causal_bf16"])[0]))
    assert kernel.compiled is not None, kernel.problems
    return kernel


def test_a_kernel_is_timed_beside_its_peers(gpu, built) -> None:
    peers = find_peers()
    result = Bench(QUICK, peers.found).time_kernel(built.plan, built.compiled, built.config)
    assert [size.size.rows for size in result.sizes] == [1024, 4096]
    for size in result.sizes:
        assert len(size.ours.medians_ms) == 2
        assert 50 < size.tflops(size.ours) < 1000
        assert 0 < size.error < 2.0**-8
        assert set(size.peers) | set(size.left_out) == {peer.name for peer in peers.found}
        for name in size.peers:
            assert size.distances[name] < 2.0**-7


def test_a_wrong_kernel_is_not_timed(gpu, built) -> None:
    plan = built.plan
    claims_dense = replace(plan, config=changed(plan.config, {"mask": "none"}))
    with pytest.raises(Fa4genError, match="is wrong at 1024 rows"):
        Bench(QUICK, ()).time_kernel(claims_dense, built.compiled)


@pytest.mark.parametrize(
    ("config", "size"),
    [
        ("d64_paged64_window_sinks_bf16", "dwarfs"),
        ("d128_lengths_causal_bf16", "2x100x1000"),
        ("d192_128_ragged_causal_bf16", "lognormal"),
    ],
)
def test_batches_are_timed_and_checked(gpu, config: str, size: str) -> None:
    from fa4gen.config.find import find_configs
    from fa4gen.verify.build import build_kernel

    kernel = build_kernel(str(find_configs([config])[0]))
    assert kernel.compiled is not None, kernel.problems
    options = replace(QUICK, sizes=parse_sizes(size))
    [timed] = Bench(options, ()).time_kernel(kernel.plan, kernel.compiled, config).sizes
    assert timed.size.word == size
    assert timed.size.extents["key_heads"] == 8
    assert 0 < timed.error < 2.0**-8


def test_a_decode_kernel_is_timed_beside_the_read_floor(gpu) -> None:
    from fa4gen.bench.read_floor import ReadFloor
    from fa4gen.config.find import find_configs
    from fa4gen.verify.build import build_kernel

    kernel = build_kernel(str(find_configs(["decode_d128_bf16"])[0]))
    assert kernel.compiled is not None, kernel.problems
    options = replace(QUICK, sizes=parse_sizes("4x8k@16/4"))
    bench = Bench(options, (ReadFloor(),))
    [timed] = bench.time_kernel(kernel.plan, kernel.compiled).sizes
    assert timed.read_bytes == 4 * 8192 * 4 * 256 * 2
    assert 0 < timed.error < 2.0**-8
    share = timed.ratio("floor")
    assert share is not None
    assert 0.2 < share < 1.05
