"""The script ./run: what it runs, where, and how it installs on systems that lack parts of Python.

Programs are stand-ins that record how they were called; nothing is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PYTHON = """\
#!/bin/sh
echo "python $*" >>"$LOG"
case "$*" in
*version_info*) exit "${TOO_OLD:-0}" ;;
"-m venv"*)
    case "$*" in *--without-pip*) ;; *) [ -z "${NO_ENSUREPIP:-}" ] || exit 1 ;; esac
    for venv; do :; done
    mkdir -p "$venv/bin" && cp "$0" "$venv/bin/python" ;;
*"--version") exit "${OLD_PIP:-0}" ;;
*"pip"*"install"*) exit "${OFFLINE:-0}" ;;
esac
"""
FA4GEN = """\
#!/bin/sh
echo "fa4gen $* in $(pwd)" >>"$LOG"
[ "$1" = "${FAILS:-none}" ] && exit 3
case " $* " in
*" --record "*)
    for out; do :; done
    folder=$out/sm_90a/$2
    mkdir -p "$folder"
    printf '{\\n  "proof": "%s",\\n  "verified": 1\\n' "${PROOF:-emulated}" >"$folder/$2.json" ;;
esac
"""
PROGRAM = '#!/bin/sh\necho "$(basename "$0") $* in $(pwd)" >>"$LOG"\nexit "${STATUS:-0}"\n'
PIP = "python -m pip install --quiet --disable-pip-version-check --editable"
INSTALL = [f"{PIP} ."]
INSTALL_TESTS = [f"{PIP} .[test]"]


class Checkout:
    """A folder with the script, and a path with a Python that only records its calls."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "a checkout"
        self.root.mkdir()
        self.log = folder / "log"
        for name in ("run", "pyproject.toml", "hatch_build.py"):
            shutil.copy(ROOT / name, self.root / name)
        self.programs = folder / "bin"
        self.programs.mkdir()
        for name in ("sh", "sed", "cat", "dirname", "basename", "cksum", "rm", "mkdir", "cp"):
            found = shutil.which(name)
            assert found
            (self.programs / name).symlink_to(found)
        self.program(self.programs / "python3", PYTHON)

    def program(self, path: Path, text: str = PROGRAM) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def environment(self, folder: Path) -> Path:
        """Make an environment that has fa4gen and pytest."""
        self.program(folder / "bin" / "fa4gen", FA4GEN)
        self.program(folder / "bin" / "pytest")
        return folder

    def run(
        self, *arguments: str, cwd: Path | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        self.log.write_text("")
        return subprocess.run(
            [str(self.root / "run"), *arguments],
            cwd=cwd or self.root,
            env={"PATH": str(self.programs), "LOG": str(self.log)} | environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    @property
    def calls(self) -> list[str]:
        """Return the calls since the last run, except for the query of Python's version."""
        lines = self.log.read_text().splitlines()
        return [line for line in lines if "version_info" not in line]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_the_demo_goes_the_whole_way(checkout, tmp_path) -> None:
    venv = checkout.environment(tmp_path / "venv")
    done = checkout.run("demo", FA4GEN_VENV=str(venv), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [call.split()[:2] for call in checkout.calls] == [
        ["fa4gen", "render"],
        ["fa4gen", "compile"],
        ["fa4gen", "verify"],
    ]
    assert "$ fa4gen verify d128_causal_bf16" in done.stdout


KERNEL = "build/demo/sm_90a/d128_causal_bf16/d128_causal_bf16.cu"


@pytest.mark.parametrize("proof", ["emulated", "ran on NVIDIA H200"])
def test_the_demo_ends_with_what_was_proved_and_what_is_next(checkout, proof) -> None:
    venv = checkout.environment(checkout.root / ".venv")
    checkout.program(venv / "bin" / "python", PYTHON)
    done = checkout.run("demo", PROOF=proof)
    assert done.stdout.splitlines()[-1] == (
        f"PASS: d128_causal_bf16: rendered, compiled, {proof}; kernel: {KERNEL}; "
        "next: . .venv/bin/activate && fa4gen init"
    )


def test_what_is_next_is_in_the_environment_that_was_taken(checkout, tmp_path) -> None:
    venv = checkout.environment(tmp_path / "venv")
    done = checkout.run("demo", PROOF="emulated", FA4GEN_VENV=str(venv))
    assert done.stdout.endswith(f"next: . {venv}/bin/activate && fa4gen init\n")
    path = f"{checkout.programs}:{venv}/bin"  # it is active already
    done = checkout.run("demo", PROOF="emulated", FA4GEN_VENV=str(venv), PATH=path)
    assert done.stdout.endswith("next: fa4gen init\n")


@pytest.mark.parametrize("step", ["render", "compile", "verify"])
def test_a_step_that_fails_ends_the_demo_with_its_status(checkout, tmp_path, step) -> None:
    venv = checkout.environment(tmp_path / "venv")
    done = checkout.run("demo", FA4GEN_VENV=str(venv), FAILS=step)
    assert done.returncode == 3
    assert checkout.calls[-1].startswith(f"fa4gen {step} ")
    assert f"FAIL: `fa4gen {step} d128_causal_bf16" in done.stdout.splitlines()[-1]
    assert "PASS" not in done.stdout


def test_tests_get_the_arguments(checkout, tmp_path) -> None:
    venv = checkout.environment(tmp_path / "venv")
    done = checkout.run("test", "-k", "a or b", FA4GEN_VENV=str(venv), cwd=tmp_path, STATUS="5")
    assert done.returncode == 5
    (call,) = checkout.calls
    assert call.startswith("pytest ")
    assert call.endswith(f" -k a or b in {checkout.root}")


def test_fa4gen_runs_where_the_caller_is(checkout, tmp_path) -> None:
    venv = checkout.environment(tmp_path / "venv")
    checkout.run("fa4gen", "check", "x.yaml", FA4GEN_VENV=str(venv), cwd=tmp_path)
    assert checkout.calls == [f"fa4gen check x.yaml in {tmp_path}"]


def test_an_unknown_task_is_refused(checkout) -> None:
    done = checkout.run("tset")
    assert done.returncode == 2
    assert "no task 'tset'" in done.stderr
    assert "./run test" in done.stderr
    assert "./run demo" in checkout.run().stdout


def test_installs_once_and_again_for_other_requirements(checkout) -> None:
    venv = checkout.root / ".venv"
    checkout.run("fa4gen")  # ends without a program: the stand-in installs none
    assert checkout.calls == [f"python -m venv --clear {venv}", *INSTALL]
    checkout.environment(venv)
    assert checkout.run("fa4gen").returncode == 0
    assert checkout.calls == [f"fa4gen  in {checkout.root}"]
    with (checkout.root / "pyproject.toml").open("a") as file:
        file.write("\n")
    checkout.run("fa4gen")
    assert checkout.calls == ["python -c ", *INSTALL, f"fa4gen  in {checkout.root}"]
    checkout.run("fa4gen", FA4GEN_CUDA="12")
    assert f"python -m venv --clear {venv}" in checkout.calls, "two CuPys must not meet"


def test_only_the_tests_install_what_only_tests_need(checkout) -> None:
    checkout.run("demo")
    assert checkout.calls[-1:] == INSTALL
    checkout.environment(checkout.root / ".venv")
    checkout.run("test")
    assert checkout.calls[:-1] == ["python -c ", *INSTALL_TESTS]
    for task in "demo", "test", "fa4gen":
        checkout.run(task)
        assert not any("pip" in call for call in checkout.calls), "has it all"


def test_an_environment_of_somebody_else_is_not_cleared(checkout) -> None:
    venv = checkout.environment(checkout.root / ".venv")
    checkout.program(venv / "bin" / "python", PYTHON)
    assert checkout.run("fa4gen").returncode == 0
    assert f"python -m venv {venv}" in checkout.calls
    assert not any("--clear" in call for call in checkout.calls)


def test_an_installation_that_failed_is_done_again(checkout) -> None:
    assert checkout.run("demo", OFFLINE="1").returncode == 1
    assert any("install" in call for call in checkout.calls)
    checkout.run("demo")
    assert any("install" in call for call in checkout.calls)


def test_without_ensurepip_the_pip_of_the_system_installs(checkout) -> None:
    venv = checkout.root / ".venv"
    checkout.run("fa4gen", NO_ENSUREPIP="1")
    assert checkout.calls[-1] == (
        f"python -m pip --python {venv}/bin/python install --quiet "
        "--disable-pip-version-check --editable ."
    )


def test_without_any_pip_the_remedy_is_named(checkout) -> None:
    done = checkout.run("demo", NO_ENSUREPIP="1", OLD_PIP="1")
    assert done.returncode == 4
    assert "apt install python3-venv" in done.stderr


def test_an_old_python_is_refused(checkout) -> None:
    done = checkout.run("demo", TOO_OLD="1")
    assert done.returncode == 4
    assert "Python 3.11" in done.stderr
    assert not (checkout.root / ".venv").exists()


def test_the_script_is_the_one_that_git_marks_executable() -> None:
    assert os.access(ROOT / "run", os.X_OK)
