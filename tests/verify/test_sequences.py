"""Inputs and references of sequences of different lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fa4gen.verify.attention import AttentionFamily
from fa4gen.verify.cases import Case, default_cases, emulated_cases
from fa4gen.verify.memory import read_out
from fa4gen.verify.reference import AttentionProblem, exact_attention
from fa4gen.verify.rounding import POISON_BITS, from_bits
from fa4gen.verify.sequence_tensors import draw_tables, in_place
from tests.verify.conftest import make_plan as plan_of

LENGTHS = ((3, 40), (0, 2), (70, 0), (1, 33))
PLANS: dict[str, dict[str, Any]] = {
    "ragged": {"batching": "ragged"},
    "pages": {"batching": "ragged", "keys": "paged", "page_size": 16},
    "lengths": {"batching": "ragged", "keys": "dense", "key_lengths": True},
}
EIGHT_BITS = {"batching": "ragged", "arch": "sm_100a", "dtype": "fp8_e4m3"}

SINKS = {"batching": "ragged", "sinks": True}


def case_of(lengths: tuple[tuple[int, int], ...]) -> Case:
    rows, keys = (max(pair[i] for pair in lengths) for i in (0, 1))
    return Case("ragged/probe", len(lengths), 2, 1, rows, keys, lengths=lengths)


@pytest.mark.parametrize("keys", PLANS.values(), ids=PLANS)
def test_a_kernel_finds_the_keys_that_were_drawn_and_all_else_is_nan(keys: dict[str, Any]) -> None:
    plan = plan_of(**keys)
    rng = np.random.default_rng(1)
    tables = draw_tables(plan, LENGTHS, rng)
    drawn = rng.standard_normal((1, 75, 1, 64), dtype=np.float32)
    whole = in_place(plan, case_of(LENGTHS), drawn, tables)
    flat = whole.reshape(-1, 1, 64)
    found = [plan.key_source.rows(number, whole.shape[1], tables) for number in range(len(LENGTHS))]
    assert [len(rows) for rows in found] == [keys for _, keys in LENGTHS]
    every = np.concatenate(found)
    assert len(set(every.tolist())) == len(every)
    np.testing.assert_array_equal(flat[every], drawn[0])
    assert np.isnan(np.delete(flat, every, axis=0)).all()


def test_entries_that_no_sequence_reaches_are_no_pages() -> None:
    plan = plan_of(**PLANS["pages"])
    table = draw_tables(plan, LENGTHS, np.random.default_rng(1))["page_table"]
    used = [set(row[row != POISON_BITS["int32"]]) for row in table]
    assert [len(pages) for pages in used] == [3, 1, 0, 3]
    assert len(set.union(*used)) == 7


@pytest.mark.parametrize("keys", [*PLANS.values(), EIGHT_BITS, SINKS], ids=[*PLANS, "fp8", "sinks"])
def test_the_reference_is_that_of_each_sequence_alone(keys: dict[str, Any]) -> None:
    plan = plan_of(**keys, mask="causal")
    drawn = AttentionFamily(plan).draw(case_of(LENGTHS), 3)
    memory, tables = drawn.memory, {}
    for name, view in memory.views.items():
        bits = view.bits(memory.buffers[view.buffer])
        tables[name] = bits.view(np.int32) if view.dtype == "int32" else from_bits(bits, view.dtype)
    exact = drawn.reference(np).exact
    whole = [tables[name] for name in ("key", "value")]
    rows_each = 0 if plan.keys == "ragged" else whole[0].shape[1]
    flat_key, flat_value = (array.reshape(-1, *array.shape[-2:]) for array in whole)
    problem = AttentionProblem.of(plan, plan.depth**-0.5)
    for number in range(len(LENGTHS)):
        ours = plan.query_source.rows(number, 0, tables)
        places = plan.key_source.rows(number, rows_each, tables)
        keys_ = np.clip(places, 0, len(flat_key) - 1)  # pages that no row sees are none
        scales = {
            name.removesuffix("_descale"): array[number : number + 1]
            for name, array in tables.items()
            if name.endswith("_descale")
        }
        assert len(scales) == 3 * plan.has_descales
        alone = exact_attention(
            problem, tables["query"][None, ours], flat_key[None, keys_], flat_value[None, keys_],
            descales=scales, sinks=tables.get("sinks"),
        )  # fmt: skip
        np.testing.assert_array_equal(exact.out[0, ours], alone.out[0])
        np.testing.assert_array_equal(exact.lse[0][:, ours], alone.lse[0])
    assert read_out(memory, memory.buffers).shape == exact.out.shape


def test_sequences_read_their_own_elements_of_tensors() -> None:
    plan = plan_of(mask="tree", keys="paged", page_size=64, pack_heads=True, depth=128)
    lengths = ((4, 100), (4, 70), (4, 9))
    drawn = AttentionFamily(plan).draw(Case("tree", 3, 4, 2, 4, 100, lengths=lengths), 3)
    inputs, exact, begin = drawn.inputs, drawn.reference(np).exact, 0
    assert all(tensor.shape[0] == "batch" for tensor in plan.declared_tensors)
    for number, (_, keys) in enumerate(lengths):
        own = {name: array[number : number + 1] for name, array in inputs.tensors.items()}
        ours = slice(begin, begin + keys)
        alone = exact_attention(
            AttentionProblem.of(plan, inputs.softmax_scale), inputs.query[number : number + 1],
            inputs.key[:, ours], inputs.value[:, ours], tensors=own,
        )  # fmt: skip
        np.testing.assert_array_equal(exact.out[number], alone.out[0])
        begin += keys


def test_cases_have_sequences_of_different_lengths_only_where_kernels_take_them() -> None:
    for cases in (default_cases, emulated_cases):
        assert any(case.lengths for case in cases(plan_of(batching="ragged")))
        assert not any(case.lengths for case in cases(plan_of()))


def test_dense_queries_are_of_one_length_in_every_case() -> None:
    for case in default_cases(plan_of(key_lengths=True)):
        assert len({rows for rows, _ in case.sequences}) <= 1
