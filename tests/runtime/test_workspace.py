"""The workspace of decode kernels: its size, what is refused, and the shares of a launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.errors import ArgumentError
from fa4gen.runtime.arguments import Arguments, check_arguments
from fa4gen.runtime.attention import scalar_values
from fa4gen.runtime.refusal import refuse
from fa4gen.runtime.schedule import ProblemSize, plan_schedule
from fa4gen.runtime.workspace import check_workspace_size, workspace_values
from tests.runtime.views import GAP, array

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.common.attention_model import AttentionPlan

    MakePlan = Callable[..., AttentionPlan]


def arguments(**workspace: Any) -> Arguments:
    """A step of 3 sequences, 8 heads on 2 key heads; a workspace with these fields."""
    keys = (3, 1000, 2, 128)
    return Arguments(
        array((3, 2, 8, 128), 1), array(keys, 2), array(keys, 3), array((3, 2, 8, 128), 4),
        array((3, 8, 2), 5, "float32"), 0.1, "bshd",
        workspace=array((1 << 22,), 6, "uint8")._replace(**workspace),
    )  # fmt: skip


def test_a_call_becomes_shares_of_the_blocks(make_plan: MakePlan) -> None:
    plan = make_plan(pack_heads=True)
    checked = check_arguments(plan, arguments())
    assert checked.size == ProblemSize(3, 8, 4, 2, 1000)
    schedule = plan_schedule(plan, checked.size, 132)
    assert schedule.tiles_per_head == 1  # 4 heads times 2 rows
    assert schedule.num_tiles == 3 * 2 * 8  # blocks of 128 keys
    assert schedule.grid == 48
    values = scalar_values(checked, schedule) | workspace_values(plan, 6 * GAP)
    assert {row.name for row in plan.parameters} <= set(values) | {"key_map", "value_map"}
    assert values["key_heads"] == 2
    assert values["query"] == GAP
    assert values["query_row_stride"] == 8 * 128
    assert values["partials"] == 6 * GAP + plan.ticket_bytes


@pytest.mark.parametrize(
    ("size", "tiles", "line"),
    [
        (ProblemSize(1, 32, 4, 1, 8192), 1, 8 * 64),
        (ProblemSize(1, 16, 16, 1, 100), 2, 2),
        (ProblemSize(2, 8, 1, 9, 0), 2, 2 * 8 * 2),
        (ProblemSize(0, 8, 1, 9, 100), 0, 0),
        (ProblemSize(1, 8, 1, 0, 100), 0, 0),
    ],
)
def test_the_line_has_every_block_and_one_of_a_tile_without(
    make_plan: MakePlan, size: ProblemSize, tiles: int, line: int
) -> None:
    schedule = plan_schedule(make_plan(pack_heads=True), size, 132)
    assert (schedule.tiles_per_head, schedule.num_tiles) == (tiles, line)
    assert schedule.grid == min(132, line)


def test_blocks_before_a_window_are_not_in_the_line(make_plan: MakePlan) -> None:
    plan = make_plan(pack_heads=True, mask={"sliding_window": 200})
    assert plan_schedule(plan, ProblemSize(1, 1, 1, 1, 12800), 132).num_tiles == 2


def test_splits_of_a_fixed_number_of_keys_are_places_of_the_line(make_plan: MakePlan) -> None:
    plan = make_plan(pack_heads=True, split_keys={"keys": 1024})
    schedule = plan_schedule(plan, ProblemSize(2, 8, 4, 1, 2049), 132)
    assert schedule.num_tiles == 2 * 2 * 3
    size = plan.workspace_bytes(132, schedule.num_tiles)
    short = array((size - 1,), 6, "uint8")
    with pytest.raises(ArgumentError, match=f"expected {size} bytes or more, got {size - 1}"):
        refuse(check_workspace_size(plan, short, 132, schedule.num_tiles))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"dtype": "float64"}, "expected uint8 or int8 or int32 or float32, got float64"),
        ({"shape": (4, 1 << 20), "strides": (1 << 20, 1)}, "expected one contiguous axis"),
        ({"strides": (2,)}, "expected one contiguous axis"),
        ({"pointer": 6 * GAP + 8}, "an address that is a multiple of 16 bytes"),
        ({"pointer": 4 * GAP}, "memory that overlaps the out's"),
        ({"pointer": 2 * GAP}, "memory that overlaps the key's"),
    ],
)
def test_wrong_workspaces_are_refused(
    make_plan: MakePlan, fields: dict[str, Any], says: str
) -> None:
    with pytest.raises(ArgumentError) as raised:
        check_arguments(make_plan(pack_heads=True), arguments(**fields))
    assert "workspace: " in str(raised.value)
    assert says in str(raised.value)


def test_a_small_workspace_is_refused(make_plan: MakePlan) -> None:
    plan = make_plan(pack_heads=True)
    enough = array((plan.workspace_bytes(132) // 4,), 6, "float32")
    refuse(check_workspace_size(plan, enough, 132, 0))
    refuse(check_workspace_size(plan, None, 132, 0))
    short = enough._replace(shape=(enough.shape[0] - 1,))
    with pytest.raises(ArgumentError, match="bytes or more"):
        refuse(check_workspace_size(plan, short, 132, 0))


def test_other_kernels_take_none(make_plan: MakePlan) -> None:
    with pytest.raises(ArgumentError, match="expected no workspace"):
        check_arguments(make_plan(), arguments())


def test_more_sequences_than_have_a_place_are_refused(make_plan: MakePlan) -> None:
    plan = make_plan(pack_heads=True, key_lengths=True)
    good = arguments()
    given = good._replace(key_lengths=array((3,), 7, "int32"))
    assert check_arguments(plan, given).size.batch == 3
    many = [view._replace(shape=(5000, *view.shape[1:])) for view in good[:5]]  # type: ignore[union-attr]
    with pytest.raises(ArgumentError, match="expected at most 4096, got 5000 sequences"):
        check_arguments(plan, Arguments(*many, 0.1, "bshd", key_lengths=array((5000,), 7, "int32")))  # type: ignore[arg-type]
