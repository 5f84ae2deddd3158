"""Which keys, values and pages a case fills with what no kernel may depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fa4gen.verify.attention import AttentionFamily
from fa4gen.verify.cases import Case
from fa4gen.verify.inputs import make_inputs, make_rng
from fa4gen.verify.memory import read_out
from fa4gen.verify.unread import read_keys, seen_keys, with_nan, without_pages

if TYPE_CHECKING:
    from collections.abc import Callable

WINDOW = {"mask": {"sliding_window": 100}}


def inputs_of(plan: Any, case: Case) -> Any:
    return make_inputs(
        case, plan.depth, plan.dtype, make_rng(1, case.name), tensors=plan.declared_tensors,
        packed=(False, plan.key_source.clipped),
    )  # fmt: skip


def numbers(which: Any) -> set[int]:
    return set(np.flatnonzero(which).tolist())


@pytest.mark.parametrize(
    ("keys", "rows", "seen"),
    [
        ({"mask": "none"}, 3, range(700)),
        ({"mask": "causal"}, 3, range(700)),
        (WINDOW, 3, range(598, 700)),
        ({"mask": {"chunked": 130}}, 1, range(650, 700)),
        ({"mask": "key <= query - 70 and query - key < 300"}, 3, range(398, 630)),
        ({"mask": "key <= query and query - key < 90 and key % 3 == 1"}, 1, range(610, 700, 3)),
        (WINDOW, 0, range(0)),
    ],
    ids=str,
)
def test_keys_that_any_row_sees(make_plan: Callable[..., Any], keys, rows, seen) -> None:
    plan = make_plan(**keys)
    case = Case("x", 1, 4, 2, rows, 700)
    found = seen_keys(plan, inputs_of(plan, case), 0, rows, 700)
    assert found.shape == (2, 700)
    for own in found:
        assert numbers(own) == set(seen)


def test_a_key_head_has_the_keys_of_its_query_heads(make_plan: Callable[..., Any]) -> None:
    plan = make_plan(mask="key <= query and query - key < where(head < 3, 100, 200)")
    case = Case("x", 1, 4, 2, 1, 700)
    found = seen_keys(plan, inputs_of(plan, case), 0, 1, 700)
    assert [len(numbers(own)) for own in found] == [100, 200]


def test_long_sequences_count_from_the_first_to_the_last(make_plan: Callable[..., Any]) -> None:
    plan = make_plan(mask="key <= query and query - key < 90 and key % 3 == 1")
    case = Case("x", 1, 1, 1, 2100, 2100)
    found = seen_keys(plan, inputs_of(plan, case), 0, 2100, 2100)
    assert found.all()


def test_values_are_read_in_whole_blocks(make_plan: Callable[..., Any]) -> None:
    seen = np.zeros((1, 700), np.bool_)
    seen[0, [300, 650]] = True
    plan = make_plan(**WINDOW)
    step = plan.BN
    until = min(700, (650 // step + 1) * step)
    assert numbers(read_keys(plan, seen)[0]) == set(range(300 // step * step, until))
    decode = make_plan(pack_heads=True, depth=128, **WINDOW)
    unit = decode.unit_keys
    assert unit < decode.BN
    until = (650 // unit + 1) * unit
    assert numbers(read_keys(decode, seen)[0]) == set(range(300 // unit * unit, until))
    listed = make_plan(mask="documents", blocks="listed", depth=128)
    step = listed.BN
    blocks = {key for first in (300, 650) for key in range(first // step * step, 700)
              if key // step == first // step}  # fmt: skip
    assert numbers(read_keys(listed, seen)[0]) == blocks
    assert not read_keys(plan, np.zeros((1, 700), np.bool_)).any()


def test_what_is_not_read_is_nan(make_plan: Callable[..., Any]) -> None:
    plan = make_plan(**WINDOW)
    case = Case("x", 2, 2, 1, 3, 700)
    inputs = inputs_of(plan, case)
    key, value = with_nan(plan, inputs, case.sequences)
    begin = 598 // plan.BN * plan.BN
    for array, first in ((key, 598), (value, begin)):
        assert np.isnan(array[:, :first]).all()
        assert not np.isnan(array[:, first:]).any()
    assert not np.isnan(inputs.key).any()


def test_pages_that_no_row_sees_are_none_of_the_cache(make_plan: Callable[..., Any]) -> None:
    plan = make_plan(keys="paged", page_size=16, **WINDOW)
    case = Case("x", 2, 2, 1, 3, 700, lengths=((3, 700), (3, 90)))
    inputs = inputs_of(plan, case)
    table = np.arange(2 * 44, dtype=np.int32).reshape(2, 44)
    found = without_pages(plan, {"page_table": table}, inputs, case.sequences, 100)["page_table"]
    evicted = 598 // 16
    assert set(found[0, :evicted]) == {-1, 2**31 - 1, -(2**31), 100}
    np.testing.assert_array_equal(found[0, evicted:], table[0, evicted:])
    np.testing.assert_array_equal(found[1], table[1])


def test_each_sequence_has_another_entry_before_the_keys_that_it_sees(
    make_plan: Callable[..., Any],
) -> None:
    plan = make_plan(keys="paged", page_size=16, **WINDOW)
    case = Case("x", 4, 2, 1, 3, 700, lengths=((3, 700),) * 4)
    table = {"page_table": np.zeros((4, 44), np.int32)}
    found = without_pages(plan, table, inputs_of(plan, case), case.sequences, 100)["page_table"]
    assert set(found[:, 598 // 16 - 1]) == {-1, 2**31 - 1, -(2**31), 100}


def test_a_case_has_them(make_plan: Callable[..., Any]) -> None:
    plan = make_plan(keys="paged", page_size=64, **WINDOW)
    drawn = AttentionFamily(plan).draw(Case("x", 1, 2, 1, 3, 700, lengths=((3, 700),)), 1)
    table = drawn.memory.views["page_table"].bits(drawn.memory.buffers["page_table"])
    assert table.view(np.int32)[0, 8] not in range(drawn.memory.views["key"].shape[0])
    assert not np.isnan(drawn.inputs.key).any()


def test_pages_that_sequences_share_are_left(make_plan: Callable[..., Any]) -> None:
    plan = make_plan(keys="paged", page_size=16, pack_heads=True, depth=128,
                     kv_dtype="fp8_e4m3", kv_scale="page", **WINDOW)  # fmt: skip
    case = Case("x", 2, 2, 1, 3, 700, lengths=((3, 700), (3, 320)), shared_pages=True)
    drawn = AttentionFamily(plan).draw(case, 1)
    value = drawn.memory.views["value"].bits(drawn.memory.buffers["value"])
    used = drawn.memory.views["page_table"].bits(drawn.memory.buffers["page_table"]).view(np.int32)
    pages = used[1, 14:20]
    assert (value[pages] & 0x7F != 0x7F).all()


@pytest.mark.parametrize("keys", [{}, {"mask": "causal"}, {"lse": False}], ids=str)
def test_nan_in_a_head_must_not_reach_another(make_plan, numpy_backend, keys) -> None:
    plan = make_plan(**keys)
    case = Case("c", 2, 4, 2, 30, 40, data="counting", nan_head=True)
    drawn = AttentionFamily(plan).draw(case, 1)
    reference = drawn.reference(np)
    found = {}
    for mutant in ("", "kept_sum"):
        with np.errstate(invalid="ignore"):
            after = numpy_backend(mutant).load(plan, None).run(drawn.memory)
            _, failures = reference.compare(drawn.memory, after, np)
        nan = np.isnan(read_out(drawn.memory, after)).any(axis=(1, 3))
        assert nan[0, 0]
        found[mutant] = (int(nan.sum()), bool(failures))
    assert found == {"": (1, False), "kept_sum": (8, True)}
    assert np.isfinite(drawn.inputs.query).all()
