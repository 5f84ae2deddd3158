from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from fa4gen.cli.main import main

CONFIG = "kernel: attention\narch: sm_90a\ndtype: bf16\ndepth: 128\nnum_kv_stages: 2\n"


@pytest.fixture
def work(mine: Path) -> Path:
    """A user's folder with two configs in kernels/ and small templates in mine/."""
    kernel = mine / "mine/attention_sm90/kernel.cu.j2"
    kernel.write_text("// {{ plan.name }}\n// depth {{ plan.depth }}\n")
    (mine / "mine/device/rings/barriers.h.j2").write_text("// {{ plan.num_kv_stages }} stages\n")
    (mine / "kernels").mkdir()
    (mine / "kernels/one.yaml").write_text(CONFIG)
    (mine / "kernels/two.yaml").write_text(CONFIG.replace("128", "64"))
    return mine


def render(*args: str) -> int:
    return main(["render", "--templates", "mine", *args])


def generated(work: Path) -> set[str]:
    return {str(p.relative_to(work)) for p in (work / "generated").rglob("*") if p.is_file()}


def files_of(name: str) -> set[str]:
    ends = (".cu", "_barriers.h", "_device.cuh", ".json")
    return {f"generated/sm_90a/{name}/{name}{end}" for end in ends}


def test_a_folder_of_configs(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert render("kernels") == 0
    assert generated(work) == files_of("one") | files_of("two")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "created   generated/sm_90a/one/one.cu"
    assert lines[-1] == "rendered 2 kernels, not compiled; files: 8 created"
    assert render("kernels") == 0
    assert capsys.readouterr().out == "rendered 2 kernels, not compiled; files: 8 unchanged\n"


def test_a_full_disk_leaves_no_file_of_any_kernel(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_bytes = Path.write_bytes

    def full_disk(path: Path, data: bytes) -> int:
        if "two_barriers.h" in path.name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write_bytes(path, data)

    before = sorted(work.rglob("*"))
    monkeypatch.setattr(Path, "write_bytes", full_disk)
    assert render("kernels") == 2
    assert "generated/sm_90a/two: cannot write: No space left" in capsys.readouterr().err
    assert sorted(work.rglob("*")) == before


def test_a_pipe_is_neither_waited_for_nor_replaced(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = work / "generated/sm_90a/one/one.cu"
    pipe.parent.mkdir(parents=True)
    os.mkfifo(pipe)
    assert render("kernels") == 2
    assert "one.cu: a pipe or device is here, not a file" in capsys.readouterr().err
    assert pipe.is_fifo()


def test_another_output_folder(work: Path) -> None:
    assert render("kernels/one.yaml", "-o", "deep/er") == 0
    assert (work / "deep/er/sm_90a/one/one.cu").is_file()
    assert not (work / "generated").exists()


@pytest.mark.parametrize("words", [("--out", ""), ("--out=",), ("--templates", "")])
def test_an_empty_path_is_not_the_current_folder(
    work: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    before = sorted(work.rglob("*"))
    assert main(["render", "configs", *words]) == 2
    assert "'' names no file or folder" in capsys.readouterr().err
    assert sorted(work.rglob("*")) == before


def test_dry_run_writes_nothing(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert render("kernels", "--dry-run") == 0
    assert not (work / "generated").exists()
    out = capsys.readouterr().out
    assert "created   generated/sm_90a/one/one.cu" in out
    assert out.endswith(
        "dry run, nothing written: rendered 2 kernels, not compiled; files: 8 created\n"
    )


def test_diff_shows_what_changes(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    render("kernels")
    (work / "mine/device/rings/barriers.h.j2").write_text("// new\n")
    capsys.readouterr()
    assert render("kernels/one.yaml", "--diff") == 0
    out = capsys.readouterr().out
    assert "-// 2 stages\n+// new\n" in out
    assert "one.cu" not in out.replace('"one.cu"', "")


def test_one_edited_file_stops_the_whole_run(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    render("kernels/two.yaml")
    edited = work / "generated/sm_90a/two/two.cu"
    edited.write_text("// mine\n")
    before = generated(work)
    assert render("kernels") == 3
    assert generated(work) == before
    assert edited.read_text() == "// mine\n"
    err = capsys.readouterr().err
    assert "generated/sm_90a/two/two.cu: not overwritten: changed since fa4gen wrote it" in err
    assert "--force" in err
    assert render("kernels", "--force") == 0
    assert edited.read_text() == "// two\n// depth 64\n"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (CONFIG.replace("128", "100"), "kernels/two.yaml:4:"),
        (CONFIG.replace("stages: 2", "stages: 16"), "kernels/two.yaml:5:16: shared memory: "),
        (CONFIG + "name: one\n", "kernels/two.yaml: the same arch and name as kernels/one.yaml"),
    ],
)
def test_a_wrong_config_leaves_everything_unwritten(work: Path, capsys, wrong, words) -> None:
    (work / "kernels/two.yaml").write_text(wrong)
    assert render("kernels") == 2
    assert words in capsys.readouterr().err
    assert not (work / "generated").exists()


def test_a_template_error_names_template_and_key(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = work / "mine/attention_sm90/kernel.cu.j2"
    path.write_text("// {{ plan.name }}\n// {{ plan.num_kv_stages / plan.nothing }}\n")
    assert render("kernels/one.yaml") == 2
    err = capsys.readouterr().err
    assert err.startswith("mine/attention_sm90/kernel.cu.j2:2:33: plan has no field 'nothing'")
    assert "config key num_kv_stages: 2 (kernels/one.yaml:5)" in err
    assert "Traceback" not in err
    assert not (work / "generated").exists()


@pytest.mark.parametrize("output_format", ["text", "json", "github"])
def test_an_output_folder_that_cannot_be_written(
    work: Path, capsys: pytest.CaptureFixture[str], output_format: str
) -> None:
    (work / "file").write_text("mine")
    assert render("kernels", "-o", "file/out", "--format", output_format) == 2
    captured = capsys.readouterr()
    assert "cannot write" in captured.err
    if output_format == "json":
        assert json.loads(captured.out)["exit_status"] == 2
    assert (work / "file").read_text() == "mine"


def test_prune(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "fa4gen.toml").write_text('configs = ["kernels"]\n')
    render()
    (work / "kernels/two.yaml").unlink()
    assert render("kernels", "--prune") == 0  # configs say nothing about other kernels
    assert generated(work) == files_of("one") | files_of("two")
    capsys.readouterr()
    assert render() == 0
    assert "4 files that no config renders to left alone" in capsys.readouterr().err
    assert render("--prune", "--dry-run") == 0
    assert generated(work) == files_of("one") | files_of("two")
    assert "pruned    generated/sm_90a/two/two.cu" in capsys.readouterr().out
    edited = work / "generated/sm_90a/two/two_barriers.h"
    edited.write_text("// mine\n")
    assert render("--prune", "--yes") == 0
    assert edited.read_text() == "// mine\n"
    assert not (work / "generated/sm_90a/two/two.cu").exists()


def test_json(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert render("kernels/one.yaml", "--format", "json", "--diff") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["dry_run"] is False
    (kernel,) = data["kernels"]
    assert (kernel["name"], kernel["arch"], kernel["proof"]) == ("one", "sm_90a", "rendered")
    assert kernel["config"] == "kernels/one.yaml"
    assert [f["action"] for f in kernel["files"]] == ["created"] * 4
    assert {f["path"] for f in kernel["files"]} == files_of("one")
    assert "+// depth 128" in kernel["files"][0]["diff"]
