"""The GitHub action: its inputs, and its scripts run by bash as a runner runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
CONFIG = "kernel: attention\narch: sm_90a\ndtype: bf16\ndepth: 128\n"
SWEEP = "base: k.yaml\nmatrix: {mask: [none, causal]}\n"


def test_inputs_are_those_that_steps_read() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(ACTION["inputs"])


def test_no_script_has_an_expression_in_it() -> None:
    for step in STEPS:
        assert "${{" not in step.get("run", ""), "a value could end the command: pass it in env"
        assert ("shell" in step) == ("run" in step)


class Runner:
    """A folder with what a runner gives to steps; ``fa4gen`` is that of this environment."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "workspace"
        self.output, self.summary = folder / "output", folder / "summary"
        programs = folder / "bin"
        for made in (self.workspace, programs):
            made.mkdir()
        program = programs / "fa4gen"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fa4gen "$@"\n')
        program.chmod(0o755)
        (programs / "python").symlink_to(sys.executable)
        self.variables = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_WORKSPACE": str(self.workspace),
            "RUNNER_TEMP": str(folder),
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_STEP_SUMMARY": str(self.summary),
        }

    def run(self, word: str, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Run the script with ``word`` in it, with these inputs."""
        (step,) = [step for step in STEPS if word in step.get("run", "")]
        values = {name: one["default"] for name, one in ACTION["inputs"].items()} | inputs
        given = {
            name: values[value.partition("inputs.")[2].removesuffix(" }}")]
            for name, value in step.get("env", {}).items()
        }
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.workspace, env=self.variables | given, capture_output=True, text=True,
            check=False,
        )  # fmt: skip


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    made = Runner(tmp_path)
    (made.workspace / "k.yaml").write_text(CONFIG)
    (made.workspace / "s.yaml").write_text(SWEEP)
    return made


def test_facts_for_the_keys_of_caches(runner: Runner) -> None:
    done = runner.run("GITHUB_OUTPUT", shard="2/4")
    assert done.returncode == 0, done.stderr
    facts = dict(line.split("=", 1) for line in runner.output.read_text().splitlines())
    assert facts["part"] == "2-of-4"
    assert re.fullmatch("[0-9a-f]{16}", facts["packages"])
    assert facts["pip"]


def test_kernels_that_are_not_current_fail_with_a_summary(runner: Runner) -> None:
    done = runner.run("fa4gen check", configs="k.yaml")
    assert done.returncode == 3
    assert "::error file=generated/sm_90a/k/k.cu" in done.stderr + done.stdout
    summary = runner.summary.read_text()
    assert summary.startswith("### fa4gen check\n\n```text\n")
    assert "4 files: 4 missing" in summary
    assert summary.endswith("```\n\n")
    assert "4 files: 4 missing" in done.stdout

    render = [runner.variables["PATH"].split(":")[0] + "/fa4gen", "render", "k.yaml"]
    subprocess.run([*render, "--no-compile"], cwd=runner.workspace, check=True)
    assert runner.run("fa4gen check", configs="k.yaml").returncode == 0


def test_a_sweep_leaves_results_and_a_summary(runner: Runner) -> None:
    done = runner.run("fa4gen sweep", sweep="s.yaml", options="--until rendered", shard="1/2")
    assert done.returncode == 0, done.stderr
    assert "### s: 1 case: 1 passed" in runner.summary.read_text()
    assert (runner.workspace / "sweep-results/sweep.html").is_file()
    assert (runner.workspace / "sweep-results/sweep.xml").is_file()
