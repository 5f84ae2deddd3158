from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fa4gen.cli import progress as progress_module
from fa4gen.cli.progress import progress

if TYPE_CHECKING:
    import pytest


def test_in_a_log_messages_are_lines_and_counts_come_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_module, "LINE_INTERVAL_S", 0.0)
    with progress(3, "cases") as bar:
        bar.advance()
        bar.advance("one failed")
        bar.advance()

    out, err = capsys.readouterr()
    assert out == ""
    assert re.sub("[0-9]:[0-9:]+", "T", err) == (
        "0 of 3 cases done; T\n1 of 3 cases done; T, left: T\none failed\n"
        "2 of 3 cases done; T, left: T\n"
    )


def test_a_short_run_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(2, "cases") as bar:
        bar.advance()
        bar.advance()

    assert capsys.readouterr().err == ""


def test_a_pulse_is_felt_only_in_long_work(monkeypatch, capsys) -> None:
    with progress_module.pulse() as show:
        show("soon over")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress_module, "SILENT_S", 0.0)
    with progress_module.pulse() as show:
        show("1 of 9")
        show("2 of 9")  # within the interval
    assert capsys.readouterr().err == "1 of 9\n"
