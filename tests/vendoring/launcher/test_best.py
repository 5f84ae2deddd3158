"""acme_best: the kernel with the problem's traits whose rounds of tiles cost least."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fa4gen.designs.common.hardware import runs_on
from fa4gen.runtime.schedule import ceil_div, resident_ctas
from fa4gen.vendoring.binding import Problem
from fa4gen.vendoring.standin import SimulatedDevice
from tests.vendoring.launcher.both import DEVICES_OF_A_COPY
from tests.vendoring.launcher.families import traits_of
from tests.vendoring.launcher.shipped import shipped_plans
from tests.vendoring.statuses import describe_status

every_kernel = pytest.mark.parametrize("name", shipped_plans())


def all_traits(plan):
    """Everything that a caller can ask for."""
    return (plan.kernel, plan.dtype, plan.out_dtype, *traits_of(plan).traits(plan))


def has_one_type(plan):
    """Whether its inputs have one type, and pages no scales, as those of every problem."""
    return plan.kernel != "attention" or (plan.kv_dtype == plan.dtype and not plan.has_page_scales)


def has_whole_tiles(plan, problem):
    """Whether the heads whose rows share a tile are of one key head."""
    if plan.kernel != "attention":
        return True
    return problem.query_heads // max(1, problem.key_heads) % plan.tile_heads == 0


def cost(plan, problem, multiprocessors):
    """Rounds of tiles times what a CTA computes of each."""
    ctas, work = traits_of(plan).tiles(plan, problem, multiprocessors)
    return ceil_div(ctas, resident_ctas(multiprocessors, plan.launch.cluster)) * work


def problem_for(library, plan, **extents):
    problem = Problem(struct_size=ctypes.sizeof(Problem))
    assert library.kernel_traits(library.kernel(plan.name).handle, ctypes.byref(problem)) == 0
    for field, value in extents.items():
        setattr(problem, field, value)
    return problem


def best(launcher, library, problem):
    """The status in words, and the kernel's name."""
    found = ctypes.c_void_p(1)
    launcher.stand_in.set_current(None)  # not looked at: the device is an argument
    status = library.best(launcher.ordinal, ctypes.byref(problem), ctypes.byref(found))
    if status:
        reason, argument = describe_status(status)
        assert found.value is None
        return f"{argument} {reason}"
    return library.kernel_name(found.value).decode()


@every_kernel
@given(data=st.data())
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_least_cost_among_those_with_the_traits_wins(name, launcher, data) -> None:
    plan = shipped_plans()[name]
    multiprocessors = data.draw(st.sampled_from((132, 148)))
    library = launcher.on(SimulatedDevice(plan.arch, multiprocessors))
    problem = problem_for(library, plan, **traits_of(plan).extents(data))

    rivals = [
        (cost(other, problem, multiprocessors), place, other_name)
        for place, (other_name, other) in enumerate(shipped_plans().items())
        if runs_on(other.arch, plan.hardware.runs_on[0])
        and all_traits(other) == all_traits(plan)
        and has_one_type(other)
        and has_whole_tiles(other, problem)
    ]
    # No problem names a mask that is a condition, nor another type of keys.
    named = rivals and (problem.mask or plan.kernel != "attention")
    expected = min(rivals)[2] if named else "PROBLEM NO_KERNEL"
    assert best(launcher, library, problem) == expected


CHANGES = (
    {"dtype": 4},
    {"out_dtype": 3},
    {"depth": 120},
    {"value_depth": 120},
    {"mask": 9},
    {"softcap": 3.0},
    {"lse": 0},
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_another_trait_is_another_kernel_or_none(launcher, change) -> None:
    plan = shipped_plans()["d128_causal_bf16"]
    library = launcher.on(SimulatedDevice("sm_90a", 132))
    sizes = {"batch": 1, "query_rows": 9, "key_rows": 9, "query_heads": 1, "key_heads": 1}
    problem = problem_for(library, plan, **sizes)
    assert best(launcher, library, problem) != "PROBLEM NO_KERNEL"
    problem = problem_for(library, plan, **sizes, **change)
    assert best(launcher, library, problem) == "PROBLEM NO_KERNEL"


@pytest.mark.parametrize(
    "change",
    [{"a_m_major": 1}, {"b_n_major": 1}, {"activation": b"tanh(x)"}, {"residual": 9}],
    ids=lambda change: next(iter(change)),
)
def test_another_trait_of_a_product_is_no_kernel(launcher, change) -> None:
    plan = shipped_plans()["gemm_bf16_bias_gelu_sm90"]
    library = launcher.on(SimulatedDevice("sm_90a", 132))
    sizes = {"batch": 1, "m": 9, "n": 9, "k": 9}
    assert best(launcher, library, problem_for(library, plan, **sizes)) == (
        "gemm_bf16_bias_gelu_sm90"
    )
    problem = problem_for(library, plan, **sizes, **change)
    assert best(launcher, library, problem) == "PROBLEM NO_KERNEL"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "gemm_fp8_scaled_"),
        ({"scale_a_rows": 0, "scale_b_rows": 0}, "gemm_fp8_"),
        ({"scale_b_rows": 1}, "PROBLEM NO_KERNEL"),
        ({"scales_ue8m0": 1}, "PROBLEM NO_KERNEL"),
        ({"scale_depth": 32}, "PROBLEM NO_KERNEL"),
        ({"scale_depth": 0}, "gemm_fp8_scaled_"),
        ({"scales_in_atoms": 1}, "PROBLEM NO_KERNEL"),
    ],
)
def test_scales_of_blocks_are_a_trait(launcher, change, expected) -> None:
    plan = shipped_plans()["gemm_fp8_scaled_sm90"]
    library = launcher.on(SimulatedDevice("sm_90a", 132))
    problem = problem_for(library, plan, batch=1, m=9, n=900, k=900, **change)
    assert best(launcher, library, problem).startswith(expected)
    if not change:  # of a header without blocks along k
        problem.struct_size = Problem.scale_depth.offset
        assert best(launcher, library, problem).startswith(expected)
    problem.struct_size = Problem.scale_a_rows.offset  # of a header without scales
    found = best(launcher, library, problem)
    assert found.startswith("gemm_fp8_")
    assert "scaled" not in found


def test_the_order_of_written_scales_is_a_trait(launcher) -> None:
    plan = shipped_plans()["gemm_mxfp8_out"]
    library = launcher.on(SimulatedDevice("sm_100a", 148))
    problem = problem_for(library, plan, batch=1, m=9, n=900, k=900)
    assert best(launcher, library, problem) == "gemm_mxfp8_out"
    problem.out_scales_in_atoms = 1
    assert best(launcher, library, problem) == "PROBLEM NO_KERNEL"
    problem.struct_size = Problem.out_scales_in_atoms.offset  # of a header without the order
    assert best(launcher, library, problem) == "gemm_mxfp8_out"


def test_fields_that_do_not_count_are_not_looked_at(launcher) -> None:
    library = launcher.on(SimulatedDevice("sm_90a", 132))
    sizes = {"batch": 1, "query_rows": 9, "key_rows": 9, "query_heads": 1, "key_heads": 1}
    plan = shipped_plans()["d128_causal_bf16"]
    expected = best(launcher, library, problem_for(library, plan, **sizes))
    unused = {"window_left": 7, "window_right": 9, "a_m_major": 1, "residual": 2}
    assert best(launcher, library, problem_for(library, plan, **sizes, **unused)) == expected
    plan = shipped_plans()["d128_window_bf16"]
    sizes["window_left"] = 5
    assert best(launcher, library, problem_for(library, plan, **sizes)) == "PROBLEM NO_KERNEL"
    plan = shipped_plans()["gemm_bf16_sm90"]
    products = {"batch": 1, "m": 9, "n": 9, "k": 9}
    none = best(launcher, library, problem_for(library, plan, **products))
    assert best(launcher, library, problem_for(library, plan, **products, residual=0)) == none


def test_the_same_problem_has_a_kernel_of_each_architecture(launcher) -> None:
    hopper = shipped_plans()["gemm_bf16_residual_sm90"]
    found = {}
    for arch, multiprocessors in (("sm_90a", 132), ("sm_100a", 148), ("sm_103a", 148)):
        library = launcher.on(SimulatedDevice(arch, multiprocessors))
        problem = problem_for(library, hopper, batch=1, m=4096, n=4096, k=4096)
        found[arch] = shipped_plans()[best(launcher, library, problem)]
    assert {arch: plan.arch for arch, plan in found.items()} == {arch: arch for arch in found}


def test_the_kernel_of_a_family_is_found_where_no_other_runs(launcher) -> None:
    plan = shipped_plans()["fa4_d128_causal_bf16_sm100f"]
    sizes = {"batch": 1, "query_rows": 4096, "key_rows": 4096, "query_heads": 8, "key_heads": 8}
    archs = {}
    for arch in ("sm_100a", "sm_103a", "sm_107a"):
        library = launcher.on(SimulatedDevice(arch, 148))
        found = best(launcher, library, problem_for(library, plan, **sizes))
        archs[arch] = shipped_plans()[found].arch
    assert archs["sm_107a"] == "sm_100f"
    assert all(arch in (its, "sm_100f") for its, arch in archs.items())


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"struct_size": 8}, "PROBLEM BAD_SIZE"),
        ({"family": 0}, "PROBLEM BAD_VALUE"),
        ({"batch": -1}, "PROBLEM BAD_EXTENT"),
        ({"query_rows": 2**31}, "PROBLEM BAD_EXTENT"),
        ({"key_heads": 3}, "PROBLEM BAD_HEADS"),
        ({"key_heads": 0}, "PROBLEM BAD_HEADS"),
        ({"batch": 2**31 - 1, "query_rows": 4096}, "PROBLEM NO_KERNEL"),
    ],
)
def test_what_is_no_problem(launcher, change, expected) -> None:
    library = launcher.on(SimulatedDevice("sm_90a", 132))
    plan = shipped_plans()["d128_causal_bf16"]
    sizes = {"batch": 1, "query_rows": 9, "key_rows": 9, "query_heads": 4, "key_heads": 2}
    problem = problem_for(library, plan, **{**sizes, **change})
    assert best(launcher, library, problem) == expected


def test_no_struct_or_no_device(launcher) -> None:
    library = launcher.on(SimulatedDevice("sm_90a", 132))
    plan = shipped_plans()["d128_causal_bf16"]
    problem = problem_for(library, plan, batch=1, query_heads=1, key_heads=1)
    found = ctypes.c_void_p()
    for arguments in ((None, ctypes.byref(found)), (ctypes.byref(problem), None)):
        assert describe_status(library.best(0, *arguments)) == ("IS_NULL", "PROBLEM")
    launcher.stand_in.set_devices(SimulatedDevice())
    status = library.best(DEVICES_OF_A_COPY, ctypes.byref(problem), ctypes.byref(found))
    assert describe_status(status) == ("DRIVER_ERROR", "101")
