"""The emulator in verify: shipped kernels are clean, and their mutants are found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fa4gen.config.find import find_configs
from fa4gen.verify.build import build_kernel
from fa4gen.verify.emulator import EmulatorBackend, plan_names
from fa4gen.verify.run import VerifyOptions, verify_built, verify_kernel
from tests.kernels.attention.sm90.test_mutants import MUTANTS, mutated
from tests.kernels.source_mutation import compiled_of
from tests.shipped import loaded

FEW = ("size/1", "ring/*", "gqa/3", "more_queries/*x17")
FEWER = ("ring/*",)
"""Where tiles are larger; `fa4gen verify` runs all."""


def verify(plan, compiled, *cases: str, seed: int = 1):
    options = VerifyOptions(seed, cases)
    return verify_kernel(plan, compiled, EmulatorBackend(plan.arch), options)


def messages(verdict) -> str:
    return "\n".join(
        f"{failure.check}: {failure.message}" for case in verdict.cases for failure in case.failures
    )


def without_dtype_twins(paths):
    """Return ``paths`` without those that differ from an earlier one in their dtype alone."""
    seen = set()
    for path in sorted(paths):
        keys = loaded(path).config.data()
        keys = {key: keys[key] for key in keys.keys() - {"name", "dtype", "out_dtype"}}
        if str(sorted(keys.items())) not in seen:
            seen.add(str(sorted(keys.items())))
            yield path


SHIPPED = list(without_dtype_twins(find_configs(["attention"])))


def test_only_twins_are_left_out() -> None:
    names = {path.stem for path in SHIPPED}
    assert {"d128_causal_bf16", "fa4_d128_causal_bf16", "d128_causal_tma_store_fp16"} <= names
    assert not {"d128_causal_fp16", "fa4_d128_causal_fp8"} & names


@pytest.mark.compile
@pytest.mark.parametrize(
    "config",
    # Every sixth in each run; all of them with --many-seeds.
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.seeds] if i % 6 else [])
        for i, path in enumerate(SHIPPED)
    ],
)
def test_a_shipped_kernel_is_clean(config) -> None:
    built = build_kernel(str(config))
    cases = FEW if built.arch == "sm_90a" and built.plan.depth < 512 else FEWER
    verdict = verify(built.plan, built.compiled, *cases)
    assert verdict.passed, messages(verdict)
    assert (verdict.proof, verdict.num_passed) == ("emulated", len(cases))


@pytest.mark.compile
def test_two_processes_find_what_one_does() -> None:
    built = build_kernel("configs/attention/sm_90a/d64_dense_small_bf16.yaml")
    options = VerifyOptions(3, ("size/1", "size/64", "gqa/3", "more_queries/*x17"))
    backend = EmulatorBackend(built.arch)
    one = verify_built(built, options, backend)
    two = verify_built(built, options, backend, pick=EmulatorBackend, jobs=2)
    assert one.num_passed == 4
    assert [replace(verdict, seconds=0) for verdict in (one, two)] == [replace(one, seconds=0)] * 2


@pytest.mark.compile
@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_numbers_are_refused(name: str) -> None:
    config, pattern, replacement, cases = MUTANTS[name]
    kernel = mutated(config, pattern, replacement)
    verdict = verify(kernel.plan, compiled_of(kernel), cases)
    assert verdict.num_cases == 1
    assert not verdict.passed


WAITS_WRONG_PHASE = (
    r"const KeyRing ring\{base, kv\.producer\(\)\};",
    "const KeyRing ring{base, kv.consumer()};",
)
# name: config, what is replaced, by what, the expected report
SYNCHRONISATION = {
    "loader_waits_for_the_wrong_phase": (
        "d128_causal_bf16", *WAITS_WRONG_PHASE, ("deadlock", "key_empty[0]", "load"),
    ),
    "key_released_before_its_products_are_retired": (
        "d128_causal_bf16",
        r"    wgmma_wait<0>\(\);\n    pin\(scores\);\n    release\(keys\(\)\);",
        "    release(keys());\n    wgmma_wait<0>();\n    pin(scores);",
        ("race", "key", "wgmma"),
    ),
    "value_not_waited_for": (
        "d128_causal_bf16", r"\n    values\(\)\.wait_full\(\);[^\n]*(?=\n    constexpr)", "",
        ("race", "value"),
    ),
    "no_fence_before_the_output_is_stored": (
        "d128_causal_tma_store_fp16", r"\n  fence_proxy_async_shared\(\);[^\n]*", "",
        ("missing-proxy-fence",),
    ),
    "no_barrier_before_the_output_is_stored": (
        "d128_causal_tma_store_fp16",
        r"\n  named_barrier_sync\(kEpilogueBarrier \+ place\.warpgroup, 128\);", "", ("race",),
    ),
    "query_slot_reused_before_the_store_has_read_it": (
        "d128_causal_tma_store_fp16", r"\n    tma_store_wait_read\(\);[^\n]*", "", ("race",),
    ),
    "every_lane_releases_the_key": (
        "d128_causal_bf16",
        r"(void release\(const SlotRing& ring\) const \{\s+ring\.release_if)\([^;]*;",
        r"\1(true);", ("key_empty",),
    ),
    "too_few_bytes_expected": (
        "d128_causal_bf16", r"ring\.expect\(kKeyBytes\)", "ring.expect(kKeyBytes / 2)", (),
    ),
    "loader_keeps_its_registers": (
        "d128_causal_bf16", r"\n    decrease_registers<kProducerRegisters>\(\);", "",
        ("deadlock", "registers a thread"),
    ),
    "tile_slot_released_before_all_lanes_have_read_it": (
        "d128_causal_bf16", r"\n      __syncwarp\(\);(?=\n      ring\.release_if\()", "",
        ("race", "tile"),
    ),
}  # fmt: skip


@pytest.mark.compile
@pytest.mark.parametrize("name", SYNCHRONISATION)
def test_wrong_synchronisation_is_reported(name: str) -> None:
    check_synchronisation(name, [0])


@pytest.mark.seeds
@pytest.mark.parametrize("name", SYNCHRONISATION)
def test_wrong_synchronisation_is_reported_whatever_the_schedule(name: str) -> None:
    check_synchronisation(name, [1, 2])


def check_synchronisation(name: str, seeds: list[int]) -> None:
    config, pattern, replacement, words = SYNCHRONISATION[name]
    kernel = mutated(config, pattern, replacement)
    # one tile a CTA shows what goes wrong within one, not what goes wrong between two
    cases = ["tiles/many"] if "slot" in name else ["ring/*", "tiles/many"]
    for seed in seeds:
        verdict = verify(kernel.plan, compiled_of(kernel), *cases, seed=seed)
        assert not any(case.passed for case in verdict.cases)
        text = messages(verdict)
        assert all(word in text for word in words), text


def test_names_come_from_the_plan() -> None:
    built = build_kernel(str(find_configs(["d128_causal_bf16"])[0]))
    names = plan_names(built.plan)
    key_full = built.plan.barrier("key_full")
    assert names.of_offset(2048 + key_full.offset + 8, 1500) == "key_full[1]"
    assert names.of_threads(0, 0) == built.plan.roles[0].name


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["d128_causal_bf16", "d64_window_fp16", "d256_dense_bf16",
                                  "d128_causal_pair_bf16"])  # fmt: skip
def test_the_emulator_gives_what_the_gpu_gives(gpu, name: str) -> None:
    """One case on both: float32 sums may differ in order, so bits of the output may, too."""
    import numpy as np

    from fa4gen.verify.cases import emulated_cases
    from fa4gen.verify.gpu import GpuBackend
    from fa4gen.verify.inputs import make_inputs, make_rng
    from fa4gen.verify.memory import place, read_lse, read_out

    built = build_kernel(str(find_configs([name])[0]))
    plan = built.plan
    on_gpu = GpuBackend(plan.arch).load(plan, built.compiled)
    emulated = EmulatorBackend(plan.arch).load(plan, built.compiled)
    for case in emulated_cases(plan):
        inputs = make_inputs(case, plan.depth, plan.dtype, make_rng(3, case.name))
        memory = place(case, inputs, plan.dtype, lse=plan.lse)
        first, second = on_gpu.run(memory), emulated.run(memory)
        a, b = read_out(memory, first), read_out(memory, second)
        unit = 2.0**-7 if plan.dtype == "bf16" else 2.0**-10
        scale = np.abs(a).max(initial=1e-30)
        assert np.abs(a - b).max(initial=0) <= 2 * unit * scale, case.name
        if plan.lse:
            x, y = read_lse(memory, first), read_lse(memory, second)
            assert np.allclose(x, y, rtol=1e-5, atol=1e-4), case.name


@pytest.mark.compile
@pytest.mark.parametrize(
    "name",
    [
        "d64_dense_small_bf16",
        pytest.param("fa4_d64_causal_fp8", marks=pytest.mark.seeds),
        pytest.param("depth512_window_fp8", marks=pytest.mark.seeds),
        pytest.param("d512_causal_bf16", marks=pytest.mark.seeds),
        pytest.param("gemm_bf16_pair_short", marks=pytest.mark.seeds),
        pytest.param("gemm_bf16_short_sm90", marks=pytest.mark.seeds),
    ],
)
def test_one_case_goes_round_every_ring_twice(name: str) -> None:
    built = build_kernel(str(find_configs([name])[0]))
    verdict = verify(built.plan, built.compiled, "rings/*")
    assert verdict.passed, messages(verdict)
    assert verdict.exercise is not None
    assert {ring.name for ring in verdict.exercise.rings} == {r.name for r in built.plan.barriers}
    assert not verdict.exercise.rings_left
    # and a short one does not
    verdict = verify(built.plan, built.compiled, "size/*1")
    assert verdict.exercise is not None
    assert verdict.exercise.rings_left
