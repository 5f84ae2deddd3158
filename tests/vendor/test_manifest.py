from __future__ import annotations

import json
from typing import Any

import pytest

from fa4gen.config.find import find_configs
from fa4gen.config.load import config_from_data, load_config
from fa4gen.render.manifest import config_data, read_manifest, sealed
from fa4gen.vendor.manifest import is_same, short_config, short_manifest, short_plan

MANIFEST: dict[str, Any] = {
    "schema_version": 1,
    "name": "n",
    "config": {
        "kernel": "gemm",
        "name": "n",
        "arch": "sm_90a",
        "dtype": "bf16",
        "scheduler": "auto",
    },
    "plan": {"BM": 64, "rows": [{"a": 1, "b": [2]}, {"a": 3}] * 9, "words": "x" * 60},
    "inputs": {"config_sha256": "c", "templates": {"t": "0" * 64}},
    "files": {"n.cu": "f" * 64},
}


def test_a_short_manifest_is_read_as_the_long_one(tmp_path) -> None:
    long, short = tmp_path / "long.json", tmp_path / "short.json"
    long.write_text(json.dumps(sealed(MANIFEST)))
    short.write_text(short_manifest(long.read_text()))
    recorded = read_manifest(long)
    assert recorded is not None
    assert read_manifest(short) == recorded


def test_what_a_short_manifest_says() -> None:
    said = json.loads(short_manifest(json.dumps(sealed(MANIFEST))))
    assert "inputs" not in said  # the lock has them
    assert said["plan"]["BM"] == 64
    assert all(said["plan"][key].startswith("sha256:") for key in ("rows", "words"))
    assert {key: said[key] for key in ("name", "files")} == {
        key: MANIFEST[key] for key in ("name", "files")
    }


def test_a_config_without_its_defaults_means_the_same() -> None:
    for path in find_configs(("d128_window_fp16", "gemm_bf16_bias_gelu_sm90", "decode_d128_bf16")):
        config = config_data(load_config(path).config)
        short = short_config(config)
        assert len(short) < len(config)
        assert config_data(config_from_data(short, config["name"])) == config


@pytest.mark.parametrize("edit", [{"name": "m"}, {"plan": {"BM": 65}}, {"files": {}}])
def test_an_edited_short_manifest_is_none(edit, tmp_path) -> None:
    said = json.loads(short_manifest(json.dumps(sealed(MANIFEST))))
    path = tmp_path / "n.json"
    path.write_text(json.dumps({**said, **edit}))
    assert read_manifest(path) is None


def test_a_table_that_changed_shows_in_the_plan() -> None:
    plan = MANIFEST["plan"]
    other = {**plan, "rows": [*plan["rows"][:-1], {"a": 4}]}
    changed = [key for key in plan if short_plan(plan, {})[key] != short_plan(other, {})[key]]
    assert changed == ["rows"]


def test_a_longer_hash_of_an_older_folder_is_the_same() -> None:
    assert is_same("sha256:0123456789abcdef", "sha256:01234567")
    assert not is_same("sha256:0123456789abcdef", "sha256:01234568")
    assert not is_same("sha256:01234567", None)
    assert is_same(1, 1)
    assert not is_same("a", "ab")


def test_the_plan_has_nothing_that_config_and_name_say() -> None:
    plan = {"name": "n", "dtype": "bf16", "BM": 64, "no": None, "off": False, "none": [], "x": 0}
    assert short_plan(plan, {"dtype": "bf16"}) == {"BM": 64, "x": 0}
