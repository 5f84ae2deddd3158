"""Expressions that nobody should write: refused with line and column, or computed as in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import yaml

from fa4gen.config.load import load_config
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError
from fa4gen.expressions.places import Places

BASE = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 64}
MASK = "key <= query and n[batch, key] == n[batch, query]"
TENSORS = {
    "t": {"dtype": "fp32", "shape": ["query_heads"]},
    "n": {"dtype": "int32", "shape": ["batch", "keys"]},
}
SCORES_REFUSED = [
    "score + " + "(" * 300 + "1" + ")" * 300, "score + " + "-" * 200 + "1",
    "score * 1e300", "score + 1e-300", "score + " + "9" * 40, "score + 2147483648",
    "score + 1e400", "score - 1e400 + 1e400", "score / 0", "score / 0.0", "score / key",
    "score / score", "score / (query - query)", "1 / (score * score)", "score // 2", "score % 3",
    "log2(score)", "log2(key) + score", "exp2(score)", "score * score * score * score",
    "tanh(score) / tanh(score)", "where(score / 0 > 1, 1, score)", "score if key else 1",
    "score + depth", "score + softcap", "score + score_scale", "score + problem", "score + kBN",
    "score + terms", "score + t", "score + t[0, 1]", "score + t[score]", "score + t[t[0]]",
    "score + inf", "score + nan", "score + True", "score + 1j", "score ** 2", "score << 2",
    "~score", "[score]", "score.real", "score()", "lambda: score", "(x := score)",
    "__import__('os').system('x')", "score; 1", "score # c", "score + \u0661", "\uff53core",
    "score\x00", " ", "0", "score + 1__0", "score + 0b1", "min(score)", "where(1, 2)",
    "min(*t)", "abs(x=score)", "not score", "score < 1", "key", "score +", "score score", ")",
]  # fmt: skip
SCORES_COMPUTED = [
    "score + " + "(" * 150 + "1" + ")" * 150, "score + " + "abs(" * 45 + "query" + ")" * 45,
    "score + 2147483647", "score / (1 + key % 7)", "log2(max(score, 1)) + score",
    "score * score", "tanh(score * 1e20)", "where(score != score, 1.0, score)", "score + t[-1]",
    "score + t[2147483647]", "score + bit(key, 1000000)", "score + bit(-1, -5)",
    "exp2(min(score, 90)) - exp2(min(score, 90)) + score",
]  # fmt: skip
MASKS_REFUSED = [
    "key <= query or " * 30 + "key <= query", "not " * 120 + "key <= query",
    "n[2147483647, -2147483648 + 1] < key - 2147483648", "key < n[batch, key] * 2",
    "n[batch, key] + 1 > key", "n[batch, key] - n[batch, query] < 1", "-n[batch, key] < 3",
    "abs(n[batch, key]) < 3", "key * 16 < query", "key // 2147483648 < 1", "key // query < 1",
    "key < 0", "t[head] < 1", "key <= query and score > 0", "seen[key] == 1",
]  # fmt: skip
MASKS_COMPUTED = [
    "not " * 50 + "key <= query", "key // 2147483647 == 0", "key % 2147483647 == key",
    "key <= query and n[batch, n[batch, n[batch, key]]] < 1", "bit(n[batch, key], key) == 1",
    "n[batch, key] // 3 == n[batch, query] % 5", "min(key, query, n[batch, key]) == key",
    "where(key < query, n[batch, key], query) > 3", "key != key",
]  # fmt: skip


def config(tmp_path, key, text):
    given = {"mask": MASK, "score": "score + t[head]", key: text}
    tensors = {name: one for name, one in TENSORS.items() if f"{name}[" in " ".join(given.values())}
    keys = {**BASE, **given, **({"parameters": tensors} if tensors else {})}
    path = tmp_path / "hostile.yaml"
    path.write_text(yaml.safe_dump(keys, sort_keys=False, width=10_000), encoding="utf-8")
    return load_config(path).config


@pytest.mark.parametrize(
    ("key", "text"),
    [("score", text) for text in SCORES_REFUSED] + [("mask", text) for text in MASKS_REFUSED],
)
def test_it_is_refused_where_it_stands(tmp_path, key, text) -> None:
    with pytest.raises(ConfigError) as caught:
        config(tmp_path, key, text)
    line = 1 + [*BASE, "mask", "score"].index(key)
    assert caught.value.problems
    for problem in caught.value.problems:
        assert problem.line >= line
        assert problem.column >= 1


@pytest.mark.parametrize(
    ("key", "text"),
    [("score", text) for text in SCORES_COMPUTED] + [("mask", text) for text in MASKS_COMPUTED],
)
def test_it_is_a_number_everywhere(tmp_path, key, text) -> None:
    plan = build_plan(config(tmp_path, key, text))
    rng = np.random.default_rng(0)
    row, keys = np.arange(9)[:, None], np.arange(12)[None]
    tensors = {
        "t": np.array([0.5, -(2.0**20)], np.float32),
        "n": rng.integers(-(2**31), 2**31, (2, 12)).astype(np.int32),
    }
    for batch, head in ((0, 0), (1, 1)):
        places = Places(row + 3, keys, row, head, 0, batch, tensors)
        assert np.broadcast_to(plan.mask.sees_at(places, np), (9, 12)).dtype == bool
        for logit in (-(2.0**32), -3.0, 0.0, 1e-8, 2.0**32):
            found = plan.score.exact(np.full((9, 12), logit), np, places)
            assert np.isfinite(found).all()
