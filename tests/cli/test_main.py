from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from fa4gen.cli import main as main_module
from fa4gen.cli.main import COMMANDS, LazyCommand, main
from fa4gen.cli.options import asked_format, format_option
from fa4gen.errors import CompileError, MissingCapabilityError, Problem
from fa4gen.version import __version__

HEAVY = ("numpy", "cupy", "jinja2", "yaml", "torch")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """A command ``fail`` that raises the list's one exception."""
    errors: list[BaseException] = []

    @click.command()
    @format_option
    def command(output_format: str) -> None:
        raise errors[0]

    class Module:
        pass

    module = Module()
    module.command = command  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fa4gen_failing_command", module)
    monkeypatch.setitem(
        main_module.group.lazy_commands, "fail", LazyCommand("fa4gen_failing_command", "Fails.")
    )
    return errors


def test_help_lists_every_command_and_imports_none() -> None:
    code = (
        "import sys\n"
        "from fa4gen.cli.main import main\n"
        "status = main(['--help'])\n"
        f"heavy = sorted(set({HEAVY!r}) & set(sys.modules))\n"
        "commands = [m for m in sys.modules if m.startswith('fa4gen.cli.')]\n"
        "print(status, heavy, sorted(commands), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    light = [f"fa4gen.cli.{name}" for name in ("completion", "main", "options", "streams")]
    assert done.stderr.strip() == f"0 [] {light}"
    for name, lazy in COMMANDS.items():
        assert f"  {name} " in done.stdout
        assert lazy.short_help.split()[0] in done.stdout


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"fa4gen {__version__}\n"


@pytest.mark.parametrize(
    ("word", "hint"), [("lst", "Did you mean 'list'?"), ("zzz", "Commands: init, render, check,")]
)
def test_an_unknown_command(word: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word]) == 2
    assert hint in capsys.readouterr().err


def test_no_command_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "Usage: fa4gen" in capsys.readouterr().err


def test_a_wrong_option_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--formt", "json"]) == 2
    assert "--format" in capsys.readouterr().err


def test_an_error_prints_its_problems_and_ends_with_its_status(
    failing: list[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    failing.append(CompileError(Problem("no", "Do so.", "a.cu", 3, 4), Problem("nowhere")))

    assert main(["fail"]) == 1

    out, err = capsys.readouterr()
    assert out == ""
    assert err == "a.cu:3:4: no\n  Do so.\nerror: nowhere\n"


def test_an_error_under_json_is_the_document(
    failing: list[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    failing.append(MissingCapabilityError(Problem("no compiler", "Install one.")))

    assert main(["fail", "--format", "json"]) == 4

    assert json.loads(capsys.readouterr().out) == {
        "exit_status": 4,
        "problems": [{"message": "no compiler", "remedy": "Install one."}],
    }


def test_an_error_under_github_is_an_annotation(
    failing: list[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    failing.append(CompileError(Problem("no", "Do so.", "a.cu", 3, 4)))

    assert main(["fail", "--format", "github"]) == 1

    assert capsys.readouterr().err == "::error file=a.cu,line=3,col=4::no%0ADo so.\n"


def test_a_usage_error_under_github_is_an_annotation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--format", "github", "--nonsense"]) == 2
    assert capsys.readouterr().err.startswith("::error::")


def test_a_path_that_the_system_refuses_is_a_message(
    failing: list[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    failing.append(PermissionError(13, "Permission denied", "/out"))

    assert main(["fail"]) == 2
    assert capsys.readouterr().err.startswith("error: permission denied: /out\n")


@pytest.mark.parametrize(
    ("line", "output_format"),
    [
        ("list --format json", "json"),
        ("list --format=github x", "github"),
        ("list --format", "text"),
        ("list --format xml", "text"),
        ("list", "text"),
        ("list --format github --format json", "json"),  # click takes the last one
        ("list --format=json --format xml", "text"),
    ],
)
def test_the_format_that_was_asked_for(line: str, output_format: str) -> None:
    assert asked_format(line.split()) == output_format


@pytest.mark.parametrize("error", [RuntimeError("no"), ZeroDivisionError()])
def test_a_bug_keeps_its_traceback(failing: list[BaseException], error: BaseException) -> None:
    failing.append(error)

    with pytest.raises(type(error)):
        main(["fail"])


def test_interruption(failing: list[BaseException], capsys: pytest.CaptureFixture[str]) -> None:
    failing.append(KeyboardInterrupt())

    assert main(["fail"]) == 130
    assert capsys.readouterr().err.endswith("interrupted\n")


def test_the_module_is_the_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fa4gen", "list", "nothing.yaml"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(main_module.__file__).parents[2])},
    )

    assert done.returncode == 2
    assert done.stderr.startswith("nothing.yaml: no such file")
    assert "Traceback" not in done.stderr


def test_ctrl_c_while_an_error_is_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(click.UsageError, "show", interrupted)
    assert main(["rendr"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


AT_THE_FIRST_IMPORT = """
import runpy, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "signal":
            raise KeyboardInterrupt

sys.modules.pop("signal", None)
sys.meta_path.insert(0, Interrupting())
runpy.run_module("fa4gen", run_name="__main__")
"""


def test_ctrl_c_while_the_first_module_is_read() -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_FIRST_IMPORT], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
