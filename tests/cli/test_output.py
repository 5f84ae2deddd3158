from __future__ import annotations

import pytest

from fa4gen.cli.output import print_json, print_table


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
