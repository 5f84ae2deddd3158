"""The files of a vendored folder as bytes, and its lock."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import jinja2

from fa4gen.config.find import portable_name
from fa4gen.config.paths import shown_path
from fa4gen.errors import ConfigError, Problem, TemplateError
from fa4gen.render.manifest import config_data, config_sha256, sha256
from fa4gen.resources import license_terms
from fa4gen.vendoring.folder_files import folder_files
from fa4gen.vendoring.generator_commit import generator_commit
from fa4gen.vendoring.kernel_facts import kernel_facts
from fa4gen.vendoring.lock import (
    Generator,
    Lock,
    LockedImage,
    LockedKernel,
    Proof,
    proof_sha256,
)
from fa4gen.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fa4gen.config.project import Adapter
    from fa4gen.render.environment import TemplateSet
    from fa4gen.vendoring.model import PlannedKernel, Request, VendoredKernel

LICENSE_ID = "Apache-2.0"


@dataclass(frozen=True)
class Assembled:
    """A vendored folder as it is to be written."""

    lock: Lock
    files: Mapping[str, bytes]
    """Every file but the lock, by path."""


def assemble(
    request: Request, kernels: Sequence[VendoredKernel], templates: TemplateSet
) -> Assembled:
    """Return the folder that ``request`` asks for. Raises ConfigError, TemplateError."""
    files = text_files(request, kernels, templates)
    hashes = {path: sha256(data) for path, data in sorted(files.items())}
    lock = Lock(
        generator=Generator(version=__version__, commit=generator_commit()),
        license=LICENSE_ID,
        prefix=request.prefix,
        adapters=cast("tuple[Adapter, ...]", request.adapters),
        templates_sha256=templates.sha256,
        own_templates=templates.own or None,
        kernels=tuple(_locked(kernel, hashes) for kernel in kernels),
        table=request.table,
        files=hashes,
    )
    return Assembled(lock, files)


def text_files(
    request: Request, kernels: Sequence[PlannedKernel], templates: TemplateSet
) -> dict[str, bytes]:
    """Return every file but the lock, by path; see ``folder_files``.

    Raises ConfigError for an adapter that cannot call one of the kernels, TemplateError.
    """
    _refuse_views(request, kernels)
    try:
        texts = folder_files(request, kernels, templates)
    except jinja2.TemplateError as error:
        raise _template_error(error, templates) from error
    texts["LICENSE"] = license_terms()
    return {path: text.encode() for path, text in sorted(texts.items())}


def _refuse_views(request: Request, kernels: Sequence[PlannedKernel]) -> None:
    """Refuse an adapter that cannot pass what a kernel takes: views, fp4, arrays that change."""
    for one in kernels:
        facts = kernel_facts(one).launcher
        has_fp4 = max(facts.elements_per_byte, facts.out_elements_per_byte) > 1
        if request.adapters and (facts.has_atoms or has_fp4):
            what = "elements of fp4" if has_fp4 else "scales in atoms"
            raise ConfigError(
                Problem(
                    f"{one.name}: adapters pass no {what} yet",
                    "Call it in C, from a folder without adapters; scales of fp8 may be "
                    "row-major, scale_order and output_scale_order: row_major, which adapters "
                    "pass.",
                )
            )
    raising = [one.name for one in kernels if kernel_facts(one).launcher.raised is not None]
    if raising and "jax" in request.adapters:
        raise ConfigError(
            Problem(
                f"{raising[0]}: a call raises max_logits in place, and arrays of JAX do not change",
                "Leave the adapter jax out, or vendor the kernel into a folder of its own.",
            )
        )
    for one in kernels:
        facts = kernel_facts(one).launcher
        if "jax" in request.adapters and (facts.scatters_rows or facts.finds_amax):
            what = "raises out_amax" if facts.finds_amax else "stores rows of a given out"
            raise ConfigError(
                Problem(
                    f"{one.name}: a call {what} in place, and arrays of JAX do not change",
                    "Leave the adapter jax out, or vendor the kernel into a folder of its own.",
                )
            )
    names = [one.name for one in kernels if kernel_facts(one).launcher.values_in_keys]
    if names and "jax" in request.adapters:
        raise ConfigError(
            Problem(
                f"{names[0]}: its values are columns of the keys, and an array of JAX cannot be "
                "a view of another",
                "Leave the adapter jax out, or vendor the kernel into a folder of its own.",
            )
        )


def _template_error(error: jinja2.TemplateError, templates: TemplateSet) -> TemplateError:
    """Return the error of a template of the folder's own files, at its innermost line."""
    places = [
        (source, frame.lineno or 0)
        for frame in traceback.extract_tb(error.__traceback__)
        if (source := templates.by_path(frame.filename)) is not None
    ]
    if isinstance(error, jinja2.TemplateSyntaxError) and error.name:
        places.append((templates.source(error.name), error.lineno))
    message = f"the template failed: {error.message or type(error).__name__}"
    if not places:
        return TemplateError(Problem(message))
    source, line = places[-1]
    return TemplateError(Problem(message, "", shown_path(source.path), line, 1))


def _locked(kernel: VendoredKernel, hashes: dict[str, str]) -> LockedKernel:
    loaded, compiled = kernel.loaded, kernel.compiled
    return LockedKernel(
        name=kernel.name,
        symbol=kernel.symbol,
        arch=kernel.plan.arch,
        family=kernel.plan.kernel,
        source=portable_name(loaded.path),
        config_text=loaded.text,
        config=config_data(loaded.config),
        config_sha256=config_sha256(loaded.config),
        compiler=compiled.compiler,
        compiler_version=compiled.compiler_version,
        options=compiled.options,
        image=LockedImage(sha256=sha256(compiled.cubin), cubin_bytes=len(compiled.cubin)),
        proofs=(Proof(level="compiled", files_sha256=proof_sha256(kernel.symbol, hashes)),),
    )
