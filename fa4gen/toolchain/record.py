"""The files of ``compile`` for a kernel: PTX, cubin, log, and the manifest with its resources.

``N.compile.json`` is the kernel's manifest with a ``compile`` part, the hashes of PTX and cubin and
the proof level; it is a file of its own so that N.json depends on no compiler. It is the same to
the byte whenever the same compiler compiles the same kernel.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fa4gen.config.paths import shown_path
from fa4gen.errors import ConfigError, NotCurrentError, Problem
from fa4gen.json_text import parse_json
from fa4gen.render.manifest import sha256
from fa4gen.render.write import write_files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fa4gen.render.render import RenderedKernel
    from fa4gen.toolchain.model import CompiledKernel, Finding

_RECORDED = "outputs"


def manifest_of(rendered: RenderedKernel) -> dict[str, Any]:
    """Return the manifest N.json of a rendered kernel."""
    data: dict[str, Any] = json.loads(rendered.files[f"{rendered.name}.json"])
    return data


def dynamic_shared_bytes(rendered: RenderedKernel) -> int:
    """Return the dynamic shared memory of a launch, as the kernel's plan has it."""
    return int(manifest_of(rendered)["plan"]["launch"]["dynamic_shared_bytes"])


def compile_data(kernel: CompiledKernel, dynamic_shared: int) -> dict[str, Any]:
    """Return the ``compile`` part: compiler, the kernel's resources, the lint's findings."""
    return {
        "compiler": kernel.compiler,
        "compiler_version": kernel.compiler_version,
        "options": list(kernel.options),
        "key": kernel.key,
        **asdict(kernel.resources),
        "dynamic_shared_bytes": dynamic_shared,
        "cubin_bytes": len(kernel.cubin),
        "findings": [finding_data(finding) for finding in kernel.findings],
    }


def finding_data(finding: Finding) -> dict[str, Any]:
    """Return ``finding`` as JSON data; unknown places are left out."""
    return {key: value for key, value in asdict(finding).items() if value not in ("", 0, ())}


def proof_of(kernel: CompiledKernel | None) -> str:
    """Return the proof level of a kernel by its compilation: "compiled", or still "rendered"."""
    return "compiled" if kernel is not None and kernel.clean else "rendered"


def output_files(rendered: RenderedKernel, kernel: CompiledKernel) -> dict[str, bytes]:
    """Return the files to keep by name."""
    stem = rendered.name
    # The time of ptxas is not a property of the kernel.
    log = [line for line in kernel.log.splitlines() if "Compile time = " not in line]
    outputs = {
        f"{stem}.ptx": kernel.ptx.encode(),
        f"{stem}.cubin": kernel.cubin,
        f"{stem}.log": "".join(f"{line.rstrip()}\n" for line in log).encode(),
    }
    manifest = manifest_of(rendered) | {
        "compile": compile_data(kernel, dynamic_shared_bytes(rendered)),
        _RECORDED: {name: sha256(content) for name, content in outputs.items()},
        "proof": proof_of(kernel),
    }
    outputs[f"{stem}.compile.json"] = (json.dumps(manifest, indent=2) + "\n").encode()
    return outputs


def write_outputs(outputs: Mapping[str, bytes], folder: Path, force: bool = False) -> list[Path]:
    """Put ``outputs`` into ``folder`` by renames, the manifest last, and return their paths.

    Raises NotCurrentError when a file would be overwritten that no earlier compile wrote, unless
    ``force``; ConfigError when the folder cannot be written.
    """
    manifest = next(name for name in outputs if name.endswith(".compile.json"))
    strange = [] if force else _not_ours(outputs, folder, manifest)
    if strange:
        remedy = "Move it, choose another folder with -o, or overwrite it with --force."
        raise NotCurrentError(
            *(
                Problem(
                    "not overwritten: fa4gen compile did not write it", remedy, shown_path(path)
                )
                for path in strange
            )
        )
    files = {folder / name: content for name, content in outputs.items()}
    write_files(files)
    return list(files)


def _not_ours(outputs: Mapping[str, bytes], folder: Path, manifest: str) -> list[Path]:
    """Return the files in the way that the manifest there does not record."""
    recorded: Any = None
    with suppress(OSError, ValueError):
        recorded = parse_json((folder / manifest).read_bytes())
    hashes = recorded.get(_RECORDED) if isinstance(recorded, dict) else None
    known = hashes if isinstance(hashes, dict) else {}
    strange = []
    for name, content in outputs.items():
        path = folder / name
        try:
            there = path.read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ConfigError(
                Problem(
                    f"cannot read: {error.strerror}",
                    "Move it, or choose another folder with -o.",
                    file=shown_path(path),
                )
            ) from error
        ours = name == manifest if known else False
        if there != content and not ours and known.get(name) != sha256(there):
            strange.append(path)
    return strange
