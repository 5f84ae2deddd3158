"""A plan to the text of its files: the kernel, its header of barrier offsets, its manifest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen import __version__
from fa4gen.designs.registry import design_of
from fa4gen.errors import Fa4genError
from fa4gen.render.environment import TemplateSet, TemplateSource, open_templates
from fa4gen.render.instructions import FAMILIES, PLACEHOLDER, called, code_words, put_in
from fa4gen.render.line_map import LineTags, split_tags
from fa4gen.render.manifest import config_sha256, manifest_text
from fa4gen.render.template_errors import TemplateLine, template_error, template_problem
from fa4gen.render.text_check import first_breach

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.config.load import LoadedConfig
    from fa4gen.designs.shared.plans import Plan
    from fa4gen.errors import TemplateError

GENERATOR = f"fa4gen {__version__}"
HEADER_TEMPLATE = "rings/barriers.h.j2"


@dataclass(frozen=True)
class RenderedKernel:
    """The text of a kernel's files by file name, and the templates that it came from."""

    name: str
    arch: str
    family: str
    """The config key ``kernel``: "attention", say."""
    files: Mapping[str, str]
    """N.cu, N_barriers.h and N.json (the manifest, last)."""
    templates: tuple[str, ...]
    """Names of the templates used, sorted."""
    template_files: tuple[str, ...]
    """Their files, in the same order, for dependency files."""

    @property
    def folder(self) -> str:
        """Where the files belong, relative to the output folder."""
        return f"{self.arch}/{self.name}"

    @property
    def source(self) -> str:
        """The text of N.cu."""
        return self.files[f"{self.name}.cu"]

    @property
    def headers(self) -> dict[str, str]:
        """The headers that N.cu includes, by name."""
        return {name: text for name, text in self.files.items() if name.endswith(".h")}


def render(
    plan: Plan, loaded: LoadedConfig, templates: TemplateSet | None = None
) -> RenderedKernel:
    """Render ``plan``, which came from ``loaded``, by the shipped templates if no others are given.

    Give the same ``templates`` to many calls: they are compiled once. The result depends on the
    config, the templates and the generator's version alone. Raises TemplateError.
    """
    templates = templates or open_templates()
    files: dict[str, str] = {}
    used: dict[str, TemplateSource] = {}
    for file, root in _roots(plan).items():
        text, _, sources = _render_file(root, plan, loaded, templates)
        _check_text(file, text, root, plan, loaded, templates)
        files[file] = text
        used |= sources
    names = tuple(sorted(used))
    files[f"{plan.name}.json"] = manifest_text(
        plan, loaded.config, GENERATOR, {name: used[name].sha256 for name in names}, files
    )
    return RenderedKernel(
        name=plan.name,
        arch=plan.arch,
        family=plan.kernel,
        files=files,
        templates=names,
        template_files=tuple(str(used[name].path) for name in names),
    )


def template_places(
    plan: Plan, loaded: LoadedConfig, templates: TemplateSet, file: str
) -> list[TemplateLine | None]:
    """Return the template line behind each line of the rendered ``file`` (N.cu or N_barriers.h).

    Entry i is for line i + 1; None where no single template line can be named.
    """
    root = _roots(plan)[file]
    tagging = TemplateSet(templates.roots, extensions=(LineTags,))
    text, tagged = _render_file(root, plan, loaded, templates, tagging)[:2]
    return [
        TemplateLine(templates.source(origin[0]), origin[1]) if origin else None
        for origin in split_tags(tagged, text)
    ]


def _roots(plan: Plan) -> dict[str, str]:
    return {
        f"{plan.name}.cu": design_of(plan).template,
        f"{plan.name}_barriers.h": HEADER_TEMPLATE,
    }


def _render_file(
    root: str,
    plan: Plan,
    loaded: LoadedConfig,
    templates: TemplateSet,
    tagging: TemplateSet | None = None,
) -> tuple[str, str, dict[str, TemplateSource]]:
    """Return a file's text, the same with the tags of ``tagging``, and the templates used."""
    text, used = _render_template(root, plan, loaded, templates)
    tagged = _render_template(root, plan, loaded, tagging)[0] if tagging else ""
    if PLACEHOLDER in text:
        parts = {name: _render_template(name, plan, loaded, templates) for name in FAMILIES}
        families = {name: part.split("\n") for name, (part, _) in parts.items()}
        kept = called(families, code_words(text))
        text = put_in(text, families, kept)
        used |= {name: source for family in kept for name, source in parts[family][1].items()}
        if tagging:
            with_tags = {
                name: _render_template(name, plan, loaded, tagging)[0].split("\n") for name in kept
            }
            tagged = put_in(tagged, with_tags, kept)
    return text, tagged, used


def _render_template(
    name: str, plan: Plan, loaded: LoadedConfig, templates: TemplateSet
) -> tuple[str, dict[str, TemplateSource]]:
    environment = templates.environment()
    try:
        text = environment.get_template(name).render(
            plan=plan,
            config_sha256=config_sha256(loaded.config),
            generator=GENERATOR,
            instructions=PLACEHOLDER,
        )
    except Fa4genError:
        raise
    except Exception as error:  # a template may raise anything: all of it is the template's error
        raise template_error(error, templates, name, plan, loaded) from error
    return text, environment.used


def _check_text(
    file: str, text: str, root: str, plan: Plan, loaded: LoadedConfig, templates: TemplateSet
) -> None:
    breach = first_breach(text)
    if breach is None:
        return
    place = template_places(plan, loaded, templates, file)[breach.line - 1]
    place = place or TemplateLine(templates.source(root), 1)
    what = f"{breach.what}, at line {breach.line} of {file}"
    error: TemplateError = template_problem(place, what, breach.remedy, "", plan, loaded)
    raise error
