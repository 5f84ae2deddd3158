"""Whatever files, keys and values are called, nothing of it acts on a terminal or on CI."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import click
import numpy as np
import pytest

from fa4gen.cli.main import main
from fa4gen.cli.output import annotate, note, print_json, print_markdown, print_table
from fa4gen.cli.streams import PrintableStream, printable_streams, trusted
from fa4gen.errors import Problem
from tests.emulator.kernel import kernel

EVIL = "\x1b]0;title\x07\n::error::spoofed\r\n##[error]spoofed\x9b31m\u202e"
CONFIG = "kernel: attention\narch: sm_90a\ndtype: bf16\ndepth: 128\n"
ACTS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e]|\r(?!\n)|##\[|^\s*::", re.M)


def printed(capsys: pytest.CaptureFixture[str], *words: str, github: bool = False) -> str:
    """Return the output of a command line, without control characters that act."""
    capsys.readouterr()
    main(list(words))
    both = "\n".join(capsys.readouterr())
    text = "\n".join(line for line in both.split("\n") if not (github and line.startswith("::")))
    assert not ACTS.search(text), text
    assert "spoofed" in both, both
    return both


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_stream_escapes_what_acts_in_pieces() -> None:
    inner = io.StringIO()
    stream = PrintableStream(inner)
    for piece in (":", ":error::a\n", " ", "::b", "\n", "c::", "d\n", "#", "#[e]\n", ":\n:\n"):
        assert stream.write(piece) == len(piece)
    stream.writelines(["::", "f\n"])
    assert inner.getvalue() == (
        ":\\u003aerror::a\n :\\u003ab\nc::d\n##\\u005be]\n:\n:\n:\\u003af\n"
    )
    assert stream.getvalue() == inner.getvalue()
    assert not hasattr(stream, "buffer")
    assert trusted(stream) is inner  # type: ignore[arg-type]


def test_all_that_prints_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = sys.stdout, sys.stderr
    with printable_streams():
        print(EVIL)
        click.echo(EVIL)
        click.echo(EVIL, err=True)
        note(EVIL)
        print_table((EVIL,), [(EVIL,)], title=EVIL)
        print_markdown(("a",), [(EVIL,)])
        print_json({EVIL: EVIL})
    assert (sys.stdout, sys.stderr) == (out, err)
    both = "\n".join(capsys.readouterr())
    assert not ACTS.search(both), both
    assert both.count("spoofed") == 2 * 10


@pytest.mark.parametrize("terminal", [True, False])
def test_colours_are_this_programs_alone(capsys, monkeypatch, terminal: bool) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FORCE_COLOR" if terminal else "NO_COLOR", "1")
    with printable_streams():
        print_table(("a",), [("wrong",), (f"::{EVIL}",)], styles={"wrong": "red"})
    out = capsys.readouterr().out
    assert ("\x1b[31mwrong\x1b[0m" in out) == terminal
    assert not ACTS.search(re.sub("\x1b\\[[0-9]+m", "", out))


def test_an_annotation_is_one_command(capsys: pytest.CaptureFixture[str]) -> None:
    with printable_streams():
        annotate("error", Problem(EVIL, EVIL, file=f"{EVIL}.yaml", line=1))
        annotate("notice", Problem("x"), on_stdout=True)
    out, err = capsys.readouterr()
    assert out == "::notice::x\n"
    assert err.startswith("::error file=\\u001b]0;title\\u0007%0A")
    assert err.count("\n") == 1
    assert not ACTS.search(err.removeprefix("::"))


NAME = EVIL.replace("\n", "\n::error::spoofed") + ".yaml"
COMMANDS = [
    ["render", "NAME"], ["check", "NAME"], ["explain", "NAME"], ["list", "NAME"],
    ["render", "NAME", "--format", "github"], ["render", "NAME", "--set", f"{EVIL}=1"],
    ["render", "no such NAME"], ["compile", "NAME", "-o", "NAME/x"], [f"{EVIL}"],
    ["render", f"--{EVIL}"], ["init", "NAME"], ["sweep", "NAME"], ["tune", "NAME"],
    ["vendor", "add", "NAME", "--into", "x", "--prefix", EVIL], ["vendor", "check", "NAME"],
    ["emulate", "NAME", "--launch", "NAME"], ["record", "NAME", "--", EVIL],
    ["bench", "NAME", "--plot", "NAME"], ["verify", "NAME", "--cases", EVIL],
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=range(len(COMMANDS)))
@pytest.mark.parametrize("text", [CONFIG, CONFIG + '"\\e::error::\\n::a": 1\n', f"a: '{EVIL}'"])
def test_hostile_names_of_configs(command, text, work, capsys) -> None:
    Path(NAME).write_text(text)
    words = [word.replace("NAME", NAME) for word in command]
    printed(capsys, *words, github="github" in command)


KEYS = [
    'kernel: attention\n"\\e[2J\\nspoofed\\n::error::": 1\n',
    'kernel: "\\e[2J\\n::error::spoofed"\n',
    CONFIG + 'mask: "\\e[2J\\n::error::spoofed"\n',
    CONFIG + 'extends: "\\e[2J\\n::error::spoofed.yaml"\n',
    CONFIG + "depth: 1 # spoofed\n\x85::error::spoofed: 1\n",
    "\x1b[2J\n::error::spoofed",
    'sweep: 1\n"\\e[2J\\n::error::spoofed": {}\n',
]


@pytest.mark.parametrize("text", KEYS, ids=range(len(KEYS)))
@pytest.mark.parametrize("command", ["render", "sweep", "tune"])
@pytest.mark.parametrize("output", ["text", "json", "github"])
def test_hostile_keys_and_values(text, command, output, work, capsys) -> None:
    Path("spoofed.yaml").write_text(text)
    words = [command, "spoofed.yaml"] + ([] if command == "tune" else ["--format", output])
    both = printed(capsys, *words, github=output == "github")
    for line in both.splitlines():
        assert not line.startswith("spoofed\n")


def test_hostile_launch_files_and_ptx(work, capsys) -> None:
    Path("kernel.ptx").write_text(kernel("bar.sync 0;"))
    evil = json.dumps(EVIL)
    for line in (f"{evil}: 1", f"entry: {evil}", f"arguments: [{{array: {evil}}}]",
                 f"arguments: [{{make: {evil}}}]", f"checks: [{evil}]", f"max_memory: {evil}",
                 f"arguments: [{{make: zeros, shape: [1], output: {evil}, name: {evil}}}]",
                 f"arguments: [{{use: {evil}}}]"):  # fmt: skip
        Path("launch.yaml").write_text(f"block: 32\n{line}\n")
        printed(capsys, "emulate", "kernel.ptx", "--launch", "launch.yaml")
    out_of_bounds = ".loc 1 7 3\n mov.u32 %r1, 0; st.global.u32 [%d0+4096], %r1;"
    name = EVIL.replace("\n", "").replace("\r", "")
    Path("kernel.ptx").write_text(kernel(out_of_bounds, module=f'.file 1 "{name}.cu"'))
    Path("launch.yaml").write_text("block: 32\narguments: [{make: zeros, shape: [1]}]\n")
    for output in ("text", "github"):
        words = ("emulate", "kernel.ptx", "--launch", "launch.yaml", "--format", output)
        printed(capsys, *words, github=output == "github")


def test_hostile_outputs_are_shown_on_one_line(work, capsys) -> None:
    Path("kernel.ptx").write_text(kernel("bar.sync 0;"))
    np.save("x.npy", np.zeros(1))
    argument = f"{{array: x.npy, output: {json.dumps(EVIL + '.npy')}, partial: true}}"
    Path("launch.yaml").write_text(f"block: 32\narguments: [{argument}]\n")
    assert main(["emulate", "kernel.ptx", "--launch", "launch.yaml", "--format", "json"]) == 0
    [name] = json.loads(capsys.readouterr().out)["outputs"]
    assert name.startswith("\\u001b]0;title\\u0007\\u000a::error::spoofed\\u000d\\u000a##")


def test_a_message_of_several_lines_is_indented(capsys: pytest.CaptureFixture[str]) -> None:
    problem = Problem("one\nerror: two", "three", file="a\nb.yaml", line=1, column=2)
    assert str(problem) == "a\\u000ab.yaml:1:2: one\n  error: two\n  three"
