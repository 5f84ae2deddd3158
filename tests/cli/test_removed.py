"""Options of earlier versions are refused with what to use in their place."""

from __future__ import annotations

import click
import pytest

from fa4gen.cli.main import group, main
from fa4gen.cli.removed import REMOVED


@pytest.mark.parametrize(("command", "option"), REMOVED)
def test_a_removed_option_names_its_replacement(
    command: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [option, "1"] if command == "fa4gen" else [command, "x", option, "1"]
    assert main(words) == 2
    assert f"{option} was removed: {REMOVED[command, option]}." in capsys.readouterr().err


def test_a_removed_option_is_refused_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "x", "--no-tiles", "--format", "json"]) == 2
    assert "--no-tiles was removed" in capsys.readouterr().out


@pytest.mark.parametrize(("command", "option"), REMOVED)
def test_no_command_has_a_removed_option(command: str, option: str) -> None:
    context = click.Context(group)
    found = group if command == "fa4gen" else group.get_command(context, command)
    assert found is not None
    assert option not in {name for each in found.params for name in each.opts}


def test_an_option_that_never_was_gets_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "--forec"]) == 2
    assert "--force" in capsys.readouterr().err
