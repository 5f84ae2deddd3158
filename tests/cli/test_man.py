"""The man page: the texts of --help, all of them, in roff that groff accepts."""

from __future__ import annotations

import re
import shutil
import subprocess

import click
import pytest

from fa4gen.cli.main import COMMANDS, group, main
from fa4gen.cli.man import man_page


@pytest.fixture(scope="module")
def page() -> str:
    return man_page(click.Context(group, info_name="fa4gen"))


def shown(page: str) -> str:
    return " ".join(page.replace("\\-", "-").replace("\\&", "").replace("\\e", "\\").split())


def test_it_is_printed(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--man"]) == 0
    assert capsys.readouterr().out == page
    assert page.startswith(".TH FA4GEN 1")


@pytest.mark.parametrize("name", COMMANDS)
def test_it_has_every_option_of_a_command(name: str, page: str) -> None:
    context = click.Context(group, info_name="fa4gen")
    command = group.get_command(context, name)
    assert command is not None
    section = page.split(f".SS fa4gen {name}\n")[1].split("\n.SS")[0]
    inner = click.Context(command, context, name)
    for parameter in command.get_params(inner):
        record = parameter.get_help_record(inner)
        if record is not None and record[1]:
            assert " ".join(record[1].split()) in shown(section)
    first = (command.help or "").partition("\n\n")[0]
    assert " ".join(first.split()) in shown(section)


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff")
def test_groff_accepts_it(page: str) -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tascii", "-ww", "-rLL=100n"],
        input=page,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    text = re.sub(r".\x08|\x1b\[[0-9;]*m", "", done.stdout)
    assert "EXIT STATUS" in text
    assert "fa4gen render [OPTIONS]" in " ".join(text.split())
