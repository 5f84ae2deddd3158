"""Completion at the Tab key, as the shells ask for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fa4gen

ROOT = Path(fa4gen.__file__).parent.parent
VARIABLE = "_FA4GEN_COMPLETE"


def completed(words: list[str], cwd: Path) -> list[str]:
    """Return the shell's offers for the last of ``words``."""
    done = subprocess.run(
        [sys.executable, "-m", "fa4gen"],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ
        | {"PYTHONPATH": str(ROOT), VARIABLE: "fish_complete"}
        | {"COMP_WORDS": " ".join(["fa4gen", *words]), "COMP_CWORD": words[-1]},
        timeout=60,
        check=True,
    )
    lines = [line.split(",", 1) for line in done.stdout.splitlines() if line]
    return [value.split("\t")[0] if kind == "plain" else kind for kind, value in lines]


def test_names_of_configs(tmp_path: Path) -> None:
    (tmp_path / "d128_mine.yaml").write_text("")
    found = completed(["render", "d128_"], tmp_path)
    assert {"d128_causal_bf16", "d128_mine.yaml"} <= set(found)
    assert all(name.startswith("d128_") for name in found)
    assert "attention/sm_90a/d128_causal_bf16" in completed(["verify", "attention/"], tmp_path)


def test_other_words_are_files(tmp_path: Path) -> None:
    assert completed(["check", "../somewhere/el"], tmp_path) == ["file"]


def test_commands_and_sweeps(tmp_path: Path) -> None:
    assert completed(["ver"], tmp_path) == ["verify"]
    assert "hopper_tuning" in completed(["sweep", "hopper"], tmp_path)


def test_keys_and_their_values(tmp_path: Path) -> None:
    assert completed(["render", "--set", "num_kv"], tmp_path) == ["num_kv_stages="]
    assert completed(["render", "--set", "dtype="], tmp_path)[:2] == ["dtype=bf16", "dtype=fp16"]
    assert completed(["render", "--set", "nothing="], tmp_path) == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_with_it(tmp_path: Path) -> None:
    program = tmp_path / "fa4gen"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fa4gen "$@"\n')
    program.chmod(0o755)
    script = (
        f"source <({VARIABLE}=bash_source fa4gen);"
        "COMP_WORDS=(fa4gen render d128_causal_b); COMP_CWORD=2;"
        '_fa4gen_completion fa4gen; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == ["d128_causal_bf16"], done.stderr
