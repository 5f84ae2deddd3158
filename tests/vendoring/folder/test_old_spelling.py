"""Calls of the version before, in which the commands of ``fa4gen vendor`` were options."""

from __future__ import annotations

import pytest

from fa4gen.cli.main import main
from fa4gen.cli.vendor import today
from tests.vendoring.folder.conftest import CONFIG, OTHER, Vendored


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["--check", "attn", "--diff"], ["check", "attn", "--diff"]),
        (["--diff", "--check"], ["check", "--diff"]),
        (["--update=attn", "--force"], ["update", "attn", "--force"]),
        (["--verify", "--seed", "3"], ["verify", "--seed", "3"]),
        (["a.yaml", "--into", "x"], ["add", "a.yaml", "--into", "x"]),
        ([], ["update"]),
        (["--dry-run"], ["update", "--dry-run"]),
    ],
)  # fmt: skip
def test_the_new_form_of_an_old_call(old: list[str], new: list[str]) -> None:
    assert today(old) == new


@pytest.mark.parametrize("words", [["check", "--diff"], ["add", "--check"], ["--help"], ["-h"]])
def test_a_call_of_today_stays_as_it_is(words: list[str]) -> None:
    assert today(words) is None


def test_a_wrong_command_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vendor", "chek", "attn"]) == 2
    assert "there is no command 'chek'. Did you mean 'check'?" in capsys.readouterr().err


@pytest.mark.compile
def test_old_calls_work_and_say_what_to_write(vendored: Vendored) -> None:
    assert main(["vendor", "--check", "attn"]) == 0
    assert "deprecated: write `fa4gen vendor check`" in vendored.capsys.readouterr().err
    assert main(["vendor", OTHER, "--into", "attn", "--prefix", "acme"]) == 0
    assert "deprecated: write `fa4gen vendor add`" in vendored.capsys.readouterr().err
    assert {f"kernels/acme_{name}.cu" for name in (CONFIG, OTHER)} <= vendored.files().keys()
    assert main(["vendor", "check", "attn"]) == 0
    assert "deprecated" not in vendored.capsys.readouterr().err
