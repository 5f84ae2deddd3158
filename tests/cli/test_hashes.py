"""Kernels of which a project keeps hashes in place of files: ``written`` in its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fa4gen.cli.main import main

CONFIG = "kernel: attention\narch: sm_90a\ndtype: bf16\ndepth: 128\n"
PROJECT = 'configs = ["kernels"]\nwritten = ["one"]\n'
HASHES = Path("generated/hashes.json")


@pytest.fixture
def work(mine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of the kernels one and two that has been rendered."""
    monkeypatch.setattr(Path, "home", lambda: mine)
    Path("kernels").mkdir()
    for name in ("one", "two"):
        Path(f"kernels/{name}.yaml").write_text(CONFIG)
    Path("fa4gen.toml").write_text(PROJECT)
    assert render() == 0
    return mine


def render(*args: str) -> int:
    return main(["render", "--templates", "mine", *args])


def check(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    status = main(["check", "--templates", "mine", "--format", "json", *args])
    return status, json.loads(capsys.readouterr().out)


def of_two(data: dict[str, Any]) -> list[tuple[str, str]]:
    """The file and verdict of each thing that was compared of the kernel two."""
    return [(f["path"], f["verdict"]) for f in data["files"] if f["kernel"] == "sm_90a/two"]


def lines() -> dict[str, Any]:
    kernels: dict[str, Any] = json.loads(HASHES.read_text())["kernels"]
    return kernels


def test_hashes_are_kept_in_one_line_a_kernel(work: Path) -> None:
    assert {path.stem for path in Path("generated").rglob("*.cu")} == {"one"}
    assert list(lines()) == ["sm_90a/two"]
    text = HASHES.read_text()
    assert text.count("\n") == text.count('"config"') + 5
    before = HASHES.stat().st_mtime_ns
    assert render() == 0
    assert HASHES.stat().st_mtime_ns == before


def test_check_compares_hashes(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys)[0] == 0
    Path("mine/device/rings/barriers.h.j2").write_text("// changed\n")
    status, data = check(capsys)
    assert status == 3
    assert of_two(data) == [(str(HASHES), "stale")]
    (line,) = (f for f in data["files"] if f["kernel"] == "sm_90a/two")
    assert "N_barriers.h" in line["reason"]
    assert "N.cu" not in line["reason"]
    assert data["fix"] == ["fa4gen render --templates mine"]
    assert render() == 0
    assert check(capsys)[0] == 0


def test_a_config_that_changes_the_plan_alone_shows(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("kernels/two.yaml").write_text(CONFIG + "lse: false\n")
    status, data = check(capsys, "two")
    assert (status, of_two(data)) == (3, [(str(HASHES), "stale")])
    (line,) = (f for f in data["files"] if f["kernel"] == "sm_90a/two")
    assert line["reason"].startswith("other hashes of config, manifest: ")


def test_a_new_config_has_no_hashes_yet(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("kernels/three.yaml").write_text(CONFIG)
    status, data = check(capsys)
    assert status == 3
    assert [f["verdict"] for f in data["files"] if f["kernel"] == "sm_90a/three"] == ["missing"]


@pytest.mark.parametrize("how", ["deleted", "written"])
def test_a_line_without_a_kernel_is_an_orphan_that_render_takes_away(
    how: str, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if how == "deleted":
        Path("kernels/two.yaml").unlink()
    else:
        Path("fa4gen.toml").write_text(PROJECT.replace('"one"', '"t*", "one"'))
        assert render("two") == 0
    status, data = check(capsys)
    assert (status, data["counts"]["orphan"]) == (3, 1)
    assert check(capsys, "one")[0] == 0  # of other kernels a single config says nothing
    assert data["fix"] == ["fa4gen render --templates mine"]
    if how == "deleted":
        Path("fa4gen.toml").write_text(PROJECT)
    assert render() == 0
    assert lines() == {}
    assert check(capsys)[0] == 0


def test_a_kernel_that_is_named_has_files_which_later_runs_keep_current(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert render("two") == 0
    assert Path("generated/sm_90a/two/two.cu").is_file()
    status, data = check(capsys)
    assert status == 0
    assert len(of_two(data)) == 5
    Path("mine/device/rings/barriers.h.j2").write_text("// changed\n")
    assert render() == 0
    assert "changed" in Path("generated/sm_90a/two/two_barriers.h").read_text()


def test_prune_deletes_files_of_kernels_that_are_kept_as_hashes(work: Path) -> None:
    assert render("two") == 0
    assert render("two", "--prune") == 0
    assert Path("generated/sm_90a/two/two.cu").is_file()
    assert render("--prune", "--yes") == 0
    assert not Path("generated/sm_90a/two").exists()
    assert list(lines()) == ["sm_90a/two"]


def test_a_named_kernel_leaves_the_lines_of_others(work: Path) -> None:
    Path("kernels/three.yaml").write_text(CONFIG)
    assert render("three") == 0
    assert list(lines()) == ["sm_90a/three", "sm_90a/two"]


def test_another_folder_gets_all_files(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert render("-o", "all") == 0
    assert {path.stem for path in Path("all").rglob("*.cu")} == {"one", "two"}
    assert not Path("all/hashes.json").exists()
    assert check(capsys, "-o", "all")[0] == 0


def test_a_config_of_nobody_is_written(work: Path) -> None:
    Path("other.yaml").write_text(CONFIG)
    assert render("other.yaml") == 0
    assert Path("generated/sm_90a/other/other.cu").is_file()
    assert list(lines()) == ["sm_90a/two"]


def test_names_that_no_kernel_has_are_refused(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("fa4gen.toml").write_text(PROJECT.replace('"one"', '"one", "tow", "sm_90a/*"'))
    assert render() == 2
    assert "written: no kernel of the project is called tow\n" in capsys.readouterr().err
    assert render("one") == 0


@pytest.mark.parametrize("text", ["<<<<<<< ours\n", "{}", '{"schema_version": 1, "kernels": []}'])
def test_hashes_after_a_bad_merge_are_refused(
    text: str, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    HASHES.write_text(text)
    assert render() == 2
    err = capsys.readouterr().err
    assert "generated/hashes.json: these are no hashes" in err
    assert "take the file of one side" in err


def test_render_reports_hashes(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    HASHES.unlink()
    capsys.readouterr()
    assert render("--dry-run") == 0
    out = capsys.readouterr().out
    assert "created   generated/hashes.json\n" in out
    assert "2 kernels, not compiled, 1 kept as hashes; files: 4 unchanged, 1 created" in out
    assert render("--format", "json") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["hashes"] == {"path": str(HASHES), "action": "created"}
    assert [len(kernel["files"]) for kernel in data["kernels"]] == [4, 0]


def test_the_recorded_candidate_needs_no_compiler(work: Path) -> None:
    """A line says which candidate was taken: it is rendered again, here and in other folders."""
    data = json.loads(HASHES.read_text())
    data["kernels"]["sm_90a/two"]["choice"] = {"set": {"BN": 80}, "compiler": "x 1", "left": []}
    HASHES.write_text(json.dumps(data))
    assert main(["render", "two", "-o", "all", "--no-compile"]) == 0
    assert "kBN = 80;" in Path("all/sm_90a/two/two.cu").read_text()
    Path("kernels/two.yaml").write_text(CONFIG + "softcap: 30.0\n")  # the record was of another
    assert main(["render", "two", "-o", "all", "--no-compile"]) == 0
    assert "kBN = 80;" not in Path("all/sm_90a/two/two.cu").read_text()


def test_what_a_compiler_took_is_believed_while_the_texts_are_the_same(work: Path) -> None:
    data = json.loads(HASHES.read_text())
    data["kernels"]["sm_90a/two"]["choice"]["compiler"] = "x 1"
    HASHES.write_text(json.dumps(data))
    assert render("--no-compile") == 0
    assert lines()["sm_90a/two"]["choice"]["compiler"] == "x 1"
    Path("mine/device/rings/barriers.h.j2").write_text("// changed\n")
    assert render("--no-compile") == 0
    assert lines()["sm_90a/two"]["choice"]["compiler"] == ""
