"""Tensors that a config declares, as arguments of a call."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import ArgumentError
from fa4gen.runtime.arguments import Arguments, check_arguments
from fa4gen.runtime.attention import scalar_values
from fa4gen.runtime.schedule import plan_schedule
from fa4gen.runtime.tensor_view import TensorView
from tests.runtime.views import GAP, array

CONFIG: dict[str, Any] = {
    "kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128,
    "score": "score - slope[head] * (query - key)",
    "mask": "key <= query and document[batch, query] == document[batch, key]",
    "parameters": {
        "slope": {"dtype": "fp32", "shape": ["query_heads"]},
        "document": {"dtype": "int32", "shape": ["batch", "keys"]},
    },
}  # fmt: skip


def plan_of(**keys: Any) -> Any:
    return build_plan(load_mapping({**CONFIG, **keys}, "probe").config)


PLAN = plan_of()


SLOPE = array((8,), 6, "float32")
DOCUMENT = array((2, 70), 7, "int32")


def arguments(scale: float = 0.125, **tensors: TensorView | None) -> Arguments:
    given = {"slope": SLOPE, "document": DOCUMENT, **tensors}
    return Arguments(
        array((2, 100, 8, 128), 1), array((2, 70, 2, 128), 2), array((2, 70, 2, 128), 3),
        array((2, 100, 8, 128), 4), array((2, 8, 100), 5, "float32"), scale, "bshd",
        tensors=tuple((name, view) for name, view in given.items() if view is not None),
    )  # fmt: skip


def test_addresses_are_those_given() -> None:
    checked = check_arguments(PLAN, arguments())
    values = scalar_values(checked, plan_schedule(PLAN, checked.size, 132))
    assert values["given_slope"] == 6 * GAP
    assert values["given_document"] == 7 * GAP
    names = [row.name for row in PLAN.parameters]
    assert {"given_slope", "given_document"} <= set(names)
    assert [row.meaning for row in PLAN.parameters if row.name == "given_document"] == [
        "document, (batch, keys)"
    ]


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ({"slope": None}, "slope: expected float32 (query heads) = (8,), got nothing"),
        ({"document": None}, "document: expected int32 (batch, keys) = (2, 70), got nothing"),
        (
            {"slope": array((4,), 6, "float32")},
            "slope: expected (query heads) = (8,), got shape",
        ),
        ({"slope": array((8,), 6, "float64")}, "slope: expected float32, got float64"),
        ({"document": array((2, 70), 7, "int64")}, "document: expected int32, got int64"),
        ({"document": array((2, 100), 7, "int32")}, "(batch, keys) = (2, 70), got shape"),
        ({"document": DOCUMENT._replace(strides=(560, 8))}, "a contiguous array"),
        ({"slope": SLOPE._replace(pointer=6 * GAP + 2)}, "a multiple of 4 bytes"),
        ({"slop": SLOPE}, "slop: this kernel has no argument of that name\n  Did you mean slope?"),
        ({"slope": SLOPE._replace(pointer=4 * GAP)}, "out"),
    ],
)
def test_a_wrong_tensor_is_refused_by_name(tensors, words) -> None:
    with pytest.raises(ArgumentError) as caught:
        check_arguments(PLAN, arguments(**tensors))
    assert words in str(caught.value)


def test_a_kernel_without_tensors_takes_none() -> None:
    plan = plan_of(score=None, mask="causal", parameters=None)
    with pytest.raises(ArgumentError, match="it has no parameters"):
        check_arguments(plan, arguments())


@pytest.mark.parametrize("scale", [2.0**-25, 2.0**25])
def test_a_scale_that_a_score_function_cannot_be_divided_by_is_refused(scale) -> None:
    with pytest.raises(ArgumentError, match=r"from 2\^-24 to 2\^24, with a score function"):
        check_arguments(PLAN, arguments(scale))
    bare = plan_of(score=None, parameters={"document": CONFIG["parameters"]["document"]})
    check_arguments(bare, arguments(scale, slope=None))


def tree(rows: int) -> Arguments:
    bits = array((2, rows), 6, "int32")
    return Arguments(
        array((2, rows, 8, 128), 1), array((2, 70, 2, 128), 2), array((2, 70, 2, 128), 3),
        array((2, rows, 8, 128), 4), array((2, 8, rows), 5, "float32"), 0.125, "bshd",
        tensors=(("ancestors", bits),),
    )  # fmt: skip


@pytest.mark.parametrize("keys", [{}, {"pack_heads": True}, {"arch": "sm_100a"}], ids=str)
def test_a_tree_of_more_tokens_than_a_number_has_bits_is_refused(keys) -> None:
    plan = plan_of(mask="tree", score=None, parameters=None, **keys)
    assert check_arguments(plan, tree(32)).size.query_rows == 32
    with pytest.raises(ArgumentError) as caught:
        check_arguments(plan, tree(40))
    assert [str(one) for one in caught.value.problems] == [
        "query: expected at most 32 rows (the most that its mask tells apart), got 40 rows"
    ]


LISTED = plan_of(score=None, parameters={"document": CONFIG["parameters"]["document"]},
                 blocks="listed", BM=128)  # fmt: skip
RANGES = array((2, 1, 1, 6, 2), 8, "int32")
ENTRIES = array((3,), 9, "int32")
ROW_KEYS = array((2, 1, 100, 2), 10, "int32")


def listed(**changed: TensorView | None) -> Arguments:
    lists = {"block_ranges": RANGES, "block_entries": ENTRIES, "row_keys": ROW_KEYS}
    return arguments(**{"slope": None, **lists, **changed})


def test_lists_of_blocks_are_passed_to_the_kernel() -> None:
    checked = check_arguments(LISTED, listed())
    values = scalar_values(checked, plan_schedule(LISTED, checked.size, 132))
    assert values["given_block_ranges"] == 8 * GAP
    assert values["given_block_entries"] == 9 * GAP
    assert values["given_row_keys"] == 10 * GAP
    names = {"given_block_ranges", "given_block_entries", "given_row_keys"}
    assert names <= {row.name for row in LISTED.parameters}


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ({"block_ranges": None}, "block_ranges: expected int32 (batch or 1, query heads or 1, "
                                 "tiles, 6, 2) = (2, 1, 1, 6, 2), got nothing"),
        ({"block_entries": None}, "block_entries: expected int32 (entries), got nothing"),
        ({"block_ranges": None}, "make the lists of this call by the kernel's list_blocks"),
        ({"block_ranges": array((2, 1, 2, 6, 2), 8, "int32")}, "= (2, 1, 1, 6, 2), got shape"),
        ({"block_ranges": RANGES._replace(dtype="int64")}, "block_ranges: expected int32"),
        ({"block_entries": ENTRIES._replace(dtype="float32")}, "block_entries: expected int32"),
        ({"block_entries": array((3, 1), 9, "int32")}, "block_entries: expected (entries)"),
        ({"block_ranges": RANGES._replace(pointer=8 * GAP + 8)}, "a multiple of 16"),
        ({"row_keys": None}, "row_keys: expected int32 (batch or 1, query heads or 1, query rows"),
        ({"row_keys": array((1,), 10, "int32")}, "rows, 2) = (2, 1, 100, 2), got shape"),
        ({"row_keys": ROW_KEYS._replace(pointer=10 * GAP + 4)}, "a multiple of 8"),
        ({"block_entries": ENTRIES._replace(device=1)}, "block_entries: expected the query's"),
        ({"document": None}, "document: expected int32 (batch, keys)"),
    ],
)  # fmt: skip
def test_wrong_lists_of_blocks_are_refused(tensors, words) -> None:
    with pytest.raises(ArgumentError) as caught:
        check_arguments(LISTED, listed(**tensors))
    assert words in str(caught.value)


def test_a_kernel_that_walks_all_blocks_takes_no_lists() -> None:
    with pytest.raises(ArgumentError, match="generated with blocks: walked"):
        check_arguments(PLAN, arguments(block_ranges=RANGES))


RAGGED = plan_of(
    batching="ragged",
    score="score - slope[batch, head] * (query - key)",
    mask="causal",
    parameters={"slope": {"dtype": "fp32", "shape": ["batch", "query_heads"]}},
)


def of_sequences(slope: TensorView, sequences: int = 5) -> Arguments:
    offsets = [array((sequences + 1,), at, "int32") for at in (6, 7)]
    return Arguments(
        array((100, 8, 128), 1), array((70, 2, 128), 2), array((70, 2, 128), 3),
        array((100, 8, 128), 4), array((8, 100), 5, "float32"), 0.125, "bshd",
        query_offsets=offsets[0], key_offsets=offsets[1], tensors=(("slope", slope),),
    )  # fmt: skip


def test_the_batch_of_a_ragged_call_is_its_sequences() -> None:
    """The kernel reads slope[sequence, head]: (1, 8) of them would be read past its end."""
    checked = check_arguments(RAGGED, of_sequences(array((5, 8), 8, "float32")))
    assert scalar_values(checked, plan_schedule(RAGGED, checked.size, 132))["batch"] == 5
    with pytest.raises(ArgumentError) as refused:
        check_arguments(RAGGED, of_sequences(array((1, 8), 8, "float32")))
    assert "(batch, query heads) = (5, 8), got shape" in str(refused.value)


def test_offsets_of_no_known_length_are_refused_alone() -> None:
    arguments = of_sequences(array((5, 8), 8, "float32"))
    wrong = arguments._replace(query_offsets=TensorView(6 * GAP, (), (), "int32", 0))
    with pytest.raises(ArgumentError) as refused:
        check_arguments(RAGGED, wrong)
    assert {problem.key for problem in refused.value.problems} == {"query_offsets"}
