"""The page on flex_attention: each config means what the Python function above it means."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.verify.reference import AttentionProblem, exact_attention

PAGES = [
    (Path(__file__).parents[2] / "docs/guide" / name).read_text(encoding="utf-8")
    for name in ("recipes-masks.md", "recipes-scores.md")
]
SECTION = re.compile(
    r"^## (?P<title>[^\n]+)\n\n```python\n(?P<python>.*?)```\n\n```yaml\n(?P<yaml>.*?)```",
    re.MULTILINE | re.DOTALL,
)
VARIANTS = {match["title"]: match for match in SECTION.finditer("".join(PAGES))}
BASE = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 64}
BATCH, HEADS, KEY_HEADS, ROWS, DEPTH = 2, 4, 2, 40, 64


def tensors():
    """Those of all variants, by name."""
    rng = np.random.default_rng(7)
    return {
        "slope": rng.uniform(0.05, 0.5, HEADS).astype(np.float32),
        "bias": rng.normal(size=(HEADS, 16)).astype(np.float32),
        "prefix": np.array([5, 12], np.int32),
        "document": np.cumsum(rng.random((BATCH, ROWS)) < 0.2, axis=1).astype(np.int32),
        "ancestor": np.tril(rng.random((ROWS, ROWS)) < 0.5).astype(np.int32)
        | np.eye(ROWS, dtype=np.int32),
    }


def inputs():
    rng = np.random.default_rng(8)
    query = rng.normal(size=(BATCH, ROWS, HEADS, DEPTH))
    key, value = (rng.normal(size=(BATCH, ROWS, KEY_HEADS, DEPTH)) for _ in range(2))
    return tuple(x.astype(np.float32) for x in (query, key, value))


def ours(title: str):
    """The output (batch, rows, heads, depth) of the kernel's definition in float64."""
    plan = build_plan(load_mapping({**BASE, **yaml.safe_load(VARIANTS[title]["yaml"])}, "x").config)
    given = {one.name: tensors()[one.name] for one in plan.declared_tensors}
    problem = AttentionProblem.of(plan, DEPTH**-0.5)
    return exact_attention(problem, *inputs(), tensors=given)


def functions(title: str, torch, arrays):
    """The functions of a variant, over a module like torch."""
    found = {"torch": torch, **arrays}
    exec(VARIANTS[title]["python"], found)
    return found.get("score_mod"), found.get("mask_mod")


def test_there_are_at_least_ten() -> None:
    assert len(VARIANTS) >= 10
    page = "".join(PAGES)
    assert page.count("```yaml") == page.count("```python") == len(VARIANTS)


@pytest.mark.parametrize("title", VARIANTS)
def test_a_config_means_the_function(title) -> None:
    score_mod, mask_mod = functions(title, np, tensors())
    query, key, value = (x.astype(np.float64) for x in inputs())
    rows, keys = np.arange(ROWS)[:, None], np.arange(ROWS)[None]
    result = ours(title)
    for b in range(BATCH):
        for h in range(HEADS):
            scores = query[b, :, h] @ key[b, :, h // 2].T * DEPTH**-0.5
            if score_mod is not None:
                scores = score_mod(scores, b, h, rows, keys)
            if mask_mod is not None:
                scores = np.where(mask_mod(b, h, rows, keys), scores, -np.inf)
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            total = weights.sum(axis=1, keepdims=True)
            expected = weights @ value[b, :, h // 2] / total
            lse = scores.max(axis=1) + np.log(total[:, 0])
            assert np.allclose(result.out[b, :, h], expected, rtol=1e-9, atol=1e-9)
            assert np.allclose(result.lse[b, h], lse, rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
@pytest.mark.parametrize("title", VARIANTS)
def test_flex_attention_computes_the_same(title) -> None:
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    arrays = {name: torch.from_numpy(array) for name, array in tensors().items()}
    score_mod, mask_mod = functions(title, torch, arrays)
    query, key, value = (torch.from_numpy(x).transpose(1, 2) for x in inputs())
    blocks = None if mask_mod is None else create_block_mask(
        mask_mod, BATCH, HEADS, ROWS, ROWS, device="cpu"
    )  # fmt: skip
    out = flex_attention(query, key, value, score_mod, blocks, enable_gqa=True)
    assert np.allclose(out.transpose(1, 2).numpy(), ours(title).out, rtol=1e-4, atol=1e-5)
