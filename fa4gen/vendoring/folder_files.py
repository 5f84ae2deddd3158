"""The files of a vendored folder, as text by path; nothing is written here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.declared import MOST_TENSORS
from fa4gen.designs.common.hardware import ARCHITECTURES, capability_words
from fa4gen.designs.registry import FAMILIES
from fa4gen.epilogues import RESIDUALS
from fa4gen.masks import MASKS
from fa4gen.render.environment import open_templates
from fa4gen.render.manifest import sha256
from fa4gen.render.render import GENERATOR
from fa4gen.runtime.arguments import DESCALES, TABLES
from fa4gen.scores import SCORES
from fa4gen.vendoring.binding import FIELDS
from fa4gen.vendoring.cubins import cubin_path, cubin_text
from fa4gen.vendoring.expression_c import HELPERS, helpers_of
from fa4gen.vendoring.family import families_in_folder
from fa4gen.vendoring.kernel_facts import kernel_facts
from fa4gen.vendoring.launcher_facts import ARRAYS
from fa4gen.vendoring.model import VendoredKernel
from fa4gen.vendoring.regions import EXTENTS, MOST_EXTENTS, region_facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.render.environment import TemplateSet
    from fa4gen.vendoring.kernel_facts import KernelFacts
    from fa4gen.vendoring.model import PlannedKernel, Request

ROOTS: tuple[tuple[str, str], ...] = (
    ("include/{prefix}.h", "vendored/launcher.h.j2"),
    ("src/{prefix}_internal.h", "vendored/src/internal.h.j2"),
    ("src/launcher.c", "vendored/launcher.c.j2"),
    ("test/selftest.c", "vendored/selftest.c.j2"),
    ("CMakeLists.txt", "vendored/build/CMakeLists.txt.j2"),
    ("cmake/{prefix}-from-source.cmake", "vendored/build/from_source.cmake.j2"),
    ("{prefix}.pc.in", "vendored/build/pc.in.j2"),
    ("README.md", "vendored/build/README.md.j2"),
    (".gitattributes", "vendored/build/gitattributes.j2"),
    (".clang-format", "vendored/build/clang_format.j2"),
)
"""Files that every folder has: path and template."""
HEADER_PARTS = ("vendored/header/gemm.h.j2", "vendored/header/merge.h.j2")
"""Templates that the header includes."""
ADAPTER_ROOTS: dict[str, tuple[tuple[str, str], ...]] = {
    "python": (
        ("adapters/python/{prefix}.py", "vendored/adapters/python/adapter.py.j2"),
        ("adapters/python/example.py", "vendored/adapters/python/example.py.j2"),
    ),
    "torch": (
        ("adapters/torch/{prefix}_torch.py", "vendored/adapters/torch/adapter.py.j2"),
        ("adapters/torch/{prefix}_torch.cpp", "vendored/adapters/torch/stable.cpp.j2"),
        ("adapters/torch/CMakeLists.txt", "vendored/adapters/torch/CMakeLists.txt.j2"),
        ("adapters/torch/example.py", "vendored/adapters/torch/example.py.j2"),
    ),
    "jax": (
        ("adapters/jax/{prefix}_jax.py", "vendored/adapters/jax/adapter.py.j2"),
        ("adapters/jax/{prefix}_jax.cc", "vendored/adapters/jax/handlers.cc.j2"),
        ("adapters/jax/CMakeLists.txt", "vendored/adapters/jax/CMakeLists.txt.j2"),
        ("adapters/jax/example.py", "vendored/adapters/jax/example.py.j2"),
    ),
    "tvm-ffi": (
        ("adapters/tvm_ffi/{prefix}_tvm_ffi.cc", "vendored/adapters/tvm_ffi/functions.cc.j2"),
        ("adapters/tvm_ffi/CMakeLists.txt", "vendored/adapters/tvm_ffi/CMakeLists.txt.j2"),
        ("adapters/tvm_ffi/example.py", "vendored/adapters/tvm_ffi/example.py.j2"),
    ),
    "hf-kernels": (
        ("adapters/hf_kernels/__init__.py", "vendored/adapters/hf_kernels/init.py.j2"),
        ("adapters/hf_kernels/{prefix}_torch.py", "vendored/adapters/torch/adapter.py.j2"),
        ("adapters/hf_kernels/CMakeLists.txt", "vendored/adapters/hf_kernels/CMakeLists.txt.j2"),
    ),
}
"""Files of each adapter."""


def template_values(request: Request, facts: tuple[KernelFacts, ...]) -> dict[str, object]:
    """Return the values that the templates of ROOTS and ADAPTER_ROOTS read."""
    return {
        "prefix": request.prefix,
        "PREFIX": request.prefix.upper(),
        "kernels": facts,
        "adapters": request.adapters,
        "generator": GENERATOR,
        "masks": MASKS,
        "scores": SCORES,
        "residuals": RESIDUALS,
        "families": families_in_folder({fact.family for fact in facts}),
        "own_families": tuple(name for name in FAMILIES if any(f.family == name for f in facts)),
        "most_tensors": MOST_TENSORS,
        "table": request.table,
        "regions": region_facts(request.table, facts),
        "region_extents": EXTENTS,
        "most_extents": MOST_EXTENTS,
        "small_arrays": ARRAYS,
        "descale_names": DESCALES,
        "table_names": TABLES,
        "c_structs": FIELDS,
        "targets": {
            arch: capability_words(ARCHITECTURES[arch].runs_on)
            for arch in dict.fromkeys(fact.arch for fact in facts)
        },
        "condition_helpers": {
            name: HELPERS[name]
            for name in helpers_of(
                text for fact in facts for text in (fact.selftest.condition, fact.selftest.score)
            )
        },
    }


def folder_files(
    request: Request,
    kernels: Sequence[PlannedKernel],
    templates: TemplateSet | None = None,
) -> dict[str, str]:
    """Return the text of every file but the lock, by path relative to the folder, sorted.

    Kernels that are not compiled have no file in cubins/.
    """
    templates = templates or open_templates()
    facts = tuple(kernel_facts(kernel) for kernel in kernels)
    shared = template_values(request, facts)
    files = {}
    roots = [*ROOTS, *(root for name in request.adapters for root in ADAPTER_ROOTS.get(name, ()))]
    for path, template in roots:
        text = templates.environment().get_template(template).render(shared)
        files[path.format(prefix=request.prefix)] = text
    for kernel in kernels:
        files |= {f"kernels/{name}": text for name, text in kernel.rendered.files.items()}
        if isinstance(kernel, VendoredKernel):
            files[cubin_path(kernel.symbol)] = cubin_text(
                kernel.symbol,
                request.prefix,
                kernel.plan.arch,
                {name: sha256(text) for name, text in source_files(kernel).items()},
                kernel.compiled.cubin,
                templates,
            )
    return dict(sorted(files.items()))


def source_files(kernel: PlannedKernel) -> dict[str, str]:
    """Return the text of the .cu and of its headers, by file name."""
    files = kernel.rendered.files
    return {name: text for name, text in files.items() if not name.endswith(".json")}
