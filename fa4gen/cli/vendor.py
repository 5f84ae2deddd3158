"""``fa4gen vendor``: kernels into other people's projects, with all that it takes to call them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from fa4gen.cli.main import LazyCommand, LazyGroup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COMMANDS: Mapping[str, LazyCommand] = {
    name: LazyCommand(f"fa4gen.cli.vendor_{name}", short_help)
    for name, short_help in (
        ("add", "Add kernels to a folder, or make one."),
        ("update", "Write the same kernels as they are rendered today."),
        ("recompile", "Compile kernels that you edited."),
        ("check", "Report files that are not as they were written or would be today."),
        ("verify", "Run verify's cases through the C code of a folder."),
    )
}
OLD_ACTIONS: Final = ("check", "update", "verify")
"""Options of the version before, which are commands now."""


class VendorGroup(LazyGroup):
    """The commands of ``fa4gen vendor``; for one version it also takes its former options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse ``args``; say what to write in the place of an old spelling."""
        new = today(args)
        if new is not None:
            from fa4gen.cli.output import note

            note(f"deprecated: write `fa4gen vendor {new[0]}`; the next version has no other form.")
        return super().parse_args(ctx, args if new is None else new)


def today(args: Sequence[str]) -> list[str] | None:
    """Return the arguments of today for those of the version before; None for any others."""
    if args and (args[0] in COMMANDS or args[0] in ("-h", "--help")):
        return None
    for number, word in enumerate(args):
        option, _, value = word.partition("=")
        action = option.removeprefix("--")
        if option.startswith("--") and action in OLD_ACTIONS:
            rest = list(args[number + 1 :])
            folder = [value] if value else []
            if not folder and rest and not rest[0].startswith("-"):
                folder = [rest.pop(0)]
            return [action, *folder, *args[:number], *rest]
    if any(word.partition("=")[0] == "--into" for word in args):
        return ["add", *args]
    return None if any(not word.startswith("-") for word in args) else ["update", *args]


@click.group(name="vendor", cls=VendorGroup, lazy_commands=COMMANDS)
def command() -> None:
    """Write kernels as a folder for another project: C launcher, compiled kernels, build files.

    The folder needs nothing of fa4gen to be built: a C99 or C++17 compiler will do. fa4gen.lock in
    it says what each file came from. Without a folder, the commands are about those that the
    project's file names: fa4gen.toml, or [tool.fa4gen] in pyproject.toml, here or above.
    """
