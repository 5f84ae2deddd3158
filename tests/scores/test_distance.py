"""Scores to which a multiple of the distance to the key is added: a row's share is set apart."""

from __future__ import annotations

import ctypes
import subprocess

import numpy as np
import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.render.render import render
from tests.expressions.places_of import places_of
from tests.masks.kernel_text import COMPILER, definitions
from tests.scores.test_expression import PROLOGUE

BASE = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128, "mask": "causal"}
SLOPE = {"slope": {"dtype": "fp32", "shape": ["query_heads"]}}
TEXTS = {
    "score - slope[head] * (query - key)": ("scores[i] - terms.term0 * distance",
                                            "-(terms.term0 * distance)"),
    "score + slope[head] * (key - query)": ("scores[i] + terms.term0 * -distance",
                                            "terms.term0 * -distance"),
    "(query - key) * -0.25 + score": ("scores[i] + terms.term0 * distance",
                                      "terms.term0 * distance"),
    "score + (query - key)": ("scores[i] + terms.term0 * distance", "terms.term0 * distance"),
}  # fmt: skip


def plan_of(**keys):
    given = SLOPE if "slope" in keys.get("score", "") else {}
    return build_plan(load_mapping({**BASE, "parameters": given, **keys}, "host_score").config)


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_added_to_each_score_and_to_a_row(text) -> None:
    plan = plan_of(score=text)
    assert plan.distance_text == TEXTS[text]
    [(_, lines)] = plan.explained
    assert all(part in lines[-1] for part in TEXTS[text])


@pytest.mark.parametrize(
    "keys",
    [
        {"score": "score - slope[head] * (query - key)", "mask": "none"},
        {"score": "score - slope[head] * (query - key)", "mask": "key <= query + 3"},
        {"score": "score - slope[head] * (query - key)",
         "mask": {"sliding_window": {"left": 50, "right": 1}}},
        {"score": "score - slope[head] * (query - key)",
         "mask": "key <= query and (query - key) % 4 == 0"},
        {"score": "score - slope[head] * (query + key)"},
        {"score": "score * (query - key)"},
        {"score": "score - 0.5 * (query - key) * (query - key)"},
        {"score": "score - 0.5 * abs(query - key)"},
        {"score": "score - 0.5 * query * (query - key)"},
        {"score": "score - 0.5"},
        {"softcap": 20.0},
        {},
    ],
)  # fmt: skip
def test_other_masks_and_scores_are_computed_in_one_piece(keys) -> None:
    plan = plan_of(**keys)
    assert plan.distance_text is None
    assert not plan.ties_rows


@pytest.mark.parametrize("mask", ["causal", "key <= query", {"chunked": 64}, {"sliding_window": 9}])
def test_masks_that_end_at_the_query_take_distances_apart(mask) -> None:
    plan = plan_of(score="score - 0.5 * (query - key)", mask=mask)
    assert plan.distance_text is not None
    assert plan.ties_rows
    # fp16 does not hold the small probabilities of the row whose maximum is the lower one
    assert not plan_of(score="score - 0.5 * (query - key)", mask=mask, dtype="fp16").ties_rows
    # maxima that are too large by some powers of two are not for a threshold of 0
    exact = plan_of(score="score - 0.5 * (query - key)", mask=mask, rescale_threshold=0.0)
    assert exact.distance_text is None
    assert not exact.ties_rows


APPLY = """
extern "C" void apply(int32 head, int32 ahead, float scale, float* scores, float* shift,
                      const float* slope) {
  Problem problem{};
  problem.batch = 2; problem.query_heads = 4; problem.heads_per_key_head = 2;
  GIVEN
  Tile tile{};
  tile.head = head;
  const TileTerms terms = terms_of(problem, tile, 1.f / scale);
  apply_score_by_column(*reinterpret_cast<float (*)[LENGTH]>(scores), terms, ahead,
                        *reinterpret_cast<float (*)[2]>(shift));
}
"""


def host_score(text, folder):
    """The kernel's own text, built for the host."""
    loaded = load_mapping(
        {**BASE, "score": text, "parameters": SLOPE if "slope" in text else {}}, "host_score"
    )
    plan = build_plan(loaded.config)
    wanted = ("apply_score_by_column", "added_at", "terms_of", "fragment_row", "fragment_column")
    source = PROLOGUE + "\n".join(definitions(render(plan, loaded).source, wanted)) + APPLY
    source = source.replace("LENGTH", str(plan.BN // 2))
    source = source.replace("GIVEN", "problem.given_slope = slope;" if "slope" in text else "")
    (folder / "score.cc").write_text(source, encoding="utf-8")
    library = folder / "score.so"
    command = [COMPILER, "-std=c++17", "-O1", "-Wno-unknown-pragmas", "-fPIC", "-shared"]
    subprocess.run([*command, "-o", str(library), str(folder / "score.cc")], check=True)
    return plan, ctypes.CDLL(str(library))


@pytest.mark.skipif(COMPILER is None, reason="needs a host compiler for C++")
@pytest.mark.parametrize("slope", [0.3, 1e-4, 1e5])
@pytest.mark.parametrize("text", TEXTS)
def test_the_parts_are_as_exact_as_the_whole(text, slope, tmp_path) -> None:
    plan, library = host_score(text, tmp_path)
    length, head, scale = plan.BN // 2, 3, 0.125
    rng = np.random.default_rng(5)
    slopes = np.full(4, slope, np.float32)
    index = np.arange(length)
    columns = 8 * (index >> 2) + (index & 1)
    for first_key, further in ((0, 0), (0, 1), (192, 3), (96, 70000)):
        for lane in range(4):
            # The last key of the block is on the diagonal of row 0, or before it by ``further``.
            query = first_key + plan.BN - 1 + further + 8 * ((index >> 1) & 1)
            key = first_key + 2 * lane + columns
            ahead = int(query[0]) - 2 * lane - first_key - int(columns[-1])
            products = rng.normal(0, 30, length).astype(np.float32)
            got, shift = products.copy(), np.zeros(2, np.float32)
            floats = [one.ctypes.data_as(ctypes.c_void_p) for one in (got, shift, slopes)]
            library.apply(head, ahead, ctypes.c_float(scale), *floats)
            rows = (index >> 1) & 1
            found = (got.astype(np.float64) + shift.astype(np.float64)[rows]) * scale
            places = type(places_of(0))(query, key, query, head, head // 2, 1, {"slope": slopes})
            logits = products.astype(np.float64) * scale
            expected = plan.score.exact(logits, np, places)
            bound = plan.score.errors(logits, np.abs(logits) * 2.0**-22, np, places)
            assert (np.abs(found - expected) <= bound).all()
