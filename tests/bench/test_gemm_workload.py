from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fa4gen.bench.gemm_workload import (
    DEFAULT_SIZES,
    MOST_SETS,
    GemmWorkload,
    parse_sizes,
    problem_words,
)
from fa4gen.designs.common.gemm_scales import OperandScales
from fa4gen.errors import ConfigError


def sizes_of(element_bytes: int, out_bytes: int, residual: str = "none", **keys: Any) -> Any:
    """The part of a plan from which bytes are counted."""
    return SimpleNamespace(
        element_bytes=element_bytes, out_element_bytes=out_bytes, residual=residual,
        **{"elements_per_byte": 1, "scales": ()} | keys,
    )  # fmt: skip


BF16 = sizes_of(2, 2)


def test_sizes_are_cubes_or_triples() -> None:
    assert parse_sizes(" 2k,300, 8192X28672x8K,2048") == (
        GemmWorkload(2048, 2048, 2048),
        GemmWorkload(300, 300, 300),
        GemmWorkload(8192, 28672, 8192),
    )


def test_the_sizes_that_are_timed_unless_told() -> None:
    cubes = [GemmWorkload(size, size, size) for size in (2048, 4096, 8192, 16384)]
    assert parse_sizes(DEFAULT_SIZES) == (*cubes, GemmWorkload(8192, 28672, 8192))


def test_the_word_of_a_size_is_read_again() -> None:
    sizes = parse_sizes(DEFAULT_SIZES + ",100x1024x300,17,6x1kx1024x1k,1x17x17x17")
    words = [size.word for size in sizes]
    assert words == ["2k", "4k", "8k", "16k", "8kx28kx8k", "100x1kx300", "17", "6x1kx1kx1k"]
    assert parse_sizes(",".join(words)) == sizes


def test_a_batch_is_so_many_of_them() -> None:
    (size,) = parse_sizes("6x10x20x30")
    assert size == GemmWorkload(10, 20, 30, batch=6)
    assert size.flop == 6 * 12000
    matrix = sizes_of(1, 4, "matrix")
    assert size.bytes_moved(matrix) == 6 * (300 + 600 + 4 * 400)
    row = sizes_of(1, 4, "row")
    assert size.bytes_moved(row) == 6 * (300 + 600 + 4 * 200) + 4 * 20, "one row for all"


@pytest.mark.parametrize("text", ["", "2k,", "0", "-1", "1x2", "1x2x3x4x5", "1x2x0", "2m", "2000k"])
def test_sizes_that_are_none(text) -> None:
    with pytest.raises(ConfigError, match="is not a size of a matrix product"):
        parse_sizes(text)


def test_flop_and_bytes() -> None:
    size = GemmWorkload(10, 20, 30)
    assert size.flop == 12000
    assert size.bytes_moved(BF16) == 2 * (300 + 600 + 200)
    matrix = sizes_of(1, 4, "matrix")
    assert size.bytes_moved(matrix) == 300 + 600 + 4 * 400
    row = sizes_of(1, 4, "row")
    assert size.bytes_moved(row) == 300 + 600 + 4 * 220
    column = sizes_of(1, 4, "column")
    assert size.bytes_moved(column) == 300 + 600 + 4 * 210


def test_sets_take_turns_where_one_fits_in_l2() -> None:
    size = GemmWorkload(1024, 1024, 1024)
    one = size.bytes_moved(BF16)
    assert size.count_sets(BF16, one - 1) == 1
    for l2 in (one, 3 * one // 2, 3 * one):
        count = size.count_sets(BF16, l2)
        assert (count - 1) * one >= l2, "a set's others push it out"
    assert size.count_sets(BF16, 1000 * one) == MOST_SETS
    assert size.count_sets(BF16, 0) == 1


@pytest.mark.parametrize("k", [1, 2, 100, 2048, 28672])
def test_the_residual_is_as_large_as_the_product(k) -> None:
    scale = GemmWorkload(1, 1, k).residual_scale
    assert 0.7 < scale / k**0.5 < 1.42
    assert scale.hex().startswith("0x1.0000"), "a power of two: exact in every type"


def test_problems_in_words() -> None:
    facts = {
        "dtype": "bf16",
        "out_dtype": "bf16",
        "a_major": "k",
        "b_major": "k",
        "residual": "matrix",
        "activation": None,
    }
    assert problem_words(facts) == "bf16, residual"
    other = {"out_dtype": "fp32", "b_major": "n", "residual": "row", "activation": "max(x, 0)"}
    words = "bf16, fp32 out, A k-major, B n-major, bias, max(x, 0)"
    assert problem_words(facts | other) == words
    assert problem_words(facts | {"residual": "none"}) == "bf16, no residual"
    assert problem_words(facts | {"residual": "column"}) == "bf16, bias along m"


def test_elements_of_four_bits_are_half_a_byte() -> None:
    packed, whole = sizes_of(1, 2, elements_per_byte=2), sizes_of(1, 2)
    problem = GemmWorkload(64, 128, 256)
    assert problem.bytes_moved(whole) - problem.bytes_moved(packed) == 256 * (64 + 128) // 2


def test_scales_of_blocks_are_counted() -> None:
    rows = (
        OperandScales("a", "1x128", "fp32", 1, 128),
        OperandScales("b", "128x128", "ue8m0", 128, 128),
    )
    atoms = OperandScales("a", "nvfp4", "ue4m3", 1, 16, in_atoms=True)
    problem = GemmWorkload(100, 300, 520, batch=2)
    without = problem.bytes_moved(sizes_of(1, 2))
    assert problem.bytes_moved(sizes_of(1, 2, scales=rows)) - without == 2 * (4 * 100 * 5 + 3 * 5)
    assert problem.bytes_moved(sizes_of(1, 2, scales=(atoms,))) - without == 2 * 512 * 9


def test_scales_and_both_types_in_words() -> None:
    facts = {
        "dtype": "fp8_e4m3", "b_dtype": "fp8_e5m2", "out_dtype": "bf16",
        "a_major": "k", "b_major": "k",
        "scales": "A 1x128 fp32 and B 128x128 fp32", "residual": "none", "activation": None,
    }  # fmt: skip
    assert problem_words(facts) == (
        "fp8_e4m3, B fp8_e5m2, scales of A 1x128 fp32 and B 128x128 fp32, bf16 out, no residual"
    )
