"""Lists of a call that names its blocks, as arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fa4gen
from fa4gen import given_blocks
from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import ArgumentError
from fa4gen.runtime.arguments import Arguments, check_arguments
from fa4gen.runtime.attention import scalar_values
from fa4gen.runtime.schedule import plan_schedule
from tests.runtime.views import GAP, array

KEYS = {"kernel": "attention", "arch": "sm_90a", "dtype": "fp16", "depth": 128}
OFFSETS, INDICES = array((2 * 8 * 2 + 1,), 6, "int32"), array((5,), 7, "int32")


def plan_of(**keys: Any) -> Any:
    blocks = {"rows": 64, "keys": 64}
    return build_plan(load_mapping({**KEYS, "blocks": blocks, **keys}, "probe").config)


PLAN = plan_of()


def arguments(**changed: Any) -> Arguments:
    given = {"block_offsets": OFFSETS, "block_indices": INDICES, **changed}
    return Arguments(
        array((2, 100, 8, 128), 1, "float16"), array((2, 70, 2, 128), 2, "float16"),
        array((2, 70, 2, 128), 3, "float16"), array((2, 100, 8, 128), 4, "float16"),
        array((2, 8, 100), 5, "float32"), 0.125, "bshd",
        tensors=tuple((name, view) for name, view in given.items() if view is not None),
    )  # fmt: skip


def test_lists_are_passed_to_the_launch_before() -> None:
    checked = check_arguments(PLAN, arguments())
    values = scalar_values(checked, plan_schedule(PLAN, checked.size, 132))
    assert (values["given_block_offsets"], values["given_block_indices"]) == (6 * GAP, 7 * GAP)
    assert not {"given_block_offsets", "given_block_indices"} & {r.name for r in PLAN.parameters}
    assert {row.name for row in PLAN.tile_list.parameters} <= {*values, "tile_list"}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"block_offsets": None}, "block_offsets: expected int32 (batch * query heads * blocks of "
                                  "64 query rows + 1), got nothing"),
        ({"block_indices": None}, "make both by fa4gen.given_blocks"),
        ({"block_offsets": array((32,), 6, "int32")}, "query rows + 1) = (33,), got shape"),
        ({"block_offsets": OFFSETS._replace(dtype="int64")}, "block_offsets: expected int32"),
        ({"block_indices": array((5, 1), 7, "int32")}, "block_indices: expected (entries)"),
        ({"block_indices": INDICES._replace(device=1)}, "block_indices: expected the query's"),
        ({"block_ranges": array((2, 1, 1, 6, 2), 8, "int32")}, "block_ranges"),
    ],
)  # fmt: skip
def test_wrong_lists_are_refused(changed, words) -> None:
    with pytest.raises(ArgumentError) as caught:
        check_arguments(PLAN, arguments(**changed))
    assert words in str(caught.value)


def test_lists_of_key_heads_are_fewer() -> None:
    plan = plan_of(blocks={"rows": 128, "keys": 64, "heads": "key"})
    check_arguments(plan, arguments(block_offsets=array((2 * 2 + 1,), 6, "int32")))
    with pytest.raises(ArgumentError, match="key heads"):
        check_arguments(plan, arguments())


def test_a_kernel_that_walks_all_blocks_takes_no_lists() -> None:
    with pytest.raises(ArgumentError, match="generated with blocks: walked"):
        check_arguments(plan_of(blocks="walked"), arguments())


@pytest.mark.gpu("sm_90a")
@pytest.mark.parametrize("size", [64, 128])
def test_a_call_on_the_gpu_is_that_with_a_mask(size) -> None:
    import cupy

    rng = np.random.default_rng(size)
    blocks = 1 + 999 // size
    seen = (rng.random((8, blocks, blocks)) < 0.3).astype(np.int32)
    named = fa4gen.load({**KEYS, "blocks": {"rows": size, "keys": size}})
    masked = fa4gen.load(
        {
            **KEYS,
            "mask": f"seen[head, row // {size}, key // {size}] != 0",
            "parameters": {"seen": {"dtype": "int32", "shape": list(seen.shape)}},
        }
    )
    query = cupy.asarray(rng.normal(size=(1, 1000, 8, 128)).astype(np.float16))
    key, value = cupy.asarray(rng.normal(size=(2, 1, 1000, 2, 128)).astype(np.float16))
    on_gpu = cupy.asarray(seen)
    out, lse = named(query, key, value, **given_blocks.from_mask(on_gpu[None]))
    expected, its = masked(query, key, value, seen=on_gpu)
    assert cupy.abs(out.astype(cupy.float32) - expected.astype(cupy.float32)).max() < 4e-3
    assert (cupy.isfinite(lse) == cupy.isfinite(its)).all()
