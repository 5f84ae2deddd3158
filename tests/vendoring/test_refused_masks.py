"""Masks, tensors and lists that the C of a vendored folder cannot judge or pass are refused."""

from __future__ import annotations

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError
from fa4gen.vendoring.family import family_of

CONFIG = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128}


def refuse(mask: str, **keys: object) -> None:
    plan = build_plan(load_mapping({**CONFIG, "mask": mask, **keys}, "kernel").config)
    family_of(plan).refuse(plan)


def test_tensors_beside_sequences_are_refused() -> None:
    tensors = {"slope": {"dtype": "fp32", "shape": ["query_heads"]}}
    with pytest.raises(ConfigError, match="no tensors with sequences of different lengths"):
        refuse("causal", batching="ragged", score="score * slope[head]", parameters=tensors)


def test_a_condition_of_a_decode_kernel_is_refused() -> None:
    with pytest.raises(ConfigError, match="no reference for conditions of decode kernels yet"):
        refuse("key <= query and key >= query // 2", pack_heads=True)


def test_a_condition_on_heads_is_taken() -> None:
    refuse("key <= query and (head == 0 or query - key < 16)")


def test_a_condition_is_taken() -> None:
    refuse("key <= query or key < 16")


def test_a_condition_that_means_a_named_mask_is_taken() -> None:
    refuse("key <= query")


@pytest.mark.parametrize("kv_scale", ["head", "page"])
def test_keys_of_another_type_than_the_query_are_taken(kv_scale: str) -> None:
    pages = {"keys": "paged", "page_size": 16}
    refuse("causal", pack_heads=True, kv_dtype="fp8_e4m3", kv_scale=kv_scale, **pages)


def test_values_that_are_columns_of_the_keys_are_taken() -> None:
    refuse("causal", pack_heads=True, depth=576, value_depth=512)


def test_lists_of_blocks_are_taken() -> None:
    refuse("key <= query or key % 300 < 16", blocks="listed")
