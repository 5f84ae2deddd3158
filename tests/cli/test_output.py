from __future__ import annotations

import sys

import pytest

from fa4gen.cli.output import print_json, print_markdown, print_table


def test_a_table_in_a_pipe_is_neither_cut_nor_padded(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 500

    print_table(("name", "n"), [("a", 5), (long, 1234)], right=("n",))

    head, first, second = capsys.readouterr().out.splitlines()
    assert head == f"{'name':500}     n"
    assert first == f"{'a':500}     5"
    assert second == f"{long}  1234"


def test_brackets_in_cells_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("a",), [("[bold]x[/bold]",)])

    assert "[bold]x[/bold]" in capsys.readouterr().out


def test_json_has_no_place_for_nan() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        print_json({"a": float("nan")})


def test_wide_characters_and_lines_of_a_cell(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("a", "b"), [("\u65e5\u672c", "x"), ("two\nlines", "y")])
    assert capsys.readouterr().out.splitlines() == [
        "a      b", "\u65e5\u672c   x", "two    y", "lines",
    ]  # fmt: skip


NAME = "attention/sm_90a/decode_d128_tree_paged64_bf16"
ROWS = [(NAME, "a reason that is long enough to be wrapped"), ("b", "short")]


def to_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let stdout, which differs from that of fixtures, say that it is a terminal."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


def test_a_narrow_terminal_breaks_no_name(capsys, monkeypatch) -> None:
    to_terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", "72")
    print_table(("config", "why"), ROWS)
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"{NAME}  a reason that is") for line in lines)
    assert len(lines) == 4
    monkeypatch.setenv("COLUMNS", "20")
    print_table(("config", "why"), ROWS)
    assert f"{NAME}  a\n" in capsys.readouterr().out


def test_a_pipe_is_as_wide_as_columns_says(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    print_table(("config", "why"), ROWS)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 72
    for none in "", "0", "wide", "-3":
        monkeypatch.setenv("COLUMNS", none)
        print_table(("config", "why"), ROWS)
        assert "  ".join(ROWS[0]) in capsys.readouterr().out


def test_colours_are_for_terminals(capsys, monkeypatch) -> None:
    to_terminal(monkeypatch)
    styles = {"failed": "bold red", "dimmed": "dim"}

    def printed() -> str:
        print_table(("a", "b"), [("failed", "x"), ("dimmed", "")], styles=styles)
        return capsys.readouterr().out

    assert printed().splitlines() == [
        "\x1b[1ma\x1b[0m       \x1b[1mb\x1b[0m",
        "\x1b[31m\x1b[1mfailed\x1b[0m  x",
        "\x1b[2mdimmed\x1b[0m",
    ]
    monkeypatch.setenv("NO_COLOR", "1")
    assert printed() == "a       b\nfailed  x\ndimmed\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b" not in printed()
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[31m" in printed()


def test_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    print_markdown(("a", "b"), [("x|y", "")])
    assert capsys.readouterr().out == "| a | b |\n| --- | --- |\n| x\\|y |  |\n"
