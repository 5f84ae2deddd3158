"""Compiles the machine code of a vendored folder again, from sources that the user edited."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.config.paths import shown_path
from fa4gen.errors import CompileError, NotCurrentError, Problem
from fa4gen.render.environment import open_templates
from fa4gen.render.manifest import sha256
from fa4gen.toolchain.cache import Cache
from fa4gen.toolchain.compile import compile_kernel
from fa4gen.vendoring.changes import FileOutcome, FolderPlan, finish_plan, source_paths
from fa4gen.vendoring.cubins import cubin_path, cubin_text, recorded_sources
from fa4gen.vendoring.lock import LockedImage, Proof, proof_sha256, read_lock
from fa4gen.vendoring.on_disk import read_file, refuse_links

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fa4gen.render.environment import TemplateSet
    from fa4gen.toolchain.model import CompiledKernel, Compiler
    from fa4gen.vendoring.lock import Lock, LockedKernel


def plan_recompile(
    folder: Path, compiler: str | Compiler = "auto", templates: TemplateSet | None = None
) -> FolderPlan:
    """Compile each kernel whose machine code is missing, edited or of other sources; write nothing.

    The lock gets the hash of the new machine code; an edited source stays edited. Raises
    NotCurrentError for a source that is missing, CompileError, MissingCapabilityError.
    """
    templates = templates or open_templates()
    lock = read_lock(folder)
    refuse_links(folder, lock.files)
    disk = {path: read_file(folder, path) for path in lock.files}
    new: dict[str, bytes] = {}
    kernels = []
    for kernel in lock.kernels:
        path = cubin_path(kernel.symbol)
        sources = _sources(folder, kernel, disk)
        if _is_current(disk.get(path), lock.files.get(path), sources):
            kernels.append(kernel)
            continue
        compiled = _compiled(folder, kernel, sources, compiler)
        hashes = {name: sha256(data) for name, data in sources.items()}
        new[path] = cubin_text(
            kernel.symbol, lock.prefix, kernel.arch, hashes, compiled.cubin, templates
        ).encode()
        kernels.append(_with_image(kernel, compiled))
    lock = _relocked(lock, kernels, disk, new)
    outcomes = [
        FileOutcome(path, "updated" if path in new else "unchanged", data, new.get(path, data))
        for path, data in disk.items()
    ]
    return finish_plan(folder, outcomes, lock, read_lock(folder))


def _sources(
    folder: Path, kernel: LockedKernel, disk: Mapping[str, bytes | None]
) -> dict[str, bytes]:
    """Return a kernel's sources as they are, by file name."""
    sources = {}
    for path in sorted(source_paths(kernel.symbol)):
        data = disk.get(path)
        if data is None:
            raise NotCurrentError(
                Problem(
                    "the file is missing: the kernel cannot be compiled",
                    f"fa4gen vendor update {shown_path(folder)} --force restores it.",
                    shown_path(folder / path),
                )
            )
        sources[path.rpartition("/")[2]] = data
    return sources


def _is_current(cubin: bytes | None, recorded: str | None, sources: Mapping[str, bytes]) -> bool:
    if cubin is None or sha256(cubin) != recorded:
        return False
    return recorded_sources(cubin) == {name: sha256(data) for name, data in sources.items()}


def _compiled(
    folder: Path, kernel: LockedKernel, sources: Mapping[str, bytes], compiler: str | Compiler
) -> CompiledKernel:
    headers = {name: data.decode("utf-8", "replace") for name, data in sources.items()}
    source = headers.pop(f"{kernel.symbol}.cu")
    try:
        return compile_kernel(
            source,
            headers,
            kernel.arch,
            name=kernel.symbol,
            compiler=compiler,
            cache=Cache.default(),
        )
    except CompileError as error:
        where = f"in {shown_path(folder / 'kernels')}; nothing was written"
        raise CompileError(*error.problems, Problem(f"{kernel.symbol}: {where}")) from error


def _with_image(kernel: LockedKernel, compiled: CompiledKernel) -> LockedKernel:
    image = LockedImage(sha256=sha256(compiled.cubin), cubin_bytes=len(compiled.cubin))
    return kernel.changed(
        image=image,
        compiler=compiled.compiler,
        compiler_version=compiled.compiler_version,
        options=compiled.options,
    )


def _relocked(
    lock: Lock,
    kernels: list[LockedKernel],
    disk: Mapping[str, bytes | None],
    new: Mapping[str, bytes],
) -> Lock:
    """Return the lock with ``kernels`` and, for those with new machine code, a proof of that."""
    hashes = {path: sha256(data) for path, data in {**disk, **new}.items() if data is not None}
    proved = []
    for kernel in kernels:
        if cubin_path(kernel.symbol) in new:
            proof = Proof(level="compiled", files_sha256=proof_sha256(kernel.symbol, hashes))
            kernel = kernel.changed(proofs=(proof,))
        proved.append(kernel)
    files = {**lock.files, **{path: sha256(data) for path, data in new.items()}}
    return lock.changed(kernels=tuple(proved), files=files)
