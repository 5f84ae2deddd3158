"""Scales of the pages of a cache: how they are drawn, and references with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fa4gen.masks import mask_of
from fa4gen.scores.score import Score
from fa4gen.scores.softcap import Softcap
from fa4gen.verify.attention import AttentionFamily
from fa4gen.verify.cases import Case
from fa4gen.verify.page_scales import page_scale_cases
from fa4gen.verify.reference import AttentionProblem, exact_attention, rounded_attention
from fa4gen.verify.rounding import Precision, from_bits
from tests.verify.conftest import make_plan

LENGTHS = ((2, 77), (2, 9), (2, 40))


def family(**more: Any) -> AttentionFamily:
    paged = {"keys": "paged", "page_size": 16, "kv_dtype": "fp8_e4m3", "kv_scale": "page"}
    return AttentionFamily(make_plan(pack_heads=True, **{**paged, **more}))


def case_of(**more: Any) -> Case:
    return Case("test/pages", 3, 4, 2, 2, 77, lengths=LENGTHS, **more)


def given(drawn: Any) -> dict[str, Any]:
    """Return the arguments of the call, as numbers."""
    memory, found = drawn.memory, {}
    for name, view in memory.views.items():
        bits = view.bits(memory.buffers[view.buffer])
        found[name] = bits.view(np.int32) if view.dtype == "int32" else from_bits(bits, view.dtype)
    return found


@pytest.mark.parametrize(
    "more",
    [{}, {"far_scales": True}, {"shared_pages": True}, {"descales": ("value",)}, {"descales": ()}],
    ids=["near", "far", "shared", "value", "none"],
)
def test_the_reference_has_what_pages_and_their_scales_hold(more: dict[str, Any]) -> None:
    """Keys and values that are multiplied by their scales beforehand give the same."""
    one = family(mask="causal")
    plan = one.plan
    drawn = one.draw(case_of(**more), 5)
    tables = given(drawn)
    exact = drawn.reference(np).exact
    assert np.isfinite(exact.out).all()
    problem = AttentionProblem.of(plan, drawn.inputs.softmax_scale)
    for number in range(len(LENGTHS)):
        places = plan.key_source.rows(number, 0, tables)
        key, value = (
            tables[name].reshape(-1, 2, 64)[places]
            * (tables[f"{name}_descale"][places // 16] if f"{name}_descale" in tables else
               np.ones((1, 2), np.float64))[:, :, None].astype(np.float64)
            for name in ("key", "value")
        )  # fmt: skip
        alone = exact_attention(
            problem, tables["query"][number : number + 1], key[None], value[None]
        )
        np.testing.assert_allclose(exact.out[number], alone.out[0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(exact.lse[number], alone.lse[0], rtol=1e-9)


def test_unused_pages_have_no_scale_and_each_other_page_its_own() -> None:
    tables = given(family().draw(case_of(), 5))
    used = np.unique(np.concatenate([row[: -(-n // 16)] for row, (_, n) in
                                     zip(tables["page_table"], LENGTHS, strict=True)]))  # fmt: skip
    for name in ("key_descale", "value_descale"):
        scales = tables[name]
        assert scales.shape == (len(tables["key"]), 2)
        assert np.isfinite(scales[used]).all()
        assert len(np.unique(scales[used])) == scales[used].size
        assert np.isnan(np.delete(scales, used, axis=0)).all()


def test_sequences_share_whole_pages_alone() -> None:
    tables = given(family().draw(case_of(shared_pages=True), 5))
    first, second, third = tables["page_table"]
    assert second[0] != first[0], "nine keys are no whole page"
    assert (third[:2] == first[:2]).all()
    assert third[2] != first[2]


def test_scales_far_apart_differ_by_a_million_and_some_pages_are_zeros() -> None:
    cases = {case.name: case for case in page_scale_cases(family().plan)}
    tables = given(family().draw(cases["pages/far_apart"], 5))
    for name in ("key_descale", "value_descale"):
        scales = tables[name][np.isfinite(tables[name])]
        some = scales[scales > 0]
        assert some.max() / some.min() > 2**17
    assert (tables["value_descale"] == 0).any()
    assert not list(page_scale_cases(family(kv_scale="head").plan))


def test_pages_of_zeros_cost_fp8_no_bits() -> None:
    """Keys whose values are zeros count in the sum, and not in what the others are scaled by."""
    problem = AttentionProblem(mask_of("none"), Score(), 0.1)
    rng = np.random.default_rng(3)
    q, k, v = (rng.standard_normal((1, rows, 2, 8), dtype=np.float32) for rows in (9, 64, 64))
    scales = {"value": np.full((1, 64, 2), 2.0**-12, np.float32)}
    scales["value"][:, ::3] = 0
    exact = exact_attention(problem, q, k, v, descales=scales)
    errors = {}
    for zero_log2 in (-40, 0):
        precision = Precision("fp8_e4m3", "bf16", probability_shift=6, zero_scale_log2=zero_log2)
        rounded = rounded_attention(problem, q, k, v, precision, rng, descales=scales)
        np.testing.assert_allclose(rounded.lse, exact.lse, atol=1e-4)
        errors[zero_log2] = np.linalg.norm(rounded.out - exact.out) / np.linalg.norm(exact.out)
    assert errors[-40] < 2.0**-4
    assert errors[0] > 0.1


@pytest.mark.parametrize("score", [Score(), Softcap(2.0)])
def test_each_key_may_have_a_scale(score: Score) -> None:
    """Rounding does not depend on powers of two that values are divided by."""
    problem = AttentionProblem(mask_of("causal"), score, 0.3)
    rng = np.random.default_rng(3)
    q = rng.standard_normal((2, 9, 6, 8), dtype=np.float32)
    k = rng.standard_normal((2, 11, 3, 8), dtype=np.float32)
    v = rng.standard_normal((2, 11, 3, 4), dtype=np.float32)
    powers = {name: 2.0 ** rng.integers(-9, 9, (2, 11, 3)).astype(np.float32) for name in "kv"}
    scales = {"key": powers["k"] * 2.0**-7, "value": powers["v"]}
    own_k, own_v = k * scales["key"][..., None], v * scales["value"][..., None]
    plain = exact_attention(problem, q, own_k, own_v)
    exact = exact_attention(problem, q, k, v, descales=scales)
    np.testing.assert_allclose(exact.out, plain.out, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(exact.lse, plain.lse, rtol=1e-11, atol=1e-13)
    precision = Precision("fp16", "bf16")
    fine = rounded_attention(problem, q, k, v, precision, rng, descales=scales)
    error = np.abs(fine.out - exact.out).max(axis=3) / np.abs(exact.out).max(axis=3)
    assert error.max() < 2.0**-7
    np.testing.assert_allclose(fine.lse, exact.lse, atol=1e-5)
