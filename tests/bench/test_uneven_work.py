"""Products of uneven groups in bench: NumPy in place of CuPy, and a kernel by definition."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest

from fa4gen.bench.gemm_family import GEMM
from fa4gen.bench.gemm_workload import GemmWorkload, parse_sizes
from fa4gen.bench.group_counts import draw_counts, parse_counts
from fa4gen.bench.report import config_table, results_data, rows_of_groups
from fa4gen.bench.run import Bench, BenchOptions
from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError, Fa4genError
from tests.bench.fakes import COMPILED, put_on_numpy
from tests.bench.scaled_kernel import numbers_of
from tests.bench.test_gemm_work import FakePeer

if TYPE_CHECKING:
    from collections.abc import Callable

HOPPER = {"kernel": "gemm", "arch": "sm_90a"}
BLOCKS = {"a": "1x128", "b": "128x128"}
CONFIGS: dict[str, dict[str, Any]] = {
    "plain": {**HOPPER, "dtype": "bf16"},
    "b by n": {**HOPPER, "dtype": "bf16", "b_major": "n"},
    "matrix": {**HOPPER, "dtype": "bf16", "residual": "matrix", "out_dtype": "fp32"},
    "row": {**HOPPER, "dtype": "bf16", "residual": "row", "activation": "relu(x)"},
    "gated": {**HOPPER, "dtype": "bf16", "activation": "silu(gate) * up", "residual": "row"},
    "blocks": {**HOPPER, "dtype": "fp8_e4m3", "scales": BLOCKS},
    "mxfp8": {"kernel": "gemm", "arch": "sm_100a", "dtype": "fp8_e4m3", "scales": "mxfp8"},
}
KINDS = [(name, groups) for name in CONFIGS for groups in ("offsets", "masked")]
KINDS.remove(("mxfp8", "offsets"))  # whose atoms begin with groups
SIZES = "4/700@1:256x160,0+1+0+130+70+0:256x160"


def plan_of(name: str, groups: str = "offsets", **more: Any) -> Any:
    keys = {**CONFIGS[name], "groups": groups, **more}
    return build_plan(load_mapping(keys, name.replace(" ", "_")).config)


class GroupedKernel:
    """Multiplies group by group in float64; ``change`` and ``weights`` are mistakes."""

    change: ClassVar[Callable[[list[int]], list[int]]] = staticmethod(lambda places: places)
    weights: ClassVar[Callable[[Any], Any]] = staticmethod(lambda b: b)
    prepared: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, plan: Any, cubin: bytes) -> None:
        self._plan = plan

    def prepare(self, a, b, c=None, *, out, alpha, beta, **given):
        self.prepared.append({"a": a, "b": b, "c": c, "out": out, **given})
        plan = self._plan
        left, right = a.astype(np.float64), b.astype(np.float64)
        if plan.scales:
            of_b = given["scale_b"]
            across = of_b if plan.scales[1].in_atoms else of_b.swapaxes(-1, -2)
            rows_of_b = np.ascontiguousarray(b.swapaxes(-1, -2))
            left = numbers_of(plan.scales[0], plan.dtype, a, given["scale_a"])
            right = numbers_of(plan.scales[1], plan.b_dtype, rows_of_b, across).swapaxes(-1, -2)
        right = type(self).weights(right)

        def launch() -> None:
            for group, at in enumerate(self._places(given)):
                x = alpha * (left[at] @ right[group])
                if plan.gated:
                    x += beta * c[group]
                    gate, up = np.split(x, 2, -1)
                    out[at] = gate / (1 + np.exp(-gate)) * up
                    continue
                if c is not None:
                    x += beta * (c[at] if plan.c.is_matrix else c[group]).astype(np.float64)
                out[at] = np.maximum(x, 0) if plan.activation else x

        return launch

    def _places(self, given: dict[str, Any]) -> list[Any]:
        if self._plan.groups == "masked":
            counts = type(self).change(given["row_counts"].tolist())
            return [(group, slice(0, count)) for group, count in enumerate(counts)]
        offsets = type(self).change(given["row_offsets"].tolist())
        return [slice(*ends) for ends in pairwise(offsets)]


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.setattr("fa4gen.runtime.gemm.GemmKernel", GroupedKernel)
    monkeypatch.setattr(GroupedKernel, "prepared", [])
    put_on_numpy(monkeypatch)

    def make(sizes: str, *peers: Any) -> Bench:
        return Bench(BenchOptions(parse_sizes(sizes), rounds=1, family="gemm"), peers)

    return make


@pytest.mark.parametrize(("name", "groups"), KINDS)
def test_a_kernel_by_the_definition_is_right(bench, name: str, groups: str) -> None:
    plan = plan_of(name, groups)
    result = bench(SIZES, FakePeer("cublas")).time_kernel(plan, COMPILED)
    drawn, named = result.sizes
    counts = (0, 1, 0, 130, 70, 0)
    assert (drawn.flop, named.flop) == (2 * 700 * 256 * 160, 2 * 201 * 256 * 160)
    for size in result.sizes:
        assert size.error < {"fp32": 1e-6, "bf16": 2.0**-8}[plan.out_dtype]
        assert (dict(size.peers), list(size.left_out)) == ({}, ["cublas"])
    given = GroupedKernel.prepared[1]
    if groups == "masked":
        assert given["row_counts"].tolist() == list(counts)
        assert given["a"].shape == (6, 130, 160)
    else:
        assert given["row_offsets"].tolist() == [0, 0, 1, 1, 131, 201, 201]
        assert given["a"].shape == (201, 160)
    assert given["b"].shape == (6, 160, 256)
    ends = given.get("row_counts", given.get("row_offsets"))
    assert ends is not None
    assert ends.dtype == np.int32
    with np.errstate(invalid="ignore"):  # NaN is what was there before
        written = given["out"].astype(np.float64)
    rest = written[np.arange(130) >= np.array(counts)[:, None]] if groups == "masked" else written
    assert np.isnan(rest).all() == (groups == "masked"), "rows of no group stay as they are"


MISTAKES: dict[str, Callable[[list[int]], list[int]]] = {
    "all groups a row later": lambda ends: [0, *(one + 1 for one in ends[1:-1]), ends[-1]],
    "a group without rows has one": lambda ends: [0, 1, *ends[2:]],
    "the last group is cut": lambda ends: [*ends[:-1], ends[-1] - 1],
}


@pytest.mark.parametrize("name", MISTAKES)
def test_rows_of_a_neighbour_are_seen(bench, monkeypatch, name: str) -> None:
    monkeypatch.setattr(GroupedKernel, "change", staticmethod(MISTAKES[name]))
    with pytest.raises(Fa4genError, match=r"wrong at 0\+40\+130\+70:256x160"):
        bench("0+40+130+70:256x160").time_kernel(plan_of("plain"), COMPILED)


@pytest.mark.parametrize("groups", ["offsets", "masked"])
def test_weights_of_the_group_before_are_seen(bench, monkeypatch, groups: str) -> None:
    monkeypatch.setattr(GroupedKernel, "weights", staticmethod(lambda b: np.roll(b, 1, 0)))
    with pytest.raises(Fa4genError, match=r"from float64 is"):
        bench("4/700@1:256x160").time_kernel(plan_of("plain", groups), COMPILED)


def test_a_row_that_a_masked_kernel_leaves_out_is_seen(bench, monkeypatch) -> None:
    less = staticmethod(lambda counts: [max(0, count - 1) for count in counts])
    monkeypatch.setattr(GroupedKernel, "change", less)
    with pytest.raises(Fa4genError, match="512 elements of its output are not written"):
        bench("0+40+130:256x160").time_kernel(plan_of("plain", "masked"), COMPILED)


def test_few_rows_are_timed_by_the_bytes_that_have_to_be_read(bench) -> None:
    plan = plan_of("plain")
    sizes = "3+0+17:256x160,4x32:256x160,0+300:256x160,4x300:256x160"
    few, equal, many, all_many = bench(sizes).time_kernel(plan, COMPILED).sizes
    assert few.read_bytes == 2 * 160 * (20 + 2 * 256), "no weights of a group without rows"
    assert equal.read_bytes == 2 * 160 * (4 * 32 + 4 * 256)
    assert (few.unit, equal.unit) == ("GB/s", "GB/s")
    assert (many.read_bytes, all_many.read_bytes) == (0, 0)
    assert many.unit == "TFLOP/s"


@pytest.mark.parametrize("groups", ["offsets", "masked"])
@pytest.mark.parametrize("size", ["3+0+17:256x160", "4x32:256x160"])
def test_the_read_floor_has_as_many_bytes(bench, groups: str, size: str) -> None:
    from fa4gen.bench.gpu_arrays import RandomNumbers

    del bench  # which puts bench on NumPy
    plan, (workload,) = plan_of("plain", groups), parse_sizes(size)
    work = GEMM.work(plan, workload, RandomNumbers(0))
    assert work.read_memory().nbytes == work.read_bytes > 0


def test_the_counts_are_in_the_table_and_the_file(bench) -> None:
    options = BenchOptions(parse_sizes("32/600@5:256x160,4x300:256x160"), family="gemm")
    result = bench("32/600@5:256x160,4x300:256x160").time_kernel(plan_of("plain"), COMPILED)
    counts = draw_counts(32, 600, 5)
    table = config_table(result)
    assert [row[:3] for row in table.rows] == [
        ("32/600@5", "256", "160"),
        ("4 x 300", "256", "160"),
    ]
    assert rows_of_groups(result) == (f"32/600@5: rows {', '.join(map(str, counts))}",)
    data = results_data([result], options, date="", gpu={}, versions={})
    drawn, equal = data["configs"][0]["sizes"]
    assert drawn["counts"] == list(counts)
    assert (drawn["rows"], drawn["batch"], drawn["m"]) == (600, 32, 19)
    assert "counts" not in equal
    assert parse_sizes(drawn["word"])[0].group_rows == counts, "a figure can be repeated"


def test_draws_follow_from_the_seed() -> None:
    assert draw_counts(8, 100, 0) == draw_counts(8, 100, 0)
    assert draw_counts(8, 100, 0) != draw_counts(8, 100, 1)
    assert draw_counts(4, 10, 3) == (2, 4, 1, 3)
    for seed in range(20):
        counts = draw_counts(64, 4096, seed)
        assert sum(counts) == 4096
        assert max(counts) > 2 * 64, "uneven"
    assert 0 in draw_counts(64, 64, 0), "some groups have no rows"


def test_logarithms_of_sizes_are_normal() -> None:
    counts = [one for seed in range(30) for one in draw_counts(32, 1 << 16, seed)]
    logs = np.log(np.array(counts, np.float64))
    assert logs.std() == pytest.approx(1, abs=0.1)
    centred = (logs - logs.mean()) / logs.std()
    assert abs((centred**3).mean()) < 0.3


def test_words_of_uneven_groups() -> None:
    drawn, seeded, named = parse_sizes("32/8k:4kx7k, 32/8192@7:4096x7168,0+1k+0:64x32")
    assert [one.word for one in (drawn, seeded, named)] == [
        "32/8192@0:4kx7k", "32/8192@7:4kx7k", "0+1024+0:64x32",
    ]  # fmt: skip
    assert parse_sizes(",".join(one.word for one in (drawn, seeded, named))) == (
        drawn, seeded, named,
    )  # fmt: skip
    assert (named.rows, named.m, named.batch, named.heights) == (1024, 342, 3, {0: 2, 1024: 1})
    assert named.at == "0+1024+0:64x32"
    assert named.extents == {
        "word": "0+1024+0:64x32", "batch": 3, "m": 342, "n": 64, "k": 32, "rows": 1024,
        "counts": [0, 1024, 0],
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["0+0:64x32", "0/8:64x32", "8/0:64x32", "8/8@:64x32", "3+4", "3+4:64", "3+4:64x32x16",
     "3+-1:64x32", "3+:64x32", "70000/9:64x32", "8/8@1"],
)  # fmt: skip
def test_words_that_are_no_groups(text: str) -> None:
    with pytest.raises(ConfigError, match=r"is not a size of a matrix product[^$]*32/8192@0"):
        parse_sizes(text)


def test_a_kernel_without_groups_is_refused(bench) -> None:
    plan = build_plan(load_mapping(CONFIGS["plain"], "plain").config)
    with pytest.raises(ConfigError, match=r"3\+4:64x32: plain multiplies matrices of equal rows"):
        bench("3+4:64x32").time_kernel(plan, COMPILED)
    scattered = plan_of("plain", out_rows="scattered")
    with pytest.raises(ConfigError, match="bench passes no places of scattered rows"):
        bench("3+4:64x32").time_kernel(scattered, COMPILED)


def test_equal_rows_that_are_named_are_the_same_problem() -> None:
    plan = plan_of("blocks")
    counts = parse_counts("40+40+40")
    assert counts is not None
    named, (equal,) = GemmWorkload.of_counts(counts, 256, 160), parse_sizes("3x40:256x160")
    assert named.flop == equal.flop
    assert named.bytes_moved(plan) == equal.bytes_moved(plan)
    assert named.bytes_read(plan) == equal.bytes_read(plan)
