"""Every shipped kernel in one library: the launcher as it is shipped, and cubins that are only a
list of parameters, so that nothing has to be compiled by NVRTC."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING

from fa4gen.config.find import shipped_configs
from fa4gen.errors import ConfigError
from fa4gen.render.environment import open_templates
from fa4gen.vendoring.cubins import cubin_path, cubin_text
from fa4gen.vendoring.family import family_of
from fa4gen.vendoring.folder_files import ROOTS, template_values
from fa4gen.vendoring.kernel_facts import KernelFacts, kernel_facts
from fa4gen.vendoring.model import Request
from fa4gen.vendoring.names import with_prefix
from fa4gen.vendoring.standin import SimulatedDevice
from tests.shipped import loaded, plan_of

if TYPE_CHECKING:
    from pathlib import Path

    from fa4gen.designs.common.model import Parameter
    from fa4gen.designs.common.plans import Plan
    from fa4gen.vendoring.lock import LockedTable

PREFIX = "acme"
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wconversion", "-Wshadow")
C_FOLDERS = ("include/", "src/")
PARAMETER_SIZES = {"TensorMap": 128, "*": 8, "int64": 8, "int32": 4, "float": 4}


def vendored_configs() -> list[Path]:
    """The shipped configs whose kernels a folder may have; see ``render_kernels``."""
    return [path for path in shipped_configs() if is_vendored(plan_of(path))]


def is_vendored(plan: Plan) -> bool:
    try:
        family_of(plan).refuse(plan)
    except ConfigError:
        return False
    return True


@lru_cache(maxsize=1)
def shipped_plans() -> dict[str, Plan]:
    """The plans of shipped kernels with a launcher under the prefix, by the config's name."""
    paths = vendored_configs()
    return {loaded(path).config.name: with_prefix(plan_of(path), PREFIX) for path in paths}


@dataclass(frozen=True)
class Section:
    name: bytes
    data: bytes


def parameter_bytes(c_type: str) -> int:
    words = c_type.replace("*", " * ").split()
    return next(size for word, size in PARAMETER_SIZES.items() if word in words)


def cubin_without_code(plan: Plan) -> bytes:
    """An ELF file that says of the kernel what the driver reads, and has no instruction."""
    own = (plan.entry_point, plan.parameters, plan.launch.threads, plan.launch.cluster)
    entries = [own]
    if plan.tile_list is not None:
        listing = plan.tile_list
        entries.append((listing.entry_point, listing.parameters, listing.threads, 1))
    sections = [
        Section(b"", b""),
        *(Section(f".nv.info.{name}".encode(), _info(*rest)) for name, *rest in entries),
        Section(b".nv.compat", struct.pack("<BBH", 2, 9, not plan.hardware.is_family)),
        Section(b".shstrtab", b""),
    ]
    names = b"\0".join(section.name for section in sections) + b"\0"
    sections[-1] = Section(b".shstrtab", names)
    body, headers, name_at = b"", b"", 0
    for section in sections:
        headers += struct.pack(
            "<IIQQQQIIQQ", name_at, 1, 0, 0, 64 + len(body), len(section.data), 0, 0, 1, 0
        )
        name_at += len(section.name) + 1
        body += section.data
    sm = SimulatedDevice(plan.arch).sm
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    place = 64 + len(body)
    last = len(sections) - 1
    header = struct.pack(
        "<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, place, sm << 8, 64, 0, 0, 64, last + 1, last
    )
    return ident + header + body + headers


def _info(parameters: tuple[Parameter, ...], threads: int, cluster: int) -> bytes:
    """Return the facts that the driver reads of an entry."""
    info = b""
    offset = 0
    for ordinal, row in enumerate(parameters):
        size = parameter_bytes(row.c_type)
        align = 64 if size == 128 else size
        offset = -(-offset // align) * align
        info += struct.pack("<BBHIHHI", 4, 0x17, 12, 0, ordinal, offset, size << 18)
        offset += size
    info += struct.pack("<BBHIII", 4, 0x05, 12, threads, 1, 1)
    if cluster > 1:
        info += struct.pack("<BBHIII", 4, 0x3D, 12, cluster, 1, 1)
    return info


def facts_of(name: str, plan: Plan) -> KernelFacts:
    """Return the facts of a shipped kernel, which is not compiled."""
    return kernel_facts(SimpleNamespace(name=name, symbol=plan.name, plan=plan))


def write_launcher(
    folder: Path, plans: dict[str, Plan], prefix: str = PREFIX, table: LockedTable | None = None
) -> Path:
    """Write the C files of a vendored folder, and nothing else."""
    facts = tuple(facts_of(name, plan) for name, plan in plans.items())
    values = template_values(Request(prefix, table=table), facts)
    templates = open_templates()
    files = {}
    for path, template in ROOTS:
        if path.startswith(C_FOLDERS):
            text = templates.environment().get_template(template).render(values)
            files[path.format(prefix=prefix)] = text
    for plan in plans.values():
        cubin = cubin_without_code(plan)
        text = cubin_text(plan.name, prefix, plan.arch, {}, cubin, templates)
        files[cubin_path(plan.name)] = text
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder
