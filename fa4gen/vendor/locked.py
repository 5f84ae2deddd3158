"""A lock back to what it was made from: configs, and kernels as the folder has them compiled."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from fa4gen.config.load import LoadedConfig, validate_document
from fa4gen.config.yaml_positions import read_document
from fa4gen.errors import ConfigError, Problem
from fa4gen.render.choice import FIRST, choice_of
from fa4gen.render.manifest import intact_manifest, sha256
from fa4gen.toolchain.model import CompiledKernel, Resources
from fa4gen.vendor.image import ALPHABET, Image, image_lines
from fa4gen.vendor.lock import LOCK_NAME
from fa4gen.vendor.model import Request, VendoredKernel
from fa4gen.vendor.on_disk import read_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.render.choice import ChoiceRecord
    from fa4gen.vendor.kernels import PlannedKernel
    from fa4gen.vendor.lock import Lock, LockedKernel

_ROW = re.compile(rb'^ *"([%b]+)",$' % re.escape(ALPHABET).encode(), re.MULTILINE)
_CHECKSUM = re.compile(rb"^ *0x([0-9a-f]{8}),$", re.MULTILINE)


def locked_request(lock: Lock) -> Request:
    """Return what the folder was asked to hold."""
    sources = tuple(kernel.source for kernel in lock.kernels)
    return Request(lock.prefix, sources, lock.adapters, lock.table)


def locked_configs(lock: Lock) -> list[LoadedConfig]:
    """Return the lock's configs, read by the fa4gen of today.

    Raises ConfigError with the problems of all that it does not take any more.
    """
    loaded = []
    problems: list[Problem] = []
    for kernel in lock.kernels:
        file = f"{kernel.source} (in {LOCK_NAME})"
        try:
            document = read_document(kernel.config_text, file)
            config = validate_document(document, file, kernel.name)
        except ConfigError as error:
            problems += error.problems
            continue
        loaded.append(
            LoadedConfig(config, Path(kernel.source), kernel.config_text, document.places)
        )
    if problems:
        remedy = "This fa4gen does not take the config any more: give it anew, --update DIR CONFIG."
        raise ConfigError(*problems, Problem("the folder's configs are not valid today", remedy))
    return loaded


def locked_choices(lock: Lock, folder: Path) -> list[ChoiceRecord]:
    """Return which candidate each kernel of ``folder`` is; the first where no manifest says it."""
    return [_choice(folder, f"kernels/{kernel.symbol}.json") for kernel in lock.kernels]


def _choice(folder: Path, manifest: str) -> ChoiceRecord:
    try:
        found = intact_manifest(read_file(folder, manifest))
    except ConfigError:  # a link, or unreadable
        return FIRST
    return FIRST if found is None else choice_of(found)


def config_source(path: Path, shipped: str) -> str:
    """Return how the lock names a config: its ``shipped`` name, or a file's without its folders."""
    if shipped:
        return shipped
    return path.name if path.suffix or path.is_absolute() else path.as_posix()


def locked_kernels(
    lock: Lock, planned: Sequence[PlannedKernel], folder: Path
) -> list[VendoredKernel]:
    """Return ``planned`` with the images that ``folder`` has of them: nothing is compiled.

    ``planned`` are the lock's kernels in its order. Where the file of an image is missing or was
    changed, the image has the right hash and sizes and no lines.
    """
    return [
        VendoredKernel(
            kernel.loaded,
            kernel.plan,
            kernel.rendered,
            _compiled(entry),
            image_on_disk(folder, lock, entry) or _image_without_lines(entry),
        )
        for kernel, entry in zip(planned, lock.kernels, strict=True)
    ]


def image_on_disk(folder: Path, lock: Lock, kernel: LockedKernel) -> Image | None:
    """Return the image in ``cubins/``, None unless the file is as it was written."""
    path = f"cubins/{kernel.symbol}.c"
    try:
        text = read_file(folder, path)
    except ConfigError:
        return None
    if text is None or sha256(text) != lock.files.get(path):
        return None
    checksum = _CHECKSUM.search(text)
    lines = image_lines(b"".join(_ROW.findall(text)).decode())
    size = sum(map(len, lines))
    if checksum is None or size != kernel.image.packed_bytes:
        return None  # of an older fa4gen
    return Image(kernel.image.sha256, kernel.image.cubin_bytes, size, lines, int(checksum[1], 16))


def _image_without_lines(kernel: LockedKernel) -> Image:
    image = kernel.image
    return Image(image.sha256, image.cubin_bytes, image.packed_bytes, ())


def _compiled(kernel: LockedKernel) -> CompiledKernel:
    return CompiledKernel(
        name=kernel.symbol,
        arch=kernel.arch,
        ptx="",
        cubin=b"",
        log="",
        compiler=kernel.compiler,
        compiler_version=kernel.compiler_version,
        options=kernel.options,
        resources=Resources(0, 0, 0, 0, 0, 0),
        findings=(),
        cached=True,
        seconds=0.0,
        key="",
    )
