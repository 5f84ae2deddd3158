"""The man page, from the texts that ``--help`` prints."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from fa4gen.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    import click


def man_page(ctx: click.Context) -> str:
    """Return the page fa4gen(1) in roff: the group of ``ctx``, then each of its commands."""
    import click

    group = ctx.command
    assert isinstance(group, click.Group)
    lines = [
        f'.TH FA4GEN 1 "" "fa4gen {__version__}" "User Commands"',
        ".SH NAME",
        f"fa4gen \\- {_text(group.get_short_help_str(200))}",
        ".SH SYNOPSIS",
        f".B fa4gen\n{_text(' '.join(group.collect_usage_pieces(ctx)))}",
        ".SH DESCRIPTION",
        *_paragraphs(group.help or ""),
        ".SH OPTIONS",
        *_options(group, ctx),
        ".SH COMMANDS",
    ]
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        lines += _command(command, click.Context(command, ctx, name), f"fa4gen {name}")
    lines += [".SH EXIT STATUS", *_paragraphs((group.epilog or "").removeprefix("Exit status: "))]
    return "\n".join(lines) + "\n"


def _command(command: click.Command, ctx: click.Context, name: str) -> Iterator[str]:
    import click

    yield f".SS {_text(name)}"
    yield ".PP"
    yield f".B {_text(name)}"
    yield _text(" ".join(command.collect_usage_pieces(ctx)))
    yield from _paragraphs(command.help or "")
    yield from _options(command, ctx)
    if isinstance(command, click.Group):
        for each in command.list_commands(ctx):
            below = command.get_command(ctx, each)
            assert below is not None
            yield from _command(below, click.Context(below, ctx, each), f"{name} {each}")


def _options(command: click.Command, ctx: click.Context) -> Iterator[str]:
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is not None and record[1]:
            yield from (".TP", f".B {_text(record[0])}", _text(record[1]))


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        verbatim = paragraph.startswith("\b")
        yield ".PP"
        if verbatim:
            yield from (".nf", *map(_text, paragraph.splitlines()[1:]), ".fi")
        else:
            yield _text(" ".join(paragraph.split()))


def _text(text: str) -> str:
    """Return ``text`` so that roff prints it as it is."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
