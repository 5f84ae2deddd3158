"""Lists of blocks among the tensors of a vendored kernel."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError
from fa4gen.vendoring.family import family_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.vendoring.verify.builds import Builds


@pytest.mark.compile
def test_the_header_names_the_lists(build: Callable[[str], Builds]) -> None:
    header = (build("lists").folder / "include" / "acme.h").read_text()
    named = re.findall(r"tensors\[(\d)\]: (\w+), int32_t \(([^)]*)\)", header)
    assert ("1", "block_ranges", "batch, 1, tiles, 6, 2") in named
    assert ("1", "block_ranges", "1, query_heads, tiles, 6, 2") in named
    assert ("2", "block_entries", "entries") in named
    assert ("3", "row_keys", "batch, 1, rows, 2") in named


def test_more_tensors_than_the_launcher_passes_are_refused() -> None:
    names = [f"tensor{number}" for number in range(6)]
    keys = {
        "kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 64, "blocks": "listed",
        "mask": " or ".join(f"{name}[key] == row" for name in names),
        "parameters": {name: {"dtype": "int32", "shape": ["keys"]} for name in names},
    }  # fmt: skip
    plan = build_plan(load_mapping(keys, "kernel").config)
    with pytest.raises(ConfigError, match="9 tensors with the lists of blocks"):
        family_of(plan).refuse(plan)
