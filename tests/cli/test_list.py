from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fa4gen.cli.main import main
from fa4gen.config.find import find_configs, shipped_configs
from fa4gen.designs.registry import FAMILIES, MODELS

CONFIG = "kernel: attention\narch: sm_90a\ndtype: fp16\ndepth: 96\n"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("one.yaml").write_text(CONFIG + "mask: {sliding_window: 64}\ncta_group: 2\nlse: false\n")
    return tmp_path


def test_the_table(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "."]) == 0

    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["config", "kernel", "arch", "dtype", "depth", "mask", "set", "besides"]
    assert re.split(" {2,}", row) == [
        "one.yaml", "attention", "sm_90a", "fp16", "96", "sliding_window: 64",
        "lse: false, cta_group: 2",
    ]  # fmt: skip


def test_kernels_of_both_architectures_in_one_table(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("two.yaml").write_text(
        "kernel: attention\narch: sm_103a\ndtype: fp8_e4m3\ndepth: 192\nvalue_depth: 128\n"
        "mask: {sliding_window: {left: 8, right: 4}}\n"
        "registers: {softmax: 192, correction: 64, other: 48}\n"
    )

    assert main(["list", "."]) == 0

    _, one, two = capsys.readouterr().out.splitlines()
    assert re.split(" {2,}", one)[1:5] == ["attention", "sm_90a", "fp16", "96"]
    assert re.split(" {2,}", two) == [
        "two.yaml", "attention", "sm_103a", "fp8_e4m3", "192",
        "sliding_window: {left: 8, right: 4}",
        "registers: {softmax: 192, correction: 64, other: 48}, value_depth: 128",
    ]  # fmt: skip


def test_each_family_has_a_table_of_its_own(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("zero.yaml").write_text(
        "kernel: gemm\narch: sm_100a\ndtype: fp8_e4m3\nresidual: row\nactivation: max(x, 0)\n"
        "out_dtype: fp32\nnum_accum_stages: 1\n"
    )
    Path("a.yaml").write_text("kernel: gemm\narch: sm_90a\ndtype: bf16\n")

    assert main(["list", "."]) == 0

    _, one, between, head, first, second = capsys.readouterr().out.splitlines()
    assert one.startswith("one.yaml ")
    assert between == ""
    assert re.split(" {2,}", head) == [
        "config", "kernel", "arch", "dtype", "residual", "activation", "set besides",
    ]  # fmt: skip
    assert re.split(" {2,}", first.rstrip()) == [
        "a.yaml", "gemm", "sm_90a", "bf16", "none", "none",
    ]  # fmt: skip
    assert re.split(" {2,}", second) == [
        "zero.yaml", "gemm", "sm_100a", "fp8_e4m3", "row", "max(x, 0)",
        "out_dtype: fp32, num_accum_stages: 1",
    ]  # fmt: skip


def test_every_family_has_its_columns() -> None:
    for row in MODELS:
        model = row.load()
        assert set(FAMILIES[row.design.family.name].list_columns) <= set(model.model_fields)


def test_shipped_configs_are_listed_by_names_that_find_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["list", "--format", "json"]) == 0

    listed = json.loads(capsys.readouterr().out)
    assert find_configs([item["name"] for item in listed]) == shipped_configs()
    assert listed[0]["config"]["kernel"] == "attention"


def test_a_wrong_config_does_not_hide_the_others(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("two.yaml").write_text(CONFIG.replace("96", "97"))

    assert main(["list", "."]) == 2

    out, err = capsys.readouterr()
    assert "one.yaml" in out
    assert err.startswith("two.yaml:4:8: depth: 97 is not possible")


def test_no_config_in_a_folder(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()

    assert main(["list", "empty"]) == 2
    assert capsys.readouterr().err.startswith("empty: there is no config in this folder")


def test_for_github_the_tables_are_markdown(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "one.yaml", "--format", "github"]) == 0
    head, rule, row = capsys.readouterr().out.splitlines()
    assert head.startswith("| config | kernel | arch |")
    assert rule.count("| --- ") == head.count("| ")
    assert row.startswith("| one.yaml | attention | sm_90a |")
