"""Scores written as expressions: what they mean, and what a kernel makes of them."""

from __future__ import annotations

import ctypes
import re
import subprocess

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fa4gen.config.load import load_config, load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError
from fa4gen.expressions.arrays import RealArrays
from fa4gen.expressions.tree import evaluate
from fa4gen.expressions.words import ExpressionError
from fa4gen.render.render import render
from fa4gen.scores import Score, Softcap, score_of
from fa4gen.scores.expression import ExpressionScore, parse_score
from tests.expressions.drawn_scores import SCORES, TENSORS
from tests.expressions.places_of import places_of
from tests.masks.kernel_text import COMPILER, definitions

CONFIG = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128}
ALIBI = {
    "score": "score - slope[head] * (query - key)",
    "parameters": {"slope": {"dtype": "fp32", "shape": ["query_heads"]}},
}


def plan_of(**keys):
    return build_plan(load_mapping({**CONFIG, **keys}, "kernel").config)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("score", Score()),
        ("+score", Score()),
        ("30 * tanh(score / 30)", Softcap(30.0)),
        ("tanh(score / 12.5) * 12.5", Softcap(12.5)),
    ],
)
def test_a_text_that_means_another_function_is_that_one(text, same) -> None:
    assert parse_score(text) == same


@pytest.mark.parametrize("text", ["20 * tanh(score / 30)", "tanh(score)", "tanh(score / 30) * 20"])
def test_what_is_almost_a_softcap_is_not_one(text) -> None:
    assert isinstance(parse_score(text), ExpressionScore)


def test_a_softcap_as_text_gives_the_kernel_of_the_key() -> None:
    plans = [plan_of(softcap=30.0), plan_of(score="30 * tanh(score / 30)")]
    assert plans[0].score == plans[1].score


def test_a_score_depends_on_score_and_there_is_one() -> None:
    with pytest.raises(ExpressionError, match="does not depend on score"):
        parse_score("1.0 * key")
    with pytest.raises(ValueError, match="softcap and score are functions of the same logits"):
        score_of({"softcap": 1.0, "score": "score + 1.0"})


@given(text=SCORES, seed=st.integers(0, 100), scale=st.sampled_from([0.1, 1.0, 7.0]))
def test_what_a_kernel_computes_is_the_function(text, seed, scale) -> None:
    try:
        score = parse_score(text, TENSORS)
    except ExpressionError:
        assume(False)
    assume(isinstance(score, ExpressionScore))
    places = places_of(seed)
    products = np.random.default_rng(seed).normal(0, 9, (7, 9))
    factor = 1 / scale if score.added is not None else scale
    values = {**places.indices, "score": products, "factor": factor}
    got = evaluate(score.kernel_tree, values, RealArrays(np, places.tensors))
    got = got * (scale if score.unit("scale") == "scale" else 1.0)
    expected = score.exact(products * scale, np, places)
    assert np.allclose(got, expected, rtol=1e-9, atol=1e-9)


SHAPES = {
    "slope": {"dtype": "fp32", "shape": ["query_heads"]},
    "bias": {"dtype": "fp32", "shape": ["key_heads", 64]},
    "document": {"dtype": "int32", "shape": ["batch", "keys"]},
}


def given_to(text):
    """The tensors that a text reads, as a config declares them."""
    return {name: value for name, value in SHAPES.items() if name in text}


@pytest.mark.parametrize(
    ("text", "per_score", "terms"),
    [
        ("score - 0.5 * (query - key)",
         "scores[i] - terms.term0 * (static_cast<float>(query - first_key) - "
         "static_cast<float>(column))", ["inverse_scale * 0.5f"]),
        ("score - slope[head] * (query - key)",
         "scores[i] - terms.term0 * (static_cast<float>(query - first_key) - "
         "static_cast<float>(column))", ["inverse_scale * given_slope_at(problem, tile.head)"]),
        ("score + bias[key_head, min(abs(query - key), 63)]",
         "scores[i] + terms.term0 * given_bias_at(problem, terms.key_head, "
         "min(abs(query - key), 63))", ["inverse_scale", "tile.head / problem.heads_per_key_head"]),
        ("tanh(score / 20) * 10", "tanh_by_exp2(scores[i] * terms.term0) * 10.f",
         ["score_scale * 0.05f"]),
    ],
)  # fmt: skip
def test_what_is_computed_for_each_score_and_once_a_tile(text, per_score, terms) -> None:
    plan = plan_of(score=text, parameters=given_to(text))
    assert plan.score_text.text == per_score
    assert [term.value for term in plan.terms] == terms


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"score": "score + 1.0", "softcap": 3.0}, "softcap and score are functions of the same"),
        ({**ALIBI, "score": "score + 1.0"}, "neither mask nor score reads slope"),
        ({"score": "score - slope[head]"}, "'slope' is not a tensor; add it to parameters"),
        ({**ALIBI, "parameters": {"key": ALIBI["parameters"]["slope"]}}, "key has a meaning"),
        ({**ALIBI, "parameters": {"A": ALIBI["parameters"]["slope"]}}, "'A' is not a name"),
        ({**ALIBI, "parameters": {"slope": {"dtype": "fp32", "shape": []}}}, "shape"),
        ({**ALIBI, "parameters": {"slope": {"dtype": "fp64", "shape": [3]}}}, "fp32"),
        ({"mask": "key <= query and slope[head] < 3", **ALIBI},
         "mask: slope is of floats, and a mask has none"),
        ({"mask": "key <= document[batch]",
          "parameters": {"document": {"dtype": "int32", "shape": ["batch", "rows"]}}},
         "has 1 indices, and document is (batch, rows)"),
        ({"mask": "document[batch, key] > 3", "key_lengths": True,
          "parameters": {"document": {"dtype": "int32", "shape": ["batch", "keys"]}}},
         "document (batch, keys): keys are those of a call, and here they differ"),
        ({"mask": "tree", "batching": "ragged"},
         "ancestors (batch, rows): rows and keys are those of a call, and here they differ"),
        ({"pack_heads": True, "packed_rows": 64, **ALIBI}, "score with packed_rows: 64 is not"),
    ],
)  # fmt: skip
def test_what_a_config_may_not_say(keys, words) -> None:
    with pytest.raises(ConfigError) as caught:
        plan_of(**keys)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ('score: "score - 0.5 / (query - key)"', 24),
        ("score: 'score - 0.5 / (query - key)'", 24),
        ("score: score - 0.5 / (query - key)", 23),
        ('score:   "score - 0.5 / (query - key)"  # why', 26),
        ('mask: "key <= qery"', 15),
        ('score: "score - 0.5 \\x2f (query - key)"', 8),  # not as written: the value's place
    ],
)
def test_an_error_is_at_its_place_in_the_file(tmp_path, line, column) -> None:
    file = tmp_path / "kernel.yaml"
    lines = [*(f"{key}: {value}" for key, value in CONFIG.items()), line]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    [problem] = caught.value.problems
    assert (problem.line, problem.column) == (5, column)


DESIGNS = {
    "hopper": {"arch": "sm_90a", "depth": 128},
    "hopper depth 512": {"arch": "sm_90a", "depth": 512, "cta_group": 2},
    "blackwell": {"arch": "sm_100a", "depth": 128},
    "blackwell depth 512": {"arch": "sm_100a", "depth": 512, "cta_group": 2},
}
TEXTS = [
    "score - slope[head] * (query - key)",
    "score + bias[key_head, abs(query - key)] - 0.25 * abs(3 * key - query) / 7",
    "where(document[batch, key] == document[batch, row], score, tanh(score) * 4 - row % 5)",
    "score * exp2(-abs(query - key) / 64) + log2(1 + key) * slope[head]",
]
PROLOGUE = """
#define __device__
#define __forceinline__ inline
using int32 = int;
using uint32 = unsigned;
using int64 = long long;
static int32 max(int32 a, int32 b) { return a > b ? a : b; }
static int32 min(int32 a, int32 b) { return a < b ? a : b; }
static float exp2_approx(float x) { return __builtin_exp2f(x); }
static float log2_approx(float x) { return __builtin_log2f(x); }
static float tanh_by_exp2(float x) { return __builtin_tanhf(x); }
static float __fdividef(float a, float b) { return a / b; }
static int32 load_unchanging_int32(const int32* address) { return *address; }
static int32 abs(int32 x) { return x < 0 ? -x : x; }
static float load_unchanging_float(const float* address) { return *address; }
static struct { uint32 x; } threadIdx;
"""
APPLY = """
extern "C" void apply(int32 query_rows, int32 key_rows, int32 batch, int32 head, int32 row,
                      int32 first_key, float scale, float* scores,
                      const float* slope, const float* bias, const int32* document) {
  Problem problem{};
  problem.batch = 2; problem.query_heads = 4; problem.heads_per_key_head = 2;
  problem.query_rows = query_rows; problem.key_rows = key_rows;
  GIVEN
  Tile tile{};
  tile.head = head; tile.batch = batch;
  const TileTerms terms = terms_of(problem, tile, FACTOR);
  apply_score(problem, *reinterpret_cast<float (*)[LENGTH]>(scores), terms, row, first_key);
}
"""


def host_score(keys, text, folder):
    """The kernel's own text of a score function, built for the host."""
    given = given_to(text)
    loaded = load_mapping({**CONFIG, **keys, "score": text, "parameters": given}, "host_score")
    plan = build_plan(loaded.config)
    rendered = render(plan, loaded)
    wanted = ["apply_score", "terms_of"]
    wanted += ["fragment_row", "fragment_column"] if plan.arch == "sm_90a" else []
    kernel = rendered.source
    length = getattr(plan, "own_keys", plan.BN) // 2 if plan.arch == "sm_90a" else (
        plan.BN // (2 if plan.depth == 512 else 1)
    )  # fmt: skip
    factor = "1.f / scale" if plan.score.added is not None else "scale"
    source = PROLOGUE + "\n".join(definitions(kernel, tuple(wanted))) + APPLY
    source = source.replace("FACTOR", factor).replace("LENGTH", str(length))
    source = source.replace("GIVEN", " ".join(f"problem.given_{n} = {n};" for n in given))
    (folder / "score.cc").write_text(source, encoding="utf-8")
    library = folder / "score.so"
    command = [COMPILER, "-std=c++17", "-O1", "-Wno-unknown-pragmas", "-fPIC", "-shared"]
    subprocess.run([*command, "-o", str(library), str(folder / "score.cc")], check=True)
    return plan, length, ctypes.CDLL(str(library))


@pytest.mark.skipif(COMPILER is None, reason="needs a host compiler for C++")
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("design", DESIGNS)
def test_a_kernels_text_computes_the_function(design, text, tmp_path) -> None:
    if design == "hopper depth 512" and re.search(r"\[[^\]]*\bkey\b", text):
        pytest.skip("refused: no registers for what is read key by key")
    plan, length, library = host_score(DESIGNS[design], text, tmp_path)
    rng = np.random.default_rng(5)
    query_rows, key_rows, batch, head, scale = 50, 300, 1, 3, 0.125
    tensors = {
        "slope": rng.normal(size=4).astype(np.float32),
        "bias": rng.normal(size=(2, 64)).astype(np.float32),
        "document": rng.integers(0, 3, (2, key_rows)).astype(np.int32),
    }
    for row, first_key in ((0, 0), (37, 192), (60, 290)):  # the last past rows and keys
        products = rng.normal(0, 30, length).astype(np.float32)
        got = products.copy()
        lane = 2 if plan.arch == "sm_90a" else 0  # the second of four lanes' first column
        pointers = [tensors[name].ctypes.data_as(ctypes.c_void_p) for name in tensors]
        library.apply(
            query_rows, key_rows, batch, head, row, first_key + lane, ctypes.c_float(scale),
            got.ctypes.data_as(ctypes.c_void_p), *pointers,
        )  # fmt: skip
        index = np.arange(length)
        hopper = plan.arch == "sm_90a"
        rows = row + (8 * ((index >> 1) & 1) if hopper else 0) + 0 * index
        keys = first_key + lane + (8 * (index >> 2) + (index & 1) if hopper else index)
        places = places_of(0)
        places = type(places)(
            rows + key_rows - query_rows, keys, rows, head, head // 2, batch, tensors
        )
        logits = products.astype(np.float64) * scale
        expected = plan.score.exact(logits, np, places)
        bound = plan.score.errors(logits, np.abs(logits) * 2.0**-22, np, places)
        unit = scale if plan.score.added is not None else 1.0
        assert (np.abs(got.astype(np.float64) * unit - expected) <= bound).all()
