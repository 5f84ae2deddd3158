"""A plan to the text of its files: the kernel, its two headers, its manifest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.config.find import portable_name
from fa4gen.designs.registry import design_of
from fa4gen.errors import Fa4genError
from fa4gen.render.environment import TemplateSet, TemplateSource, open_templates
from fa4gen.render.instructions import (
    FAMILIES,
    OF_TENSORS,
    PLACEHOLDER,
    RINGS,
    called,
    code_words,
    put_in,
)
from fa4gen.render.line_map import LineTags, split_tags
from fa4gen.render.manifest import config_sha256, folder_of, manifest_text
from fa4gen.render.template_errors import TemplateLine, template_error, template_problem
from fa4gen.render.text_check import first_breach
from fa4gen.render.wrap import wrap
from fa4gen.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fa4gen.config.load import LoadedConfig
    from fa4gen.designs.common.plans import Plan
    from fa4gen.errors import TemplateError

GENERATOR = f"fa4gen {__version__}"
HEADER_TEMPLATE = "device/rings/barriers.h.j2"
DEVICE_TEMPLATE = "device/skeleton/device.cuh.j2"
HEADER_SUFFIXES = (".h", ".cuh")

_Rendered = tuple[str, dict[str, TemplateSource]]
"""A text, and the templates that it came from, by name."""


@dataclass(frozen=True)
class RenderedKernel:
    """The text of a kernel's files by file name, and the templates that it came from."""

    name: str
    arch: str
    family: str
    """The config key ``kernel``: "attention", say."""
    files: Mapping[str, str]
    """N.cu, N_barriers.h, N_device.cuh and N.json (the manifest, last)."""
    templates: tuple[str, ...]
    """Names of the templates used, sorted."""
    template_files: tuple[str, ...]
    """Their files, in the same order, for dependency files."""

    @property
    def folder(self) -> str:
        """The folder of the files, relative to the output folder."""
        return folder_of(self)

    @property
    def source(self) -> str:
        """The text of N.cu."""
        return self.files[f"{self.name}.cu"]

    @property
    def headers(self) -> dict[str, str]:
        """The headers that N.cu includes, by name."""
        return {n: text for n, text in self.files.items() if n.endswith(HEADER_SUFFIXES)}


def render(
    plan: Plan, loaded: LoadedConfig, templates: TemplateSet | None = None
) -> RenderedKernel:
    """Render ``plan``, which came from ``loaded``, by the shipped templates if no others are given.

    Give the same ``templates`` to many calls: they are compiled once. The result depends on the
    config with its portable name, the templates and the generator's version. Raises TemplateError.
    """
    templates = templates or open_templates()
    rendered = _render_files(plan, loaded, templates)
    files = {
        file: "\n".join(line.text for line in wrap(text)) for file, (text, _) in rendered.items()
    }
    for file, text in files.items():
        _check_text(file, text, plan, loaded, templates)
    used = {name: source for _, sources in rendered.values() for name, source in sources.items()}
    names = tuple(sorted(used))
    files[f"{plan.name}.json"] = manifest_text(
        plan,
        loaded.config,
        GENERATOR,
        {name: used[name].sha256 for name in names},
        files,
        {name: used[name].sha256 for name in names if templates.is_own(used[name])},
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
    """Return the template line of each line of the rendered ``file``: N.cu or a header.

    Entry i is for line i + 1; None where no single template line can be named.
    """
    tagging = TemplateSet(templates.roots, extensions=(LineTags,))
    text = _render_files(plan, loaded, templates)[file][0]
    tagged = _render_files(plan, loaded, templates, tagging)[file][0]
    origins = split_tags(tagged, text)
    return [
        TemplateLine(templates.source(origin[0]), origin[1]) if origin else None
        for origin in (origins[line.origin] for line in wrap(text))
    ]


def _roots(plan: Plan) -> dict[str, str]:
    return {
        f"{plan.name}.cu": design_of(plan).template,
        f"{plan.name}_barriers.h": HEADER_TEMPLATE,
        f"{plan.name}_device.cuh": DEVICE_TEMPLATE,
    }


def _render_files(
    plan: Plan, loaded: LoadedConfig, templates: TemplateSet, tagging: TemplateSet | None = None
) -> dict[str, _Rendered]:
    """Return each file's text, written by ``tagging`` where it is given, and the templates used.

    The placeholder becomes what the kernel and its device header call. The header of barriers comes
    last: ``used`` has the words of their code, and it leaves out the constants that none of it has.
    """
    roots = _roots(plan)
    code = [root for root in roots.values() if root != HEADER_TEMPLATE]

    def rendered(
        names: Iterable[str], by: TemplateSet, used: frozenset[str] = frozenset()
    ) -> dict[str, _Rendered]:
        return {name: _render_template(name, plan, loaded, by, used) for name in names}

    files = rendered(code, templates)
    calling = "\n".join(text for text, _ in files.values())
    calls = code_words(calling)
    parts = rendered(_parts(plan) if PLACEHOLDER in calling else (), templates, calls)
    kept = called(_lines(parts), calls)
    words = code_words(put_in(calling, _lines(parts), kept))
    if tagging:
        files, parts = rendered(code, tagging), rendered(kept, tagging, calls)
    files |= rendered([HEADER_TEMPLATE], tagging or templates, words)
    lines = _lines(parts)
    of_parts = {name: source for part in kept for name, source in parts[part][1].items()}
    done = {}
    for file, root in roots.items():
        text, used = files[root]
        done[file] = put_in(text, lines, kept), used | of_parts if PLACEHOLDER in text else used
    return done


def _parts(plan: Plan) -> tuple[str, ...]:
    """Return the families and rings that the kernel may call from."""
    families = (name for name in FAMILIES if plan.tensor_maps or name not in OF_TENSORS)
    return (*families, *(RINGS if plan.barriers else ()))


def _lines(parts: Mapping[str, _Rendered]) -> dict[str, list[str]]:
    return {name: text.split("\n") for name, (text, _) in parts.items()}


def _render_template(
    name: str, plan: Plan, loaded: LoadedConfig, templates: TemplateSet, used: frozenset[str]
) -> _Rendered:
    environment = templates.environment()
    try:
        text = environment.get_template(name).render(
            plan=plan,
            config_sha256=config_sha256(loaded.config),
            config_name=portable_name(loaded.path),
            design=design_of(plan).name,
            generator=GENERATOR,
            instructions=PLACEHOLDER,
            used=used,
        )
    except Fa4genError:
        raise
    except Exception as error:  # a template may raise anything: all of it is the template's error
        raise template_error(error, templates, name, plan, loaded) from error
    return text, environment.used


def _check_text(
    file: str, text: str, plan: Plan, loaded: LoadedConfig, templates: TemplateSet
) -> None:
    breach = first_breach(text)
    if breach is None:
        return
    place = template_places(plan, loaded, templates, file)[breach.line - 1]
    place = place or TemplateLine(templates.source(_roots(plan)[file]), 1)
    what = f"{breach.what}, at line {breach.line} of {file}"
    error: TemplateError = template_problem(place, what, breach.remedy, "", plan, loaded)
    raise error
