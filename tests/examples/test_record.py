"""examples/record: what its README and the project's show is what the commands print."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from fa4gen.cli.main import main
from fa4gen.emulator.recorder.build import NoCompilerError, find_compiler

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "record"
BLOCK = re.compile(r"^```text\n(\$ nvcc .*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = re.compile(r"\d+\.\d\d$", re.MULTILINE)


def shown(path: Path) -> list[str]:
    """The lines of the block that shows the example."""
    (block,) = BLOCK.findall(path.read_text(encoding="utf-8"))
    return SECONDS.sub("0.00", block).splitlines()


def test_both_pages_show_the_same() -> None:
    assert shown(ROOT / "README.md") == shown(EXAMPLE / "README.md")


@pytest.mark.compile
def test_the_commands_print_what_is_shown(tmp_path, monkeypatch, capfd) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not found")
    try:
        find_compiler()
    except NoCompilerError as error:
        pytest.skip(str(error))
    shutil.copy(EXAMPLE / "total.cu", tmp_path)
    monkeypatch.chdir(tmp_path)
    build, record, *lines = shown(EXAMPLE / "README.md")
    subprocess.run(shlex.split(build.removeprefix("$ ")), check=True)
    assert main(shlex.split(record)[2:]) == 1
    out = capfd.readouterr().out
    assert SECONDS.sub("0.00", out).splitlines() == lines
