"""Which matrix products tuning measures: those of contiguous matrices that a call takes."""

from __future__ import annotations

import pytest

from fa4gen.bench.gemm_workload import GemmWorkload
from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError
from fa4gen.tune.contiguous import padded_problem, refusals
from fa4gen.tune.family import family_called
from fa4gen.tune.model.chips import chip_for
from fa4gen.tune.search.possible import refuse_impossible

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
        ({"output_scales": "amax"}, (16, 64, 64), "", None),
        ({"output_scales": "amax", "groups": "masked"}, (16, 64, 64), "", None),
        (
            {"arch": "sm_100a", "output_scales": "nvfp4", "output_scale_order": "arranged"},
            (16, 48, 64),
            "out",
            (16, 64, 64),
        ),
        ({"arch": "sm_100a", "output_scales": "nvfp4"}, (16, 33, 64), "b", (16, 64, 64)),
        (
            {"arch": "sm_100a", "output_scales": "nvfp4", "activation": "silu(gate) * up"},
            (16, 64, 64),
            "",
            None,
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


@pytest.mark.parametrize("groups", ["offsets", "masked"])
@pytest.mark.parametrize("residual", ["none", "row", "matrix"])
def test_uneven_groups_are_problems_of_kernels_with_groups(groups: str, residual: str) -> None:
    plan, problem = plan_of(groups=groups, residual=residual), GEMM.parse_problem("0+9+31:72x64")
    GEMM.refuse_problem(plan, problem)
    assert GEMM.word(problem) == "0+9+31:72x64"
    assert GEMM.details(problem) == "rows 0, 9, 31"
    assert GEMM.flop(plan, problem) == 2 * 40 * 72 * 64
    rows = {"offsets": 14, "masked": 31}[groups]
    assert GEMM.call_extents(plan, problem) == {"m": rows, "n": 72, "k": 64, "batch": 3}
    shape = (40, 64) if groups == "offsets" else (3, 31, 64)
    of_call = GEMM.problem_of_call(plan, (shape, (3, 64, 72), "bshd"))
    assert GEMM.extents(of_call) == GEMM.call_extents(plan, problem)
    with pytest.raises(
        ConfigError, match=r"0\+9\+31:72x60: no call takes such contiguous"
    ) as error:
        GEMM.refuse_problem(plan, GEMM.parse_problem("0+9+31:72x60"))
    assert "Give 0+9+31:72x64" in error.value.problems[0].remedy
    with pytest.raises(ConfigError, match="not uneven groups"):
        GEMM.refuse_problem(plan_of(), problem)


def test_draws_that_calls_do_not_tell_apart_are_refused() -> None:
    plan = plan_of(groups="offsets")
    drawn, other, more = map(GEMM.parse_problem, ("8/800@0:72x64", "8/800@1:72x64", "8/1600:72x64"))
    refuse_impossible(plan, (drawn, more), "")
    words = "8/800@0:72x64 and 8/800@1:72x64: calls of both have arrays of the same shapes"
    with pytest.raises(ConfigError, match=words):
        refuse_impossible(plan, (drawn, other, more), "")


def test_the_model_counts_the_tiles_of_each_group() -> None:
    plan, chip = plan_of(groups="offsets"), chip_for("sm_90a")
    rows = plan.tile_rows
    words = f"{rows}+{rows}+{rows}+{rows}", f"{4 * rows - 3}+1+1+1", f"0+0+0+{4 * rows}"
    even, uneven, one = (
        GEMM.predict(plan, GEMM.parse_problem(f"{word}:4096x4096"), chip) for word in words
    )
    assert (even.tiles, uneven.tiles) == (64, 112)
    assert one.tiles == even.tiles
    assert one.memory_bytes < even.memory_bytes, "weights of one group"
    equal = GEMM.predict(plan, GEMM.parse_problem(f"4x{rows}:4096x4096"), chip)
    assert equal == even
