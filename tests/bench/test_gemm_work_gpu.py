"""On a GPU: a matrix product is timed with the peers that are installed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fa4gen.bench.gemm_peers import find_gemm_peers
from fa4gen.bench.gemm_workload import GemmWorkload, parse_sizes
from fa4gen.bench.run import Bench, BenchOptions
from fa4gen.config.load import load_mapping
from fa4gen.designs.common.candidates import changed
from fa4gen.errors import Fa4genError
from fa4gen.runtime.timing import TimingProtocol
from fa4gen.tune.gemm_family import GEMM
from fa4gen.tune.search.timer import GpuTimer

pytestmark = pytest.mark.gpu

QUICK = BenchOptions(
    parse_sizes("1k,2kx1kx520"), rounds=2, protocol=TimingProtocol(0.002, 0.01), family="gemm"
)


@pytest.fixture(scope="module")
def built():
    from fa4gen.config.find import find_configs
    from fa4gen.verify.build import build_kernel

    names = ("gemm_bf16_sm90", "gemm_bf16_residual_sm90", "gemm_bf16_bias_gelu_sm90")
    kernels = [build_kernel(str(find_configs([name])[0])) for name in names]
    assert all(kernel.compiled is not None for kernel in kernels)
    return [(kernel.plan, kernel.compiled) for kernel in kernels]


def test_kernels_are_timed_beside_their_peers(gpu, built) -> None:
    peers = find_gemm_peers()
    bench = Bench(QUICK, peers.found, built)
    for plan, compiled in built:
        result = bench.time_kernel(plan, compiled)
        assert [size.size.word for size in result.sizes] == ["1k", "2kx1kx520"]
        expected = {peer.label(plan) for peer in peers.found if peer.suits(plan)}
        for size in result.sizes:
            assert size.left_out == {}
            assert set(size.peers) == expected
            assert 1 < size.tflops(size.ours) < 1000
            assert 0 < size.error < 2.0**-8
            assert (size.without is not None) == (plan.residual == "matrix")


@pytest.fixture(scope="module")
def scaled():
    from fa4gen.callables import compile_config

    blocks = {"kernel": "gemm", "arch": "sm_90a", "scales": {"a": "1x128", "b": "128x128"}}
    lines = {"a": "1x128", "b": "1x128"}
    configs = {
        "blocks": {**blocks, "dtype": "fp8_e4m3"},
        "narrow": {**blocks, "dtype": "fp8_e4m3", "BN": 64},
        "lines": {**blocks, "dtype": "fp8_e4m3", "scales": lines},
        "bytes": {**blocks, "dtype": "fp8_e4m3", "scales": {**lines, "dtype": "ue8m0"}},
        "types": {**blocks, "dtype": "fp8_e5m2", "b_dtype": "fp8_e4m3", "residual": "matrix"},
    }
    chosen = [compile_config(load_mapping(keys, name)) for name, keys in configs.items()]
    return {one.plan.name: (one.plan, one.kernel) for one in chosen}


@pytest.mark.parametrize("name", ["blocks", "lines", "bytes", "types"])
def test_kernels_with_scales_are_timed_beside_cublas(gpu, scaled, name) -> None:
    peers = find_gemm_peers()
    options = replace(QUICK, sizes=parse_sizes("1k,2kx1kx640"))
    plan, compiled = scaled[name]
    for size in Bench(options, peers.found).time_kernel(plan, compiled).sizes:
        assert 1 < size.tflops(size.ours) < 2000
        assert 0 < size.error < 2.0**-8
        if plan.residual == "matrix":
            assert not size.peers
        elif peers.found and "scaled_mm" not in size.left_out.get("cublas", ""):
            assert (set(size.peers), size.left_out) == ({"cublas"}, {})
            assert size.distances["cublas"] < 2.0**-7


@pytest.mark.parametrize("name", ["gemm_grouped_bf16_sm90", "gemm_grouped_masked_fp8_scaled_sm90"])
def test_uneven_groups_are_timed_with_the_read_floor(gpu, name) -> None:
    from fa4gen.bench.read_floor import ReadFloor
    from fa4gen.callables import compile_config
    from fa4gen.config.find import find_configs
    from fa4gen.config.load import load_config

    chosen = compile_config(load_config(find_configs([name])[0]))
    options = replace(
        QUICK, sizes=parse_sizes("8/900@1:512x1024,0+17+1+0+60:512x1024,0+700:512x1k")
    )
    peers = (*find_gemm_peers().found, ReadFloor())
    drawn, few, many = Bench(options, peers).time_kernel(chosen.plan, chosen.kernel).sizes
    assert [list(size.peers) for size in (drawn, few, many)] == [["floor"], ["floor"], []]
    assert few.flop == 2 * 78 * 512 * 1024
    for size in (drawn, few, many):
        assert size.error < 2.0**-7
        assert 0 < size.ours.median_ms < 1


def test_candidates_with_scales_are_timed_for_tune(gpu, scaled) -> None:
    timer = GpuTimer(GEMM, gpu.name)
    kernels = [scaled["blocks"], scaled["narrow"]]
    rounds = timer.prepare(kernels, GemmWorkload(64, 2112, 7168))
    assert rounds.ours == ("blocks", "narrow"), rounds.left_out
    taken = rounds.time([*rounds.ours, *rounds.peers], 0)
    assert all(1 < us < 1000 for us in taken.values())


def test_a_wrong_kernel_is_not_timed(gpu, built) -> None:
    plan, compiled = built[0]
    relu = changed(plan.config, {"activation": "relu(x)"})
    claims_relu = replace(plan, config=relu)
    with pytest.raises(Fa4genError, match="is wrong at 1024x1024x1024"):
        Bench(QUICK, ()).time_kernel(claims_relu, compiled)
