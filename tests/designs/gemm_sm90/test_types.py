"""The types of A and B of products on Hopper: those of fp8 may differ."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError
from fa4gen.render.render import render

FP8: dict[str, Any] = {"kernel": "gemm", "arch": "sm_90a", "dtype": "fp8_e5m2"}


def _plan(**keys: Any) -> Any:
    return build_plan(load_mapping({**FP8, **keys}, name="types").config)


def _instruction(**keys: Any) -> str:
    loaded = load_mapping({**FP8, **keys}, name="types")
    text = "".join(render(build_plan(loaded.config), loaded).files.values())
    return text.split("wgmma.mma_async.sync.aligned.")[1].split(" ")[0]


def test_b_is_as_a_when_not_said() -> None:
    assert (_plan().b_dtype, _plan().out_dtype) == ("fp8_e5m2", "bf16")
    assert _plan(b_dtype="fp8_e4m3").b_dtype == "fp8_e4m3"


def test_the_instruction_takes_its_operands_in_their_order() -> None:
    assert _instruction(b_dtype="fp8_e4m3").endswith(".f32.e5m2.e4m3")
    assert _instruction(b_dtype="fp8_e4m3", swap_operands=True).endswith(".f32.e4m3.e5m2")


def test_only_types_of_fp8_differ() -> None:
    with pytest.raises(ConfigError, match=r"b_dtype: fp8_e4m3, but only the types of fp8"):
        _plan(dtype="bf16", b_dtype="fp8_e4m3")
