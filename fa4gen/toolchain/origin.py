"""From a line of the generated file to the template line that wrote it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fa4gen.config.paths import shown_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fa4gen.errors import Problem
    from fa4gen.render.batch import RenderedConfig
    from fa4gen.render.template_errors import TemplateLine


class Origins:
    """Finds the template lines of one kernel; renders it again only if a problem needs it."""

    def __init__(
        self, item: RenderedConfig, user_templates: Path | None = None, out: Path | None = None
    ) -> None:
        self._item = item
        self._user_templates = user_templates
        self._out = out
        self._places: dict[str, list[TemplateLine | None]] = {}

    def trace(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """Return ``problems`` with the generated file's path and their template lines."""
        return tuple(self._trace(problem) for problem in problems)

    def _trace(self, problem: Problem) -> Problem:
        kernel = self._item.kernel
        if problem.file not in kernel.files:
            return problem
        found = replace(problem, file=self._path(problem.file))
        if not problem.line:
            return found
        lines = kernel.files[problem.file].splitlines()
        text = lines[problem.line - 1].strip() if problem.line <= len(lines) else ""
        message = f"{found.message}\n  generated: {text}"
        place = self._template_line(problem.file, problem.line)
        if place is not None:
            message += f"\n  template: {place}: {place.text.strip()}"
        return replace(found, message=message)

    def _path(self, file: str) -> str:
        """Return the path of the file, also where it was rendered in memory only."""
        kernel = self._item.kernel
        path = (self._out or Path("generated")) / kernel.folder / file
        try:
            if path.read_text(encoding="utf-8") == kernel.files[file]:
                return shown_path(path)
        except (OSError, UnicodeDecodeError):
            pass
        return f"{kernel.folder}/{file}"

    def _template_line(self, file: str, line: int) -> TemplateLine | None:
        if file not in self._places:
            from fa4gen.render.environment import open_templates
            from fa4gen.render.render import template_places

            item, templates = self._item, open_templates(self._user_templates)
            self._places[file] = template_places(item.plan, item.loaded, templates, file)
        places = self._places[file]
        return places[line - 1] if line <= len(places) else None
