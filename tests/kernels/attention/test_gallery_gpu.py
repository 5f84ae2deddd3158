"""On a GPU: the variants of docs/guide/recipes-*.md, each compared with its config in float64."""

from __future__ import annotations

import numpy as np
import pytest
import yaml

import fa4gen
from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.verify.reference import AttentionProblem, exact_attention
from tests.scores.test_flex_gallery import BASE, DEPTH, VARIANTS, inputs, tensors


def half(array):
    return array.astype(np.float16)


@pytest.mark.gpu("sm_90a")
@pytest.mark.parametrize("title", VARIANTS)
def test_a_variant_on_the_gpu_is_the_definition(title) -> None:
    import cupy

    keys = {**BASE, "dtype": "fp16", **yaml.safe_load(VARIANTS[title]["yaml"])}
    plan = build_plan(load_mapping(keys, "gallery").config)
    given = {one.name: tensors()[one.name] for one in plan.declared_tensors}
    rounded = [half(one) for one in inputs()]
    exact = exact_attention(AttentionProblem.of(plan, DEPTH**-0.5), *rounded, tensors=given)
    arrays = [cupy.asarray(one) for one in rounded]
    on_gpu = {name: cupy.asarray(one) for name, one in given.items()}
    out, lse = fa4gen.load(keys)(*arrays, **on_gpu)
    error = np.abs(out.get().astype(np.float64) - exact.out)
    assert error.max() <= 2e-3 * np.abs(exact.out).max()
    assert np.allclose(lse.get(), exact.lse, rtol=1e-4, atol=1e-3)
