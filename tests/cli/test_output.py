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


TABLES = {
    "plain": (("name", "n"), [("a", 5), ("longer than its head", 1234)], "", ("n",)),
    "no rows": (("name", "n"), [], "", ()),
    "empty cells": (("config", "set besides"), [("a", ""), ("", "b")], "", ()),
    "a title": (("a", "bcd"), [("x" * 30, "y")], "title", ("a", "bcd")),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_plain_table_is_the_one_that_rich_would_write(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    columns, rows, title, right = TABLES[name]
    print_table(columns, rows, title=title, right=right)
    plain = capsys.readouterr().out
    monkeypatch.setattr("fa4gen.cli.output._plain_table", lambda *_: None)
    print_table(columns, rows, title=title, right=right)
    assert plain == capsys.readouterr().out
    assert plain.count("\n") == len(rows) + 1 + bool(title)


def test_cells_that_are_not_plain_are_left_to_rich(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("a", "b"), [("\u65e5\u672c", "x"), ("two\nlines", "y")])
    assert capsys.readouterr().out.splitlines() == [
        "a      b", "\u65e5\u672c   x", "two    y", "lines",
    ]  # fmt: skip


def test_a_long_table_needs_no_second(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rich.table", None)  # its rows take two milliseconds each
    print_table(("case", "n"), [(f"case_{i}", i) for i in range(5000)])
    assert capsys.readouterr().out.count("\n") == 5001


def test_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    print_markdown(("a", "b"), [("x|y", "")])
    assert capsys.readouterr().out == "| a | b |\n| --- | --- |\n| x\\|y |  |\n"
