"""Dependency files for Make and Ninja: which inputs each generated file came from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fa4gen.config.paths import shown_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fa4gen.render.batch import RenderedConfig


def depfile_text(rendered: Sequence[RenderedConfig], out_dir: Path) -> str:
    """Return a rule for each kernel: its files depend on config, base and templates.

    Every input also gets a rule of its own without commands, so that Make does not stop when a
    template has been removed or renamed since. Paths below the current folder are relative to it.
    """
    rules = []
    inputs: dict[str, None] = {}
    for item in rendered:
        folder = out_dir / item.kernel.folder
        targets = [shown_path(folder / name) for name in item.kernel.files]
        sources = [shown_path(Path(path)) for path in item.inputs]
        inputs.update(dict.fromkeys(sources))
        rules.append(_join(targets) + ": \\\n  " + _join(sources, " \\\n  ") + "\n")
    return "\n".join([*rules, *(f"{_escape(source)}:\n" for source in inputs)])


def _join(paths: Iterable[str], separator: str = " ") -> str:
    return separator.join(_escape(path) for path in paths)


def _escape(path: str) -> str:
    for character in (" ", "#"):
        path = path.replace(character, "\\" + character)
    return path.replace("$", "$$")
