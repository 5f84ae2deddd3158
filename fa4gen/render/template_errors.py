"""Turns any failure inside a template into one TemplateError with place and reason."""

from __future__ import annotations

import dataclasses
import re
import sys
from typing import TYPE_CHECKING, Any

import jinja2

from fa4gen.config.expectations import similar
from fa4gen.config.paths import shown_path
from fa4gen.errors import Problem, TemplateError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fa4gen.config.load import LoadedConfig
    from fa4gen.designs.common.plans import Plan
    from fa4gen.render.environment import TemplateSet, TemplateSource

_NO_ATTRIBUTE = re.compile(r"'(?P<type>[\w.]+)(?: object)?' has no attribute '(?P<name>\w+)'")
_NO_NAME = re.compile(r"'(?P<name>\w+)' is undefined")
_PLAN_FIELD = re.compile(r"\bplan\.(\w+)")
TEMPLATE_NAMES = ("plan", "design", "config_name", "config_sha256", "generator", "instructions")


@dataclasses.dataclass(frozen=True)
class TemplateLine:
    """A place in a template; ``line`` counts from 1."""

    source: TemplateSource
    line: int

    def __str__(self) -> str:
        return f"{shown_path(self.source.path)}:{self.line}"

    @property
    def text(self) -> str:
        """The line's text; empty for a line past the end."""
        lines = self.source.lines
        return lines[self.line - 1] if self.line <= len(lines) else ""


def template_error(
    error: Exception, templates: TemplateSet, root: str, plan: Plan, loaded: LoadedConfig
) -> TemplateError:
    """Return the TemplateError for ``error``, which rendering the template ``root`` raised."""
    trail = _trail(error, templates)
    if not trail:  # the root template itself is missing
        folders = ", ".join(shown_path(folder) for folder in templates.roots)
        return TemplateError(
            Problem(
                f"{_config_name(loaded)}: cannot render: {_what(error)}",
                f"Looked for {root} in: {folders}.",
                file=root,
            )
        )
    place = trail[-1]
    what, suggestion, name = _explain(error, plan)
    return template_problem(place, what, suggestion, name, plan, loaded, trail[:-1])


def template_problem(
    place: TemplateLine,
    what: str,
    suggestion: str,
    name: str,
    plan: Plan,
    loaded: LoadedConfig,
    included_from: Iterable[TemplateLine] = (),
) -> TemplateError:
    """Return a TemplateError at ``place``: ``what`` is wrong there with ``name`` (may be empty)."""
    message = [f"{what} (rendering {_config_name(loaded)})", *_context(place)]
    message += [f"  included from {outer}" for outer in reversed(list(included_from))]
    keys = _config_keys(place.text, loaded)
    message += [f"  config key {key}: {_value(plan, key)}{_key_place(loaded, key)}" for key in keys]
    column = place.text.find(name) + 1 if name else 0
    if not column:
        column = len(place.text) - len(place.text.lstrip()) + 1
    return TemplateError(
        Problem(
            "\n".join(message),
            suggestion,
            file=shown_path(place.source.path),
            line=place.line,
            column=column,
            key=keys[0] if keys else "",
        )
    )


def _trail(error: Exception, templates: TemplateSet) -> list[TemplateLine]:
    """Return the template lines that were being executed, outermost first."""
    import traceback

    places: list[TemplateLine] = []
    for frame in traceback.extract_tb(error.__traceback__):
        source = templates.by_path(frame.filename)
        if source and frame.lineno:
            place = TemplateLine(source, frame.lineno)
            if not places or str(places[-1]) != str(place):  # a macro call shows twice
                places.append(place)
    if isinstance(error, jinja2.TemplateSyntaxError) and error.filename:
        source = templates.by_path(error.filename)
        if source and (not places or places[-1].source is not source):
            places.append(TemplateLine(source, error.lineno))
    return places


def _explain(error: Exception, plan: Plan) -> tuple[str, str, str]:
    """Return the error, the remedy, and the name in question."""
    if isinstance(error, jinja2.UndefinedError):
        text = str(error)
        if match := _NO_ATTRIBUTE.search(text):
            kind = match["type"].rpartition(".")[2]
            owner = "plan" if kind == type(plan).__name__ else kind
            candidates = _fields_of(match["type"])
            what = f"{owner} has no field {match['name']!r}"
            return what, _nearest(match["name"], candidates, f"{owner}."), match["name"]
        if match := _NO_NAME.search(text):
            what = f"{match['name']!r} is not defined"
            fields = _public_names(type(plan))
            if match["name"] in fields:
                return what, f"Did you mean plan.{match['name']}?", match["name"]
            return what, _nearest(match["name"], TEMPLATE_NAMES, ""), match["name"]
        return f"undefined: {text}", "", ""
    if isinstance(error, jinja2.TemplateSyntaxError):
        return f"template syntax: {error.message}", "", ""
    if isinstance(error, jinja2.TemplateNotFound):
        return _what(error), "Add the file, or correct its name in the include.", str(error.name)
    return _what(error), "", ""


def _what(error: Exception) -> str:
    if isinstance(error, jinja2.TemplatesNotFound):
        return f"none of the templates {', '.join(map(str, error.templates))} exists"
    if isinstance(error, jinja2.TemplateNotFound):
        return f"there is no template {error.name!r}"
    if isinstance(error, KeyError):
        return f"the plan has no {error.args[0]!r} here (KeyError)"
    return f"{error} ({type(error).__name__})" if str(error) else type(error).__name__


def _nearest(name: str, candidates: Iterable[str], prefix: str) -> str:
    known = sorted(candidates)
    if near := similar(name, known):
        return f"Did you mean {prefix}{near[0]}?"
    return f"Known here: {', '.join(known)}." if known else ""


def _fields_of(qualified_name: str) -> tuple[str, ...]:
    module, _, name = qualified_name.rpartition(".")
    kind = getattr(sys.modules.get(module), name, None)
    return _public_names(kind) if isinstance(kind, type) else ()


def _public_names(kind: type) -> tuple[str, ...]:
    fields = [f.name for f in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
    return tuple(sorted({*fields, *(name for name in dir(kind) if not name.startswith("_"))}))


def _context(place: TemplateLine) -> list[str]:
    """Return three lines of the template, the one at fault marked and in the middle."""
    lines = place.source.lines
    first, last = max(1, place.line - 1), min(len(lines), place.line + 1)
    width = len(str(last))
    return [
        f"  {'>' if number == place.line else ' '} {number:{width}} | {lines[number - 1]}".rstrip()
        for number in range(first, last + 1)
    ]


def _config_keys(line: str, loaded: LoadedConfig) -> list[str]:
    """Return the config keys that a template line reads: plan fields carry the keys' names."""
    keys = type(loaded.config).model_fields
    return [key for key in dict.fromkeys(_PLAN_FIELD.findall(line)) if key in keys]


def _value(plan: Plan, key: str) -> Any:
    return getattr(plan, key, "?")


def _key_place(loaded: LoadedConfig, key: str) -> str:
    return f" ({loaded.place_of(key) or 'not set: the default'})"


def _config_name(loaded: LoadedConfig) -> str:
    return shown_path(loaded.path)
