"""The tile schedule in C, over many more sizes than whole launches are compared for."""

from __future__ import annotations

import ctypes
import random

import pytest

from fa4gen.runtime.gemm_schedule import GemmSize, plan_gemm_schedule
from fa4gen.runtime.schedule import INT32_MAX, ProblemSize, plan_schedule
from tests.vendoring.launcher.shipped import shipped_plans

ATTENTION = (
    "d128_causal_bf16",  # short tiles against padding
    "d128_dense_bf16",  # short tiles against a long last round
    "d64_band_fp16",
    "d128_gqa4_causal_bf16",  # rows of four heads together
    "d128_causal_pair_bf16",
    "d512_causal_bf16",
    "fa4_d128_causal_bf16",
    "depth512_causal_bf16",
    "decode_d128_bf16",
    "decode_d128_splits_bf16",
    "fa4_decode_mla_bf16",  # a share is a pair's
)
PRODUCTS = (
    "gemm_bf16_sm90",
    "gemm_fp8_residual_sm90",
    "gemm_fp16_three_warpgroups_sm90",
    "gemm_bf16_pair_dynamic",
    "gemm_bf16_pair_short",
)
SIX = ctypes.c_int64 * 6


@pytest.fixture
def schedule(launcher):
    """The function inside the library that plans for a kernel: its numbers from a size."""
    library = ctypes.CDLL(str(launcher.library))

    def plan_in_c(name, family, size, multiprocessors):
        kernel = getattr(library, f"{shipped_plans()[name].name}_kernel")
        kernel.restype = ctypes.c_void_p
        made = SIX()
        function = getattr(library, f"acme_test_{family}_schedule")
        function(
            ctypes.c_void_p(kernel()),
            (ctypes.c_int64 * len(size))(*size),
            ctypes.c_int64(multiprocessors),
            made,
        )
        return tuple(made)[: 5 if family == "gemm" else 6]

    return plan_in_c


def some(chance: random.Random, most: int) -> int:
    """Small numbers as often as large ones."""
    return min(most, int(2 ** chance.uniform(0, most.bit_length())))


@pytest.mark.parametrize("name", ATTENTION)
def test_attention(schedule, name) -> None:
    chance = random.Random(name)
    plan = shipped_plans()[name]
    for multiprocessors in [*range(1, 149), *chance.choices(range(1, 149), k=250)]:
        group, key_heads = some(chance, 16), some(chance, 64)
        batch, rows, keys = some(chance, 300), some(chance, 150_000), some(chance, 10**7)
        size = ProblemSize(batch, key_heads * group, group, rows, keys)
        expected = plan_schedule(plan, size, multiprocessors)
        in_c = schedule(name, "attention", (batch, key_heads * group, group, rows, keys),
                        multiprocessors)  # fmt: skip
        if expected.num_tiles > INT32_MAX:
            assert in_c[3] > INT32_MAX
        else:
            assert in_c[:5] == (
                expected.num_short_tiles,
                expected.tiles_per_head,
                expected.heads_per_group,
                expected.num_tiles,
                expected.grid,
            ), (size, multiprocessors)
        if expected.largest_count > INT32_MAX:
            assert in_c[5] > INT32_MAX
        else:
            assert in_c[5] == expected.largest_count


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(schedule, name) -> None:
    chance = random.Random(name)
    plan = shipped_plans()[name]
    for multiprocessors in range(1, 149):
        sizes = (some(chance, 50), *(some(chance, 200_000) for _ in range(3)))
        expected = plan_gemm_schedule(plan, GemmSize(*sizes), multiprocessors)
        in_c = schedule(name, "gemm", sizes, multiprocessors)
        if expected.num_tiles > INT32_MAX:
            assert in_c[2] > INT32_MAX
        else:
            assert in_c == (
                expected.row_tiles,
                expected.column_tiles,
                expected.num_tiles,
                expected.group_rows,
                expected.grid,
            ), (sizes, multiprocessors)


@pytest.mark.parametrize("name", [*ATTENTION, *PRODUCTS])
def test_the_largest_problem_has_too_many_tiles(schedule, name) -> None:
    family = "attention" if name in ATTENTION else "gemm"
    made = schedule(name, family, (INT32_MAX, INT32_MAX, 1, INT32_MAX, INT32_MAX), 132)
    assert made[3 if family == "attention" else 2] > INT32_MAX
