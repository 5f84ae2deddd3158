from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest

from fa4gen.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = "kernel: attention\narch: sm_90a\ndtype: bf16\ndepth: 128\n"
TEMPLATES = ["--templates", "mine"]


@pytest.fixture
def work(mine: Path) -> Path:
    """Two configs in kernels/, rendered into generated/ by small templates in mine/."""
    (mine / "kernels").mkdir()
    for name in ("one", "two"):
        (mine / f"kernels/{name}.yaml").write_text(CONFIG)
    (mine / "fa4gen.toml").write_text('configs = ["kernels"]\n')
    assert main(["render", *TEMPLATES]) == 0
    return mine


def check(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, dict]:
    capsys.readouterr()
    status = main(["check", *TEMPLATES, "--format", "json", *args])
    return status, json.loads(capsys.readouterr().out)


def test_current(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["check", *TEMPLATES]) == 0
    assert capsys.readouterr().out == "8 files: 8 current\n"
    status, data = check(capsys)
    assert status == 0
    assert data["current"] is True
    assert data["fix"] == []


def spoil(work: Path, how: str) -> None:
    folder = work / "generated/sm_90a/one"
    if how == "stale":
        (work / "mine/device/rings/barriers.h.j2").write_text("// new {{ plan.name }}\n")
    elif how == "edited":
        (folder / "one.cu").write_text("// mine\n")
    elif how == "edited manifest":
        (folder / "one.json").write_text("{}")
    elif how == "missing":
        (folder / "one_barriers.h").unlink()
    elif how == "missing folder":
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    elif how == "orphan":
        (work / "kernels/two.yaml").unlink()
    elif how == "orphan that is edited":
        (work / "kernels/two.yaml").unlink()
        (work / "generated/sm_90a/two/two.cu").write_text("// mine\n")
    elif how == "orphan beside":
        (folder / "my notes.txt").write_text("mine\n")
    else:
        raise AssertionError(how)


WAYS = [
    ["stale"],
    ["edited"],
    ["edited manifest"],
    ["missing"],
    ["missing folder"],
    ["orphan"],
    ["orphan that is edited"],
    ["orphan beside"],
    ["stale", "edited"],
    ["edited", "orphan", "orphan beside"],
    ["stale", "missing", "orphan that is edited"],
]


@pytest.mark.parametrize("ways", WAYS, ids=", ".join)
def test_the_printed_commands_make_everything_current(
    work: Path, capsys: pytest.CaptureFixture[str], ways: list[str]
) -> None:
    for way in ways:
        spoil(work, way)
    before = {p: p.read_bytes() for p in work.rglob("*") if p.is_file()}
    status, data = check(capsys)
    assert {p: p.read_bytes() for p in work.rglob("*") if p.is_file()} == before
    assert status == 3
    assert data["current"] is False
    wanted = {way.split()[0] for way in ways}
    assert wanted <= {name for name, count in data["counts"].items() if count and name != "current"}
    for fix in data["fix"]:
        program, *args = shlex.split(fix)
        if program == "rm":
            for path in args:
                (work / path).unlink()
        else:
            assert program == "fa4gen"
            # the files are in the report: whoever runs this has seen them
            assert main([*args, *["--yes"] * ("--prune" in args)]) == 0, fix
    assert check(capsys)[0] == 0


def test_text_table_names_file_verdict_and_fix(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(work, "edited")
    capsys.readouterr()
    assert main(["check", *TEMPLATES]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["verdict", "file", "why"]
    assert lines[1].split(maxsplit=2) == [
        "edited",
        "generated/sm_90a/one/one.cu",
        "changed since fa4gen wrote it",
    ]
    assert lines[3] == "8 files: 7 current, 1 edited"
    assert lines[-1] == "  fa4gen render --force --templates mine kernels/one.yaml"


def test_diff(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil(work, "edited")
    capsys.readouterr()
    assert main(["check", *TEMPLATES, "--diff"]) == 3
    assert "-// mine\n+// one\n" in capsys.readouterr().out
    _, data = check(capsys, "--diff")
    assert [bool(f["diff"]) for f in data["files"]] == [True] + [False] * 7


def test_github_annotations(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil(work, "missing")
    capsys.readouterr()
    assert main(["check", *TEMPLATES, "--format", "github"]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        "::error file=generated/sm_90a/one/one_barriers.h,line=1,col=1::missing: not there%0A"
        "Run: fa4gen render --templates mine"
    )


def test_one_file_says_nothing_about_the_other_kernels(work: Path) -> None:
    spoil(work, "orphan")
    assert main(["check", "kernels/one.yaml", *TEMPLATES]) == 0
    assert main(["check", *TEMPLATES]) == 3


def test_a_wrong_config_is_status_2(work: Path) -> None:
    (work / "kernels/one.yaml").write_text(CONFIG.replace("128", "100"))
    assert main(["check", *TEMPLATES]) == 2
