# ruff: noqa: E501 (a message is on the line of its cause)
"""Arguments of kernels for ragged batches: what is accepted, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.designs.common.tensor_maps import END_ROW
from fa4gen.errors import ArgumentError
from fa4gen.runtime.arguments import Arguments, check_arguments
from fa4gen.runtime.attention import AttentionKernel, scalar_values
from fa4gen.runtime.parameters import pack
from fa4gen.runtime.schedule import plan_schedule
from fa4gen.runtime.tensor_map import describe, place_steps
from fa4gen.runtime.tensor_view import TensorView
from fa4gen.runtime.tile_list import ENTRY_BYTES
from tests.runtime.views import GAP, array, changed, make_plan

PLAN = make_plan(batching="ragged")


def arguments(**changes: Any) -> Arguments:
    """Good arguments; each keyword replaces fields of one of them, or the whole of it."""
    good = Arguments(
        array((100, 8, 128), 1),
        array((70, 2, 128), 2),
        array((70, 2, 128), 3),
        array((100, 8, 128), 4),
        array((8, 100), 5, "float32"),
        0.1,
        "bshd",
        query_offsets=array((6,), 6, "int32"),
        key_offsets=array((6,), 7, "int32"),
    )
    return changed(good, changes)


def test_good_arguments_become_those_of_both_launches() -> None:
    checked = check_arguments(PLAN, arguments())
    assert checked.size.batch == 5
    assert (checked.size.query_rows, checked.size.key_rows) == (100, 70)
    schedule = plan_schedule(PLAN, checked.size, 132)
    assert schedule.tiles_per_head == 1 + 5  # 100 rows are a tile of 192; one more a sequence
    assert schedule.grid == min(132, 6 * 8)
    values = {**scalar_values(checked, schedule), "tile_list": 99}
    block = pack(PLAN.tile_list.parameters, values)
    names = [row.name for row in PLAN.tile_list.parameters]
    read = {
        name: int.from_bytes(block.value(i, 8 if i < 3 else 4), "little")
        for i, name in enumerate(names)
    }
    assert read == {
        "query_offsets": 6 * GAP, "key_offsets": 7 * GAP, "tile_list": 99, "batch": 5,
        "max_tiles": 6,
    }  # fmt: skip


def test_the_list_has_room_for_every_tile() -> None:
    kernel = AttentionKernel(PLAN, b"")
    for layout, shape in (("bshd", (1000, 8, 128)), ("bhsd", (8, 1000, 128))):
        given = arguments(query={"shape": shape})._replace(layout=layout)
        needed = ENTRY_BYTES * (1 + -(-1000 // PLAN.BM) + 5)
        assert needed <= kernel._list_bytes(given) <= needed + 2 * ENTRY_BYTES


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"query": array((2, 100, 8, 128), 1)}, r"query: expected 3 axes \(rows, heads, depth\), got 4 axes"),
        ({"query_offsets": None}, r"query_offsets: expected int32 \(sequences \+ 1\), got nothing"),
        ({"key_offsets": {"dtype": "int64"}}, "key_offsets: expected int32, got int64"),
        ({"key_offsets": {"shape": (7,)}}, r"key_offsets: expected sequences \+ 1 = 6, got shape \(7,\)"),
        ({"key_offsets": {"shape": (6, 1)}}, "key_offsets: expected 1 axes"),
        ({"key_offsets": {"strides": (8,)}}, "key_offsets: expected a contiguous array"),
        ({"query_offsets": {"shape": (0,)}, "key_offsets": {"shape": (0,)}}, r"query_offsets: expected sequences \+ 1 of them"),
        ({"key_lengths": array((5,), 9, "int32")}, "key_lengths: expected no key_lengths, got an array"),
        ({"lse": array((1, 8, 100), 5, "float32")}, r"lse: expected \(query heads, rows of all sequences\) = \(8, 100\)"),
        ({"out": array((101, 8, 128), 4)}, r"out: expected the query's shape, \(100, 8, 128\), got \(101, 8, 128\)"),
        ({"query": {"strides": (1 << 34, 256, 2)}}, "query: expected a stride along rows that is a multiple of 16 bytes, from 0 to 17179869168"),
        ({"out": {"pointer": 6 * GAP}}, "out: expected memory of its own, got memory that overlaps the query_offsets's"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        check_arguments(PLAN, arguments(**changes))


@pytest.mark.parametrize("offsets", ["of 5 sequences", "none"])
def test_scales_are_of_each_sequence_and_key_head(offsets: str) -> None:
    plan = make_plan(arch="sm_100a", dtype="fp8_e4m3", batching="ragged")
    scale = array((5, 2), 9, "float32")
    fp8: dict[str, Any] = {}
    for i, (name, rows, heads) in enumerate((("query", 100, 8), ("key", 70, 2), ("value", 70, 2))):
        fp8[name] = array((rows, heads, 128), 1 + i, "uint8")
    if offsets == "none":
        fp8["query_offsets"] = None  # how many sequences there are is not known: no shape is wrong
        with pytest.raises(ArgumentError, match="query_offsets: expected int32") as error:
            check_arguments(plan, arguments(**fp8, key_descale=scale))
        assert "key_descale" not in str(error.value)
        return
    assert check_arguments(plan, arguments(**fp8, key_descale=scale)).descales["key_descale"]
    wrong = scale._replace(shape=(1, 2))
    says = r"key_descale: expected \(sequences, key heads\) = \(5, 2\), got shape \(1, 2\)"
    with pytest.raises(ArgumentError, match=says):
        check_arguments(plan, arguments(**fp8, key_descale=wrong))


PAGED = make_plan(batching="ragged", keys="paged", page_size=16)
LENGTHS = make_plan(key_lengths=True)


def paged(**changes: Any) -> Arguments:
    good = arguments(
        key=array((9, 16, 2, 128), 2),
        value=array((9, 16, 2, 128), 3),
        key_offsets=None,
        key_lengths=array((5,), 8, "int32"),
        page_table=TensorView(9 * GAP, (5, 3), (64, 4), "int32", 0),
    )
    return changed(good, changes)


def test_paged_arguments_become_those_of_both_launches() -> None:
    heads_first = {"strides": (16 * 512 * 3, 256, 16 * 256, 2)}  # pages of a larger allocation
    checked = check_arguments(PAGED, paged(value=heads_first))
    assert (checked.size.batch, checked.size.key_rows) == (5, 3 * 16)
    values = scalar_values(checked, plan_schedule(PAGED, checked.size, 132))
    assert values["page_table"] == 9 * GAP
    assert values["page_table_stride"] == 16
    assert (values["key_page_rows"], values["value_page_rows"]) == (16, 16 * 2 * 3)
    names = {row.name for row in PAGED.parameters}
    assert {"page_table", "page_table_stride", "key_page_rows", "value_page_rows"} < names
    assert "key_lengths" not in names  # the list of tiles has them
    assert [row.name for row in PAGED.tile_list.parameters] == [
        "query_offsets", "key_lengths", "tile_list", "batch", "key_rows", "max_tiles",
    ]  # fmt: skip


def test_lengths_of_dense_keys() -> None:
    given = Arguments(
        array((2, 100, 8, 128), 1), array((2, 70, 2, 128), 2), array((2, 70, 2, 128), 3),
        array((2, 100, 8, 128), 4), array((2, 8, 100), 5, "float32"), 0.1, "bshd",
        key_lengths=array((2,), 6, "int32"),
    )  # fmt: skip
    checked = check_arguments(LENGTHS, given)
    assert (checked.size.batch, checked.size.query_rows, checked.size.key_rows) == (2, 100, 70)
    values = scalar_values(checked, plan_schedule(LENGTHS, checked.size, 132))
    assert (values["key_lengths"], values["key_page_rows"]) == (6 * GAP, 70)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"key": {"shape": (9, 32, 2, 128)}, "value": {"shape": (9, 32, 2, 128)}}, r"key: expected pages of 16 \(the config's page_size\), got pages of 32 rows"),
        ({"value": {"shape": (8, 16, 2, 128)}}, r"value: expected the key's shape, \(9, 16, 2, 128\)"),
        ({"key": {"strides": (8208, 512, 256, 2)}}, "key: expected a whole number of rows from page to page"),
        ({"key_lengths": None}, r"key_lengths: expected int32 \(sequences\), got nothing"),
        ({"key_lengths": {"shape": (6,)}}, "key_lengths: expected sequences = 5"),
        ({"page_table": {"shape": (4, 3)}}, r"page_table: expected sequences = 5, got shape \(4, 3\)"),
        ({"page_table": {"strides": (4, 20)}}, "page_table: expected a contiguous array"),
        ({"page_table": {"strides": (62, 4)}}, "page_table: expected a multiple of 4 bytes from one sequence to the next"),
        ({"key_offsets": array((6,), 7, "int32")}, "key_offsets: expected no key_offsets"),
    ],
)  # fmt: skip
def test_wrong_pages_are_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        check_arguments(PAGED, paged(**changes))


def test_offsets_are_refused_by_kernels_of_dense_batches() -> None:
    dense = make_plan()
    given = Arguments(
        array((2, 100, 8, 128), 1), array((2, 70, 2, 128), 2), array((2, 70, 2, 128), 3),
        array((2, 100, 8, 128), 4), array((2, 8, 100), 5, "float32"), 0.1, "bshd",
        query_offsets=array((3,), 6, "int32"),
    )  # fmt: skip
    with pytest.raises(ArgumentError, match="query_offsets: expected no query_offsets"):
        check_arguments(dense, given)


@pytest.mark.parametrize("padding", [0, 16])
@pytest.mark.parametrize(("start", "count"), [(0, 5), (7, 3), (9, 1), (4, 6)])
def test_a_clipped_map_addresses_the_rows_of_a_sequence(
    start: int, count: int, padding: int
) -> None:
    row = 2 * 8 * 128 + padding
    view = TensorView(GAP, (1, 10, 8, 128), (0, row, 256, 2), "bfloat16", 0)
    spec = describe(PLAN.tensor_map("key"), view)
    strides = (2, *spec.strides)
    for r in range(count + 3):
        coordinates = (64, END_ROW - count + r, 3, start + count, END_ROW)
        inside = [0 <= c < extent for c, extent in zip(coordinates, spec.dims, strict=True)]
        assert all(inside) == (r < count)
        address = spec.pointer + sum(c * s for c, s in zip(coordinates, strides, strict=True))
        assert address % 2**64 == GAP + (start + r) * row + 3 * 256 + 64 * 2


def test_a_clipped_map_of_no_rows_is_legal() -> None:
    view = TensorView(0, (1, 0, 8, 128), (0, 2048, 256, 2), "bfloat16", 0)
    spec = describe(PLAN.tensor_map("key"), view, fallback_pointer=GAP)
    assert spec.pointer == GAP
    assert all(0 < stride < 2**40 and stride % 16 == 0 for stride in spec.strides)


PAIR = {"batching": "ragged", "depth": 512, "cta_group": 2}


@pytest.mark.parametrize("steps", [(8192, 1024), (8192 + 32, 1024), (1024, 40960), (4096, 0)])
@pytest.mark.parametrize(("start", "count"), [(0, 5), (7, 3), (9, 1), (4, 6)])
def test_a_clipped_map_of_panels_addresses_the_rows_of_a_sequence(
    start: int, count: int, steps: tuple[int, int]
) -> None:
    row, head = steps
    view = TensorView(GAP, (1, 10, 4 if head else 1, 512), (0, row, head, 2), "bfloat16", 0)
    spec = describe(make_plan(**PAIR).tensor_map("value"), view)
    row_steps, head_steps = place_steps(view)
    strides = (2, *spec.strides)
    for number in range(view.shape[2]):
        place = (start + count) * row_steps + number * head_steps
        for r in range(count + 3):
            coordinates = (0, END_ROW - count + r, 5, place, END_ROW)
            inside = [0 <= c < extent for c, extent in zip(coordinates, spec.dims, strict=True)]
            assert all(inside) == (r < count)
            address = spec.pointer + sum(c * s for c, s in zip(coordinates, strides, strict=True))
            assert address % 2**64 == GAP + (start + r) * row + number * head + 5 * 128
    assert all(0 < stride < 2**40 and stride % 16 == 0 for stride in spec.strides)


@pytest.mark.parametrize("shape", [(1, 0, 2, 512), (1, 1, 1, 512), (1, 1, 2, 512)])
def test_a_clipped_map_of_panels_is_legal_for_few_rows(shape: tuple[int, ...]) -> None:
    view = TensorView(0, shape, (0, 2048, 1024, 2), "bfloat16", 0)
    spec = describe(make_plan(**PAIR).tensor_map("value"), view, fallback_pointer=GAP)
    assert all(0 < stride < 2**40 and stride % 16 == 0 for stride in spec.strides)
    assert all(0 < extent <= 2**32 for extent in spec.dims)


def test_values_of_more_places_than_a_coordinate_counts_are_refused() -> None:
    rows = 1 << 22
    view = array((rows, 2, 512), 3)._replace(strides=(1024 * 33 + 16, 1024 * 16, 2))
    tensors = {
        "query": array((100, 8, 512), 1), "key": array((rows, 2, 512), 2), "value": view,
        "out": array((100, 8, 512), 9), "lse": array((8, 100), 500, "float32"),
    }  # fmt: skip
    with pytest.raises(ArgumentError, match="common divisor") as raised:
        check_arguments(make_plan(**PAIR), arguments(**tensors))
    assert [problem.key for problem in raised.value.problems] == ["value"]
