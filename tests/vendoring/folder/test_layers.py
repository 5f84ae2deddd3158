"""Configs that extend others, and --set: the lock keeps what they give, on its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from fa4gen.cli.main import main
from fa4gen.config.load import config_from_data
from fa4gen.config.yaml_positions import read_document
from tests.vendoring.folder.conftest import CONFIG

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_lock_needs_neither_base_nor_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "mine.yaml"
    config.write_text(f"extends: {CONFIG}\nlse: false\n")
    call = [
        "vendor",
        "add",
        "mine.yaml",
        "--set",
        "mask=causal",
        "--into",
        "attn",
        "--prefix",
        "acme",
    ]
    assert main(call) == 0
    config.unlink()
    assert main(["vendor", "check", "attn"]) == 0
    (kernel,) = json.loads((tmp_path / "attn/fa4gen.lock").read_text())["kernels"]
    text = read_document(kernel["config_text"], "").value
    assert (text["mask"], text["lse"], text["depth"]) == ("causal", False, 64)
    assert config_from_data(text, "mine").name == "mine"
