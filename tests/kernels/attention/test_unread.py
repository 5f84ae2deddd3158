"""Memory that kernels may not depend on: NaN behind masks, page table entries outside the cache."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fa4gen.verify.attention import AttentionFamily, as_called
from fa4gen.verify.cases import Case
from fa4gen.verify.emulator import EmulatedKernel, FindingsError
from fa4gen.verify.judge import judge
from fa4gen.verify.sequences import batch_of
from fa4gen.verify.unread import NO_PAGES, seen_keys
from tests.kernels.attention.sequences import OneSchedule
from tests.kernels.source_mutation import Change, kernel_of, program_of, ptx_of

if TYPE_CHECKING:
    from tests.kernels.source_mutation import Kernel

pytestmark = [pytest.mark.emulate, pytest.mark.compile]
WINDOW: dict[str, Any] = {"mask": {"sliding_window": 100}}
HOPPER: dict[str, Any] = {**WINDOW, "arch": "sm_90a"}
DECODE: dict[str, Any] = {**HOPPER, "pack_heads": True}
PAGES_16: dict[str, Any] = {"keys": "paged", "page_size": 16}
PAGES_64: dict[str, Any] = {"keys": "paged", "page_size": 64}
FP8: dict[str, Any] = {"kv_dtype": "fp8_e4m3"}
LATENT: dict[str, Any] = {"depth": 576, "value_depth": 512, "pack_heads": True, "cta_group": 2}
CHUNKS: dict[str, Any] = {"mask": {"chunked": 175}}
TESTED = "key <= query - 70 and query - key < 300 and key % 3 != 1"


def keys_of(*more: dict[str, Any], seeds: bool = False, **keys: Any) -> Any:
    """A config as a parameter of a test; ``seeds``: of many alone."""
    config = {name: value for one in (*more, keys) for name, value in one.items()}
    words = [str(value) for name, value in config.items() if name not in ("mask", "value_depth")]
    marks = pytest.mark.seeds if seeds else ()
    return pytest.param(config, id="-".join(words), marks=marks)


CONFIGS = (
    keys_of(HOPPER, PAGES_64, depth=64),
    keys_of(HOPPER, PAGES_16, cta_group=2, seeds=True),
    keys_of(HOPPER, batching="ragged", mask=TESTED),
    keys_of(HOPPER, depth=512, cta_group=2, seeds=True),
    keys_of(HOPPER, PAGES_64, mask="key <= query - 70", depth=512, cta_group=2, seeds=True),
    keys_of(DECODE, PAGES_16),
    keys_of(DECODE, packed_rows=64),
    keys_of(DECODE, PAGES_16, mask=TESTED),
    keys_of(DECODE, PAGES_16, FP8, kv_scale="page"),
    keys_of(DECODE, PAGES_64, depth=512, seeds=True),
    keys_of({"arch": "sm_90a"}, CHUNKS, LATENT, cta_group=1, seeds=True),
    keys_of({"arch": "sm_90a", "mask": "causal"}, PAGES_64, LATENT, cta_group=1),
    keys_of(DECODE, PAGES_64, packed_rows=64, seeds=True),
    keys_of(WINDOW, PAGES_16, pack_heads=True),
    keys_of(WINDOW, PAGES_64, FP8, pack_heads=True, kv_scale="page", seeds=True),
    keys_of(WINDOW, PAGES_64),
    keys_of(WINDOW, PAGES_16, cta_group=2, seeds=True),
    keys_of(WINDOW, PAGES_64, depth=512, cta_group=2, seeds=True),
    keys_of(WINDOW, LATENT, seeds=True),
    keys_of(WINDOW, PAGES_64, LATENT),
)


def drawn(plan: Any, rows: int = 3, keys: int = 700) -> Any:
    """Draw a problem; half of the keys are before what rows see."""
    case = Case("test/unread", 2, 4 * plan.tile_heads, 2, rows, keys)
    if plan.has_tile_lengths:
        several = ((rows, keys - i) for i in range(len(NO_PAGES) + 1))  # one for each kind of entry
        lengths = batch_of(plan, *several, (rows, 5))
        case = replace(case, batch=len(lengths), lengths=lengths)
    (case,) = as_called(plan, [case])
    return AttentionFamily(plan).draw(case, 7)


def without_a_seen_page(plan: Any, problem: Any) -> Any:
    """Replace the entry of a page that rows of each sequence see; zeros are expected."""
    view = problem.memory.views["page_table"]
    table = view.bits(problem.memory.buffers[view.buffer]).view(np.int32)
    key, value = problem.inputs.key.copy(), problem.inputs.value.copy()
    pages = problem.memory.views["key"].shape[0]
    begin = 0
    for number, (rows, keys) in enumerate(problem.sequences):
        page = (keys - 100) // plan.page_size
        if page >= 0:
            seen = seen_keys(plan, problem.inputs, number, rows, keys)
            assert seen[:, page * plan.page_size : (page + 1) * plan.page_size].any()
            table[number, page] = (*NO_PAGES, pages)[number % (len(NO_PAGES) + 1)]
            first = begin + page * plan.page_size
            for array in (key, value):
                array[0, first : min(first + plan.page_size, begin + keys)] = 0
        begin += keys
    return replace(problem, inputs=replace(problem.inputs, key=key, value=value))


def failures(kernel: Kernel, problem: Any) -> str:
    """Return what verify finds wrong with one launch."""
    program: Any = OneSchedule(program_of(ptx_of(kernel)))
    try:
        after = EmulatedKernel(kernel.plan, program).run(problem.memory)
    except FindingsError as error:
        return str(error)
    found, _ = judge(problem.memory, after, after, problem.reference(np))
    return "; ".join(failure.message for failure in found)


@pytest.mark.parametrize("keys", CONFIGS)
def test_what_no_row_sees_does_not_count(keys: dict[str, Any]) -> None:
    kernel = kernel_of(keys)
    assert failures(kernel, drawn(kernel.plan)) == ""
    if not kernel.plan.splits_keys:
        assert failures(kernel, drawn(kernel.plan, 70, 611)) == ""


@pytest.mark.parametrize("keys", [one for one in CONFIGS if "keys" in one.values[0]])
def test_entries_that_are_no_page_stand_for_zeros(keys: dict[str, Any]) -> None:
    kernel = kernel_of(keys)
    assert failures(kernel, without_a_seen_page(kernel.plan, drawn(kernel.plan))) == ""


CHECKED = r"static_cast<uint32>\(entry\) < static_cast<uint32>\(cache_pages\)"
MUTANTS = {
    "entries_are_trusted": (CHECKED, "true"),
    "negative_entries_alone_are_none": (CHECKED, "entry >= 0"),
    "entries_past_the_cache_alone_are_none": (CHECKED, "entry < cache_pages"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_kernel_that_trusts_its_page_table_is_reported(name: str) -> None:
    """It reads scales that belong to no page, or keys before or after the cache."""
    kernel = kernel_of({**DECODE, **PAGES_16, **FP8, "kv_scale": "page"})
    changed = kernel.with_code(Change(*MUTANTS[name]).apply(kernel.code))
    assert "out-of-bounds" in failures(changed, drawn(kernel.plan))


def test_a_kernel_that_takes_page_0_for_no_page_is_reported() -> None:
    kernel = kernel_of({**DECODE, **PAGES_16})
    change = Change(r"table\.has\(page\) \? key_rows : 0", "key_rows")
    changed = kernel.with_code(change.apply(kernel.code))
    assert failures(changed, without_a_seen_page(kernel.plan, drawn(kernel.plan)))
