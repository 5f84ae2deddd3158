"""Which matrix products tuning measures: those of contiguous matrices that a call takes."""

from __future__ import annotations

import pytest

from fa4gen.bench.gemm_workload import GemmWorkload
from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError
from fa4gen.tune.contiguous import padded_problem, refusals
from fa4gen.tune.family import family_called

GEMM = family_called("gemm")


def plan_of(**keys: object):
    base = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16"}
    return build_plan(load_mapping({**base, **keys}, "probe").config)


@pytest.mark.parametrize(
    ("keys", "extents", "wrong", "padded"),
    [
        ({}, (16, 4096, 4095), "a", (16, 4096, 4096)),
        ({}, (17, 4100, 4096), "out", (17, 4104, 4096)),
        ({}, (1, 1, 4095), "", None),
        ({}, (1, 4096, 4095), "b", (1, 4096, 4096)),
        ({"a_major": "m"}, (15, 64, 33), "a", (16, 64, 40)),
        ({"b_major": "n"}, (15, 60, 32), "b", (15, 64, 32)),
        ({"dtype": "fp8_e4m3"}, (16, 64, 40), "a", (16, 64, 48)),
        ({"out_dtype": "fp32"}, (16, 4, 8), "", None),
        ({"residual": "matrix"}, (1, 7, 8), "", None),
        ({"residual": "row"}, (16, 8, 8), "", None),
        ({"residual": "column"}, (7, 8, 8), "", None),
        ({"arch": "sm_100a", "dtype": "fp8_e4m3", "scales": "mxfp8"}, (16, 64, 128), "", None),
        (
            {"arch": "sm_100a", "dtype": "fp4_e2m1", "scales": "nvfp4"},
            (16, 64, 48),
            "a",
            (16, 64, 64),
        ),
    ],
    ids=str,
)
def test_rows_begin_at_multiples_of_16_bytes(keys, extents, wrong, padded) -> None:
    plan, problem = plan_of(**keys), GemmWorkload(*extents, 1)
    found = refusals(plan, problem)
    assert {line.partition(":")[0] for line in found[:1]} == ({wrong} if wrong else set())
    if padded is None:
        GEMM.refuse_problem(plan, problem)
        return
    with pytest.raises(ConfigError, match="no call takes such contiguous matrices"):
        GEMM.refuse_problem(plan, problem)
    assert padded_problem(plan, problem) == GemmWorkload(*padded, 1)
    assert not refusals(plan, GemmWorkload(*padded, 1))


def test_matrices_of_a_batch_begin_at_multiples_of_16_bytes() -> None:
    plan = plan_of()
    assert not refusals(plan, GemmWorkload(1, 1, 12, 1))
    assert refusals(plan, GemmWorkload(1, 1, 12, 2))


@pytest.mark.parametrize("groups", ["offsets", "masked"])
@pytest.mark.parametrize("residual", ["none", "row", "matrix"])
@pytest.mark.parametrize("batch", [1, 3])
def test_equal_groups_are_the_matrices_of_a_batch(groups: str, residual: str, batch: int) -> None:
    plan = plan_of(groups=groups, residual=residual)
    assert not refusals(plan, GemmWorkload(10, 72, 64, batch))
    (message,) = refusals(plan, GemmWorkload(10, 72, 60, batch))[:1]
    assert message.startswith("a: expected a stride")


def test_a_call_with_offsets_is_a_problem_of_its_rows_on_average() -> None:
    key = (100, 64), (7, 64, 72), "bshd"
    assert GEMM.problem_of_call(plan_of(groups="offsets"), key) == GemmWorkload(15, 72, 64, 7)
    key = (7, 20, 64), (7, 64, 72), "bshd"
    assert GEMM.problem_of_call(plan_of(groups="masked"), key) == GemmWorkload(20, 72, 64, 7)


def test_sums_by_group_are_no_part_of_tunes_problems() -> None:
    plan = plan_of(groups="k_offsets", a_major="m", b_major="n")
    with pytest.raises(ConfigError, match="passes no sums over the rows of groups yet"):
        GEMM.refuse_problem(plan, GemmWorkload(64, 64, 64, 1))
