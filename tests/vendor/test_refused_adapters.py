"""Adapters that cannot pass all that a kernel takes are refused, with what they lack."""

from __future__ import annotations

import pytest

from fa4gen.errors import ConfigError
from fa4gen.vendor.folder import refuse_adapters
from fa4gen.vendor.model import Request
from tests.vendor.launcher.shipped import facts_of, shipped_plans


def refuse(name: str, *adapters: str) -> None:
    refuse_adapters(Request("acme", (name,), adapters), (facts_of(name, shipped_plans()[name]),))


def test_an_adapter_without_tables_is_refused_for_a_ragged_batch() -> None:
    with pytest.raises(ConfigError, match="jax does not pass query_offsets and key_offsets yet"):
        refuse("d128_ragged_causal_bf16", "python", "jax")


def test_an_adapter_without_sinks_is_refused() -> None:
    with pytest.raises(ConfigError, match="tvm-ffi does not pass sinks yet"):
        refuse("d64_window_sinks_bf16", "tvm-ffi")


def test_an_adapter_without_workspaces_of_any_size_is_refused() -> None:
    expected = "jax does not pass a workspace for partial results yet"
    with pytest.raises(ConfigError, match=expected):
        refuse("decode_d128_bf16", "python", "jax")


def test_adapters_are_refused_for_what_mask_and_score_read() -> None:
    with pytest.raises(ConfigError) as refused:
        refuse("d128_alibi_causal_bf16", "python", "jax")
    messages = [problem.message for problem in refused.value.problems]
    assert [message.partition(": ")[2] for message in messages] == [
        "the adapter python does not pass slope yet",
        "the adapter jax does not pass slope yet",
    ]


def test_other_adapters_and_kernels_are_taken() -> None:
    refuse("d128_ragged_causal_bf16", "python", "torch")
    refuse("decode_d128_splits_bf16", "python", "torch")
    refuse("d128_causal_bf16", "python", "torch", "jax", "tvm-ffi")
