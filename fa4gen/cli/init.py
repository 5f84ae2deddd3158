"""``fa4gen init``: writes a config to begin with, and the project's file."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fa4gen.cli.options import FilePath, set_option
from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fa4gen.config.settings import Setting

DEFAULT_FILE = Path("my_kernel.yaml")
USUAL = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": "128"}
"""The usual value of a key, which is written where no other is given."""
_PROJECT = """\
# What fa4gen's commands are about in this project: `fa4gen render`, `fa4gen check`, ...
# Files, folders, globs and names of shipped configs, relative to this file:
configs = [{config}]
# The folder of generated files:
out = "generated"
"""


@click.command(name="init")
@click.argument("file", type=FilePath(path_type=Path, dir_okay=False), default=DEFAULT_FILE)
@click.option(
    "--kernel", metavar="KERNEL", help="Kernel family: attention when not given; gemm, merge."
)
@click.option("--arch", metavar="ARCH", help="Architecture: sm_90a when not given.")
@set_option
@click.option("--no-project", is_flag=True, help="Do not write fa4gen.toml where there is none.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def command(
    file: Path,
    kernel: str | None,
    arch: str | None,
    settings: tuple[Setting, ...],
    no_project: bool,
    force: bool,
) -> None:
    """Write a config to begin with: FILE, my_kernel.yaml when not given.

    It has what is required, and every other key as a comment with its meaning, its values and its
    default. What is written can be rendered: values that cannot work are refused.

    Where the folder belongs to no project yet, fa4gen.toml is written, too, so that commands
    without CONFIG take FILE.
    """
    from fa4gen.config.paths import shown_path
    from fa4gen.config.project_place import OWN_NAME
    from fa4gen.config.selection import nearest_project
    from fa4gen.config.starter import starter_text
    from fa4gen.render.write import write_texts

    _check_file(file, force)
    project = nearest_project()
    given = {"kernel": kernel, "arch": arch}
    answers = _answers(given, {setting.path[0]: setting.value for setting in settings})
    data = _checked(file, [*answers, *settings])
    texts = {file: starter_text(data, shown_path(file))}
    if project is None and not no_project:
        texts[Path(OWN_NAME)] = _PROJECT.format(config=f'"{_relative(file)}"')
    actions = {path: "updated" if path.exists() else "created" for path in texts}
    write_texts(texts)
    for path, action in actions.items():
        click.echo(f"{action:9} {shown_path(path)}")
    named = _is_named(file) if project is not None else not no_project
    word = shlex.quote(shown_path(file))
    more = "" if named else f" {word}"
    click.echo(f"Next: fa4gen explain {word}; fa4gen render{more}; fa4gen verify{more}", err=True)


def _check_file(file: Path, force: bool) -> None:
    from fa4gen.config.find import SUFFIXES
    from fa4gen.config.paths import shown_path

    if file.suffix not in SUFFIXES:
        what = f"the name of a config ends with {' or '.join(SUFFIXES)}"
        raise ConfigError(Problem(what, f"Write {file.name}.yaml.", shown_path(file)))
    if file.exists() and not force:
        raise ConfigError(
            Problem(
                "there is such a file already",
                "Give another name, or overwrite it with --force.",
                shown_path(file),
            )
        )


def _answers(given: Mapping[str, str | None], already: Mapping[str, Any]) -> list[Setting]:
    """Return the options ``given`` in addition to ``already``; the rest is as usual."""
    from fa4gen.config.settings import option_setting
    from fa4gen.config.starter import choices

    answers: list[Setting] = []
    values = dict(already)
    for key, usual in USUAL.items():
        if key in already:
            continue
        value = given.get(key)
        if value is None and key == "depth" and not choices(key, values):
            continue
        answers.append(option_setting(f"--{key}", key, usual if value is None else str(value)))
        values[key] = answers[-1].value
    return answers


def _checked(file: Path, settings: Sequence[Setting]) -> dict[str, Any]:
    """Return the config's keys; ConfigError where they are not valid or cannot be planned."""
    from fa4gen.config.layers import set_keys
    from fa4gen.config.load import load_layers, locate
    from fa4gen.designs.build import build_plan

    layers = set_keys(file, settings)
    loaded = load_layers(layers, file)
    try:
        build_plan(loaded.config)
    except ConfigError as error:
        raise locate(error, loaded) from error
    return dict(layers.document.value)


def _relative(file: Path) -> str:
    return Path(os.path.relpath(file)).as_posix()


def _is_named(file: Path) -> bool:
    """Whether the project takes the new config; says so where it does not."""
    from fa4gen.cli.output import note
    from fa4gen.config.paths import shown_path
    from fa4gen.config.selection import nearest_project, project_configs

    project = nearest_project()
    assert project is not None
    try:
        named = file.resolve() in {path.resolve() for path in project_configs(project)}
    except ConfigError as error:  # of another config: the new one is written and works
        for problem in error.problems:
            note(str(problem))
        return False
    if not named:
        note(f"{shown_path(project.path)} does not name it: add it to configs there.")
    return named
