"""The C launcher and fa4gen.runtime make the same launch of the same problem, byte for byte."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.runtime.attention import LOG2_E
from fa4gen.runtime.parameters import to_bytes
from fa4gen.vendoring.binding import Scales
from fa4gen.vendoring.names import with_prefix
from tests.vendoring.launcher.attention_problems import WORKSPACE, plain_problem
from tests.vendoring.launcher.both import WAYS, CLauncher, build_launcher, compare, python_outcome
from tests.vendoring.launcher.families import problems_of
from tests.vendoring.launcher.gemm_problems import plain_problem as plain_product
from tests.vendoring.launcher.shipped import PREFIX, shipped_plans, write_launcher

MULTIPROCESSORS = st.one_of(st.sampled_from((132, 148)), st.integers(1, 148))
every_kernel = pytest.mark.parametrize("name", shipped_plans())


def examples(count: int) -> settings:
    """The launcher is the same for all examples of a test."""
    return settings(max_examples=count, suppress_health_check=[HealthCheck.function_scoped_fixture])


def check(data, launcher, name, kinds) -> None:
    """Launch a problem by both, by C in all ways; ``kinds`` is the strategy's name."""
    check_plan(data, launcher, shipped_plans()[name], kinds)


def check_plan(data, launcher, plan, kinds) -> None:
    problem = data.draw(getattr(problems_of(plan), kinds)(plan))
    multiprocessors = data.draw(MULTIPROCESSORS)
    arguments = problem.python_arguments(plan)
    expected = python_outcome(plan, arguments, multiprocessors, WORKSPACE)
    for way in WAYS:
        compare(expected, launcher.outcome(plan, problem.c_args(), multiprocessors, way))


@every_kernel
@given(data=st.data())
@examples(3)
def test_sound_problems_make_the_same_launch(name, launcher, data) -> None:
    check(data, launcher, name, "sound_problems")


@every_kernel
@given(data=st.data())
@examples(6)
def test_what_is_refused_is_refused_by_both_for_the_same_argument(name, launcher, data) -> None:
    check(data, launcher, name, "any_problems")


@pytest.mark.parametrize("name", ["d192_128_ragged_causal_bf16", "d128_ragged_causal_bf16"])
def test_rows_of_no_sequence_have_a_log_sum_exp_too(name, launcher) -> None:
    """A ragged batch has the rows of all sequences, which may be none of them."""
    plan = shipped_plans()[name]
    plain = plain_problem(plan, softmax_scale=1.0)
    problem = replace(plain, batch=0, arrays={**plain.arrays, "lse": 0})
    expected = python_outcome(plan, problem.python_arguments(plan), 132, WORKSPACE)
    assert expected.arguments == {"lse"}
    compare(expected, launcher.outcome(plan, problem.c_args(), 132))


@pytest.mark.parametrize("name", ["d64_dense_small_bf16", "d128_causal_softcap_bf16"])
def test_every_softmax_scale_is_rounded_alike(name, launcher) -> None:
    """One kernel takes it times log2(e), the other as it is: a double until the end."""
    chance = random.Random(name)
    plan = shipped_plans()[name]
    row = next(row for row in plan.parameters if row.name.startswith("softmax_scale"))
    place = plan.parameters.index(row)
    for _ in range(1000):
        scale = 2 ** chance.uniform(-125.9, 125.9)
        problem = plain_problem(plan, softmax_scale=scale)
        made = launcher.outcome(plan, problem.c_args(), 132)
        expected = scale * LOG2_E if row.name == "softmax_scale_log2" else scale
        assert made.parameters[place] == to_bytes("float", expected), scale


@pytest.mark.parametrize("alpha", [0.0, -0.0, 1e-60, 1e-40])
def test_what_alpha_multiplies_is_left_out_by_both_where_it_is_0(alpha, launcher) -> None:
    plan = shipped_plans()["gemm_bf16_residual_sm90"]
    problem = plain_product(plan, alpha=alpha)
    made = launcher.outcome(plan, problem.c_args(), 132)
    compare(python_outcome(plan, problem.python_arguments(plan), 132, WORKSPACE), made)
    place = [row.name for row in plan.parameters].index("k")
    assert made.parameters[place] == to_bytes("int32", 256 if alpha == 1e-40 else 0)


CONFIG = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 64}
LIMITED = {
    "tree": {"mask": "tree"},
    "causal": {"mask": "causal"},
    "scored": {"mask": "causal", "score": "score + 7 * query - 7 * key"},
    "sequences": {"score": "score + head + batch", "batching": "ragged"},
}
"""Masks and scores, of which some tell few rows apart."""
PLANS = {
    name: with_prefix(build_plan(load_mapping({**CONFIG, **keys}, name).config), PREFIX)
    for name, keys in LIMITED.items()
}
MOST = 2**28
"""Places that expressions compute with."""


@pytest.fixture(scope="module")
def limited(tmp_path_factory) -> CLauncher:
    """A folder with a kernel for each of LIMITED."""
    return build_launcher(write_launcher(tmp_path_factory.mktemp("limits") / "acme", PLANS))


@pytest.mark.parametrize(
    ("name", "changes", "argument"),
    [
        ("tree", {"query_rows": 32}, None),
        ("tree", {"query_rows": 33}, "query"),
        ("tree", {"key_rows": MOST + 1, "query_rows": 1}, "key"),
        ("scored", {"query_rows": MOST + 1}, "query"),
        ("scored", {"key_rows": MOST + 1}, "key"),
        ("scored", {"batch": MOST + 1}, "query"),
        ("scored", {"query_heads": MOST + 4, "key_heads": 4}, "query"),
        ("sequences", {"batch": MOST + 1}, "query_offsets"),
        ("causal", {"key_rows": MOST + 1}, None),
    ],
)
def test_what_an_expression_cannot_compute_with_is_refused(limited, name, changes, argument):
    plan = PLANS[name]
    problem = replace(plain_problem(plan), **changes)
    expected = python_outcome(plan, problem.python_arguments(plan), 132, WORKSPACE)
    assert argument in getattr(expected, "arguments", {None})
    found = limited.outcome(plan, problem.c_args(), 132)
    compare(expected, found)
    if name == "tree" and argument == "query":
        assert "at most those that its mask tells apart" in found.words


BLACKWELL = {"kernel": "gemm", "arch": "sm_100a"}
MXFP8 = {**BLACKWELL, "dtype": "fp8_e4m3", "scales": "mxfp8"}
WRITTEN = {"output_scales": "mxfp8", "output_scale_order": "arranged"}
ATOMS = {
    "written": {**MXFP8, **WRITTEN},
    "masked": {**MXFP8, **WRITTEN, "groups": "masked"},
    "offsets": {**MXFP8, **WRITTEN, "groups": "offsets"},
    "read": {**MXFP8, "groups": "offsets", "residual": "matrix"},
    "fours": {
        **BLACKWELL, "dtype": "fp4_e2m1", "scales": "nvfp4", "groups": "masked",
        "output_scales": "nvfp4", "output_scale_order": "arranged",
    },
    "from bf16": {**BLACKWELL, **WRITTEN, "groups": "offsets", "dtype": "bf16"},
    "from rows": {**MXFP8, **WRITTEN, "groups": "offsets", "scale_order": "row_major"},
}  # fmt: skip
"""Scales in atoms that are written, or that groups begin."""
ATOM_PLANS = {
    name: with_prefix(build_plan(load_mapping(keys, name.replace(" ", "_")).config), PREFIX)
    for name, keys in ATOMS.items()
}


@pytest.fixture(scope="module")
def atoms(tmp_path_factory) -> CLauncher:
    """A folder with a kernel for each of ATOMS."""
    return build_launcher(write_launcher(tmp_path_factory.mktemp("atoms") / "acme", ATOM_PLANS))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"data": None}, "out_scales: expected the scales of the output"),
        ({"data": (13 << 40) + 2}, "out_scales: expected an address .* of 4 for atoms"),
        ({"stride": 2}, "out_scales: expected strides .* in multiples of 4 bytes"),
        ({"k_stride": -512}, "out_scales: expected strides .* none below 0"),
        ({"k_stride": 256}, "out_scales: expected memory that nothing else of the call shares"),
    ],
)
@pytest.mark.parametrize("name", ["written", "offsets"])
def test_atoms_that_cannot_be_written_are_refused(atoms, name, changes, words) -> None:
    plan = ATOM_PLANS[name]
    problem = plain_product(plan)
    one = problem.written.out_scales
    fields = {key: getattr(one, key) for key, _ in Scales._fields_} | changes
    problem = replace(problem, written=replace(problem.written, out_scales=Scales(**fields)))
    expected = python_outcome(plan, problem.python_arguments(plan), 132, WORKSPACE)
    assert expected.arguments == {"out_scales"}
    found = atoms.outcome(plan, problem.c_args(), 132)
    compare(expected, found)
    assert re.search(words, found.words)


@pytest.mark.parametrize("name", ATOMS)
@pytest.mark.parametrize("kinds", ["sound_problems", "any_problems"])
@given(data=st.data())
@examples(40)
def test_atoms_are_written_and_begun_by_groups_alike(name, atoms, kinds, data) -> None:
    check_plan(data, atoms, ATOM_PLANS[name], kinds)


@pytest.mark.seeds
@every_kernel
@given(data=st.data())
@examples(500)
def test_many_problems_are_launched_or_refused_alike(name, launcher, data) -> None:
    kinds = data.draw(st.sampled_from(("sound_problems", "any_problems", "any_problems")))
    check(data, launcher, name, kinds)
