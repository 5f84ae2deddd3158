from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fa4gen.designs.build import build_plan
from fa4gen.render.manifest import config_sha256, json_data, plan_data, read_manifest
from fa4gen.version import __version__

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Sample:
    a: tuple[int, ...]
    b: float | None
    c: object = None


def test_json_data_spells_tuples_none_and_nested_dataclasses() -> None:
    data = json_data(Sample((1, 2), 0.5, {"x": Sample((), None)}))
    assert data == {"a": [1, 2], "b": 0.5, "c": {"x": {"a": [], "b": None, "c": None}}}


@pytest.mark.parametrize("value", [float("inf"), float("nan"), {1, 2}, object(), b"x", Sample])
def test_json_data_refuses_what_json_cannot_hold(value: object) -> None:
    with pytest.raises(TypeError):
        json_data(value)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    )
)
def test_json_data_survives_a_round_trip(value: object) -> None:
    assert json.loads(json.dumps(json_data(value))) == value


def test_contents(render_small, load_text) -> None:
    kernel = render_small()
    manifest = json.loads(kernel.files["small.json"])
    loaded = load_text()
    plan = build_plan(loaded.config)
    assert manifest["schema_version"] == 1
    assert manifest["generator"] == f"fa4gen {__version__}"
    assert manifest["name"] == "small"
    assert manifest["proof"] == "rendered"
    assert manifest["config"]["num_kv_stages"] == 2
    assert "BM" not in manifest["config"]  # it has its default
    assert manifest["plan"] == plan_data(plan)
    assert manifest["plan"]["barriers"][0]["offset"] == plan.barriers[0].offset
    for name, digest in manifest["files"].items():
        assert digest == hashlib.sha256(kernel.files[name].encode()).hexdigest()


def test_config_hash_is_that_of_the_config_in_the_manifest(render_small, load_text) -> None:
    manifest = json.loads(render_small().files["small.json"])
    text = json.dumps(manifest["config"], sort_keys=True, separators=(",", ":"))
    assert manifest["inputs"]["config_sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert manifest["inputs"]["config_sha256"] == config_sha256(load_text().config)


def test_config_hash_sees_values_not_spelling(load_text) -> None:
    base = "kernel: attention\narch: sm_90a\ndtype: bf16\ndepth: 64\n"
    digest = config_sha256(load_text(base).config)
    reordered = "# a comment\ndepth: 64\ndtype: bf16\narch: sm_90a\nkernel: attention\nmask: none\n"
    assert config_sha256(load_text(reordered).config) == digest
    assert config_sha256(load_text(base + "mask: causal\n").config) != digest


def test_the_hash_of_the_templates_changes_with_one_that_is_used(
    render_small, write_template
) -> None:
    def hash_of() -> str:
        return json.loads(render_small().files["small.json"])["inputs"]["templates_sha256"]

    before = hash_of()
    write_template("merge/kernel.cu.j2", "text\n")
    assert hash_of() == before
    write_template("device/rings/barriers.h.j2", "{# note #}\n// {{ plan.num_kv_stages }} stages\n")
    assert hash_of() != before


def test_a_written_manifest_reads_back(render_small, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(render_small().files["small.json"])
    record = read_manifest(path)
    assert record is not None
    assert (record.name, record.kernel, record.arch) == ("small", "attention", "sm_90a")
    assert set(record.files) == {"small.cu", "small_barriers.h", "small_device.cuh"}


def test_an_edited_manifest_records_nothing(render_small, tmp_path: Path) -> None:
    text = render_small().files["small.json"]
    path = tmp_path / "m.json"
    edits = [
        text.replace('"depth": 128', '"depth": 64', 1),
        text.replace('"schema_version": 1', '"schema_version": 2'),
        text.replace('"manifest_sha256"', '"other"'),
        text[:-40],
        "<<<<<<< ours\n" + text,
        "[]",
        "null",
        "",
    ]
    for edited in edits:
        assert edited != text
        path.write_text(edited)
        assert read_manifest(path) is None, edited[:60]
    path.write_bytes(b"\xff\xfe\x00")
    assert read_manifest(path) is None


def test_no_manifest_records_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert read_manifest(tmp_path / "none.json") is None
    assert read_manifest(tmp_path / "file" / "none.json") is None
