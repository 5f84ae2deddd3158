"""Temporary files of killed processes: those are removed, and no others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from fa4gen.cli.main import main
from fa4gen.render.compiled import CompiledTemplates
from fa4gen.render.write import write_text
from fa4gen.temporary import LEFT_AFTER_S, leftovers, temporary_path
from fa4gen.toolchain.cache import Cache, Entry
from fa4gen.toolchain.model import Built

CONFIG = "kernel: attention\narch: sm_90a\ndtype: bf16\ndepth: 128\n"


def old(path: Path, seconds: float = LEFT_AFTER_S + 60) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text("half")
    then = time.time() - seconds
    os.utime(path, (then, then))
    return path


def test_only_old_files_are_left_over(tmp_path: Path) -> None:
    left = old(tmp_path / ".a.cu.7.tmp")
    old(tmp_path / ".a.h.7.tmp", LEFT_AFTER_S - 60)
    old(tmp_path / ".a.cu.7.tmp.mine")
    old(tmp_path / "a.cu.7.tmp")
    old(tmp_path / ".a.cu.tmp")
    other = old(tmp_path / f".b.{'9' * 30}.tmp")
    assert leftovers(tmp_path) == [left, other]
    assert leftovers(tmp_path, "a") == [left]
    assert leftovers(tmp_path / "nowhere") == []


def test_render_removes_and_check_mentions_what_a_killed_render_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.yaml").write_text(CONFIG)
    assert main(["render", "one.yaml"]) == 0
    beside = old(Path("generated/sm_90a/one/.one.cu.7.tmp"))
    alone = old(Path("generated/sm_90a/two/.two_barriers.h.7.tmp"))
    of_user = old(Path("generated/sm_90a/one/.notes.7.tmp"))
    capsys.readouterr()
    assert main(["check", "one.yaml", "--format", "json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["temporary"] == [str(beside), str(alone)]
    hint = f"{beside} was left by a run that was killed: `fa4gen render one.yaml` removes it."
    assert hint in captured.err
    assert main(["render", "one.yaml", "--dry-run"]) == 0
    assert beside.exists()
    assert main(["render", "one.yaml"]) == 0
    assert f"{beside} removed: a run that was killed left it." in capsys.readouterr().err
    assert not beside.exists()
    assert not alone.parent.exists()
    assert of_user.exists()
    assert main(["check", "one.yaml"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_render_that_is_ended_while_writing(tmp_path: Path, ending: signal.Signals) -> None:
    """SIGTERM and Ctrl-C leave nothing; what SIGKILL leaves is found later."""
    (tmp_path / "one.yaml").write_text(CONFIG)
    script = textwrap.dedent(
        f"""
        import os, sys, time
        from pathlib import Path
        from fa4gen.cli.main import main
        write_bytes = Path.write_bytes
        def ended(path, data):
            write_bytes(path, data)
            if path.name.startswith(".one_barriers"):
                os.kill(os.getpid(), {int(ending)})
                time.sleep(60)
        Path.write_bytes = ended
        sys.exit(main(["render", "one.yaml"]))
        """
    )
    process = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=False)
    left = [path for path in tmp_path.glob("generated/**/*") if path.is_file()]
    if ending == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
        assert len(left) == 2
        assert leftovers(tmp_path / "generated/sm_90a/one") == []  # too young
        for path in left:
            old(path)
        assert leftovers(tmp_path / "generated/sm_90a/one") == sorted(left)
    else:
        assert process.returncode == (143 if ending == signal.SIGTERM else 130)
        assert not (tmp_path / "generated").exists()


def test_the_cache_of_templates_is_cleaned_when_code_is_kept(tmp_path: Path) -> None:
    dead = old(tmp_path / ".new-k3j2_8z")
    kept = [
        old(tmp_path / ".new-k3j2_8y", LEFT_AFTER_S - 60),
        old(tmp_path / ".newer"),
    ]
    templates = CompiledTemplates(tmp_path, "today")
    templates.code("t", tmp_path / "t.j2", "text", lambda: compile("1", "t", "eval"))
    assert not dead.exists()
    assert all(path.exists() for path in kept)
    assert len(list(tmp_path.iterdir())) == len(kept) + 1


def test_the_cache_of_kernels_is_cleaned_when_one_is_kept(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    dead = cache.folder("ab" * 32).parent / ".new-abc_12"
    old(dead / "kernel.ptx")
    old(dead)
    assert cache.store("cd" * 32, {}, Entry(Built("ptx", b"cubin", ""), 1.0)) == ""
    assert not dead.exists()
    assert cache.load("cd" * 32) is not None


def test_a_file_that_is_written_again_takes_its_leftovers_along(tmp_path: Path) -> None:
    left = old(tmp_path / ".report.json.7.tmp")
    write_text(tmp_path / "report.json", "{}")
    assert not left.exists()
    assert temporary_path(Path("a.json")).name == f".a.json.{os.getpid()}.tmp"
