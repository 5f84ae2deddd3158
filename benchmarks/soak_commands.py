"""Random command lines: commands, options and their types are those that click knows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from fa4gen.cli.main import COMMANDS, group

if TYPE_CHECKING:
    import random

    from soak_inputs import Names

OFTEN = {
    "render": 8, "check": 5, "explain": 5, "list": 3, "schema": 1, "emulate": 9, "sweep": 6,
    "compile": 2, "verify": 2, "vendor": 4, "record": 2, "bench": 1, "doctor": 1,
}  # fmt: skip
"""How often a command is drawn; one that is not listed: 3."""
QUICK = ("render", "check", "explain", "list", "schema")
"""Commands that end within seconds: the others are interrupted after a while."""
READ_ONLY = ("configs", "templates", "launch", "expect", "ptx", "file")
"""Options and arguments that name what is only read."""
PROGRAMS = (["true"], ["false"], ["sh", "-c", "exit 3"], ["missing-program"], ["sleep", "5"])
ODD_WORDS = ("", "-1", "x", "0", "99999999999999999999", "nan", "inf", "*", "[", "a b", "é", "-")


@dataclass(frozen=True)
class Line:
    """A command line without the program's name."""

    args: tuple[str, ...]
    written: tuple[str, ...]
    """Paths that it is asked to write to."""

    @property
    def command(self) -> str:
        """Return the command, or "" where there is none."""
        return next((word for word in self.args if word in COMMANDS), "")

    @property
    def is_quick(self) -> bool:
        """Whether it has to end within seconds."""
        return self.command in (*QUICK, "") and "--watch" not in self.args


@cache
def command_of(*names: str) -> click.Command:
    """Return the click command of these words: of a group, one of its commands."""
    command: click.Command = group
    for name in names:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
    return command


def draw_line(rng: random.Random, names: Names) -> Line:
    """Return a random command line; most are right in form."""
    if rng.random() < 0.02:
        odd = ("rendr", "--help", "--version", "-x", "--traceback", "list", "é")
        return Line(tuple(rng.sample(odd, 2)), ())
    commands = list(COMMANDS)
    name = rng.choices(commands, [OFTEN.get(name, 3) for name in commands])[0]
    command, path = command_of(name), [name]
    if isinstance(command, click.Group):
        path.append(rng.choice(command.list_commands(click.Context(command))))
        command = command_of(*path)
    words: list[str] = []
    written: list[str] = []

    def add(parameter: click.Parameter, option: str) -> None:
        values = _values(parameter, rng, names)
        words.extend([option, *values] if option else values)
        if _key(parameter) not in READ_ONLY:
            written.extend(values)

    for parameter in command.params:
        if isinstance(parameter, click.Option):
            likely = 0.95 if parameter.required else 0.12
            if "--jobs" in parameter.opts:
                likely = 0.5
            while rng.random() < likely:
                add(parameter, rng.choice([*parameter.opts, *parameter.secondary_opts]))
                likely = 0.4 if parameter.multiple else 0.03
            if parameter.default is not None and not callable(parameter.default):
                written.append(str(parameter.default))
    for parameter in command.params:
        if isinstance(parameter, click.Argument) and rng.random() < 0.97:
            add(parameter, "")
    if rng.random() < 0.03:
        words.insert(rng.randrange(len(words) + 1), rng.choice(ODD_WORDS))
    return Line((*path, *words), tuple(written))


def _key(parameter: click.Parameter) -> str:
    """Return an option without its dashes, or an argument's name."""
    if isinstance(parameter, click.Argument):
        return str(parameter.name)
    return max(parameter.opts, key=len).lstrip("-")


def _values(parameter: click.Parameter, rng: random.Random, names: Names) -> list[str]:
    if isinstance(parameter, click.Option) and (parameter.is_flag or parameter.count):
        return []
    if rng.random() < 0.05:
        return [rng.choice(ODD_WORDS)]
    match _key(parameter):
        case "program":
            return ["--", *rng.choice(PROGRAMS)]
        case "configs":
            return [rng.choice(names.configs) for _ in range(rng.choice((0, 1, 1, 1, 1, 2, 3)))]
        case "a" | "b" | "config":
            return [rng.choice(names.configs)]
        case "launch":
            return [rng.choice(names.launches)]
        case "ptx":
            return [rng.choice(names.ptx)]
        case "file":
            return [rng.choice(names.sweeps)]
        case "templates":
            return [rng.choice(names.folders)]
        case "jobs":
            return [rng.choice(("1", "1", "2", "3"))]
        case "expect":
            return [f"{rng.choice(('target', 'source', 'x'))}={rng.choice(('right.npy', 'pipe'))}"]
        case "shard":
            return [rng.choice(("1/2", "2/2", "3/2", "0/1", "1/1", "a/b", "1/99999999999"))]
    return [_by_type(parameter, rng, names)]


def _by_type(parameter: click.Parameter, rng: random.Random, names: Names) -> str:
    kind: Any = parameter.type
    if isinstance(kind, click.Choice):
        return str(rng.choice(list(kind.choices)))
    if isinstance(kind, (click.IntRange, click.FloatRange)):
        low = kind.min if kind.min is not None else -3
        return str(rng.choice((low, low + 1, low + 2, kind.max or low + 3, low - 1)))
    if kind.name in ("integer", "float"):
        return rng.choice(("0", "1", "2", "7", "-1"))
    return rng.choice((*names.new, *names.new, "acme", "a/b", "attn*", "spill"))
