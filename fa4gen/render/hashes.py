"""Hashes in place of files, for kernels that a project checks and does not keep: OUT/hashes.json.

One line a kernel, sorted. A line says what a kernel's files were when it was last rendered, and
which candidate a compiler took, so that ``check`` and ``render`` need no compiler.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fa4gen.config.paths import shown_path
from fa4gen.errors import ConfigError, Problem
from fa4gen.json_text import parse_json
from fa4gen.render.check import FileVerdict, read_bytes
from fa4gen.render.choice import ChoiceRecord, choice_from
from fa4gen.render.manifest import CHOICE, HASHES, canonical_sha256
from fa4gen.render.write import FileOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from fa4gen.render.check import Verdict
    from fa4gen.render.render import RenderedKernel
    from fa4gen.render.write import Action

SCHEMA_VERSION = 1
MANIFEST_KEYS = ("schema_version", "generator", "name", "config", "plan")
"""The parts of a manifest whose hash is kept: neither its proof nor the templates' hash."""


@dataclass(frozen=True)
class KernelHashes:
    """The hashes that are kept of one kernel, and its candidate."""

    config: str
    """Hash of the validated config."""
    files: Mapping[str, str]
    """Hashes of the kernel's files by their ending: ``.cu``, say."""
    manifest: str
    """Hash of the manifest's MANIFEST_KEYS."""
    choice: ChoiceRecord

    @classmethod
    def of(cls, kernel: RenderedKernel) -> KernelHashes:
        """Return the hashes of a rendered kernel."""
        manifest = parse_json(kernel.files[f"{kernel.name}.json"].encode())
        return cls(
            manifest["inputs"]["config_sha256"],
            {name.removeprefix(kernel.name): sha for name, sha in manifest["files"].items()},
            canonical_sha256({key: manifest[key] for key in MANIFEST_KEYS}),
            choice_from(manifest[CHOICE]),
        )

    def data(self) -> dict[str, Any]:
        """Return the hashes as JSON data."""
        return {
            "config": self.config,
            "files": dict(self.files),
            "manifest": self.manifest,
            CHOICE: self.choice.data(),
        }

    def differences(self, other: KernelHashes) -> str:
        """Return in words which parts differ from ``other``; "" for none."""
        parts = ["config"] if self.config != other.config else []
        endings = sorted({*self.files, *other.files})
        parts += [f"N{e}" for e in endings if self.files.get(e) != other.files.get(e)]
        parts += ["manifest"] if self.manifest != other.manifest else []
        parts += ["candidate"] if self.choice != other.choice else []
        return ", ".join(parts)


def read_hashes(out: Path) -> dict[str, KernelHashes]:
    """Return the hashes kept in the folder ``out`` by ``arch/name``; none where there is no file.

    Raises ConfigError for a file that fa4gen did not write so, such as one with a merge's marks.
    """
    path = out / HASHES
    data = read_bytes(path)
    if data is None:
        return {}
    try:
        content = parse_json(data)
        if content["schema_version"] != SCHEMA_VERSION:
            raise ValueError
        return {str(kernel): _entry(entry) for kernel, entry in content["kernels"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            Problem(
                "these are no hashes that this version of fa4gen wrote",
                "After a merge take the file of one side; else delete it. Then run "
                "`fa4gen render`, which writes it anew.",
                file=shown_path(path),
            )
        ) from error


def hashes_text(hashes: Mapping[str, KernelHashes]) -> str:
    """Return the text of the file: one line a kernel, so that merges rarely meet in one."""
    lines = [f"  {json.dumps(name)}: {_line(hashes[name].data())}" for name in sorted(hashes)]
    kernels = ",\n".join(lines)
    return f'{{\n"schema_version": {SCHEMA_VERSION},\n"kernels": {{\n{kernels}\n}}\n}}\n'


def plan_hashes(
    kernels: Iterable[RenderedKernel],
    out: Path,
    kept: Mapping[str, KernelHashes],
    *,
    are_all: bool,
) -> FileOutcome:
    """Return the outcome of writing the hashes of ``kernels``; others stay unless these are all."""
    new = {kernel.folder: KernelHashes.of(kernel) for kernel in kernels}
    text = hashes_text(new if are_all else {**kept, **new})
    path = out / HASHES
    data = read_bytes(path)
    action: Action
    if data is None:
        verdict, action = FileVerdict(path, "missing", "", "not there", text), "created"
    elif data == text.encode():
        verdict, action = FileVerdict(path, "current", "", "", text, data), "unchanged"
    else:
        reason = "a config, a template or fa4gen changed"
        verdict, action = FileVerdict(path, "stale", "", reason, text, data), "updated"
    return FileOutcome(path, action, verdict)


def hash_verdicts(
    kernels: Sequence[RenderedKernel],
    out: Path,
    kept: Mapping[str, KernelHashes],
    *,
    are_all: bool,
) -> list[FileVerdict]:
    """Return a verdict for each of ``kernels``, and where these are all, for each other line."""
    path = out / HASHES
    verdicts = []
    for kernel in kernels:
        new, old = KernelHashes.of(kernel), kept.get(kernel.folder)
        if old is None:
            verdicts.append(_verdict(path, "missing", kernel.folder, "no line of it"))
            continue
        changed = old.differences(new)
        if changed:
            why = f"other hashes of {changed}: its config, the templates or fa4gen changed"
            verdicts.append(_verdict(path, "stale", kernel.folder, why))
        else:
            verdicts.append(_verdict(path, "current", kernel.folder))
    known = {kernel.folder for kernel in kernels}
    gone = [name for name in sorted(kept) if name not in known] if are_all else []
    why = "the project keeps no hashes of such a kernel"
    return verdicts + [_verdict(path, "orphan", name, why) for name in gone]


def _verdict(path: Path, verdict: Verdict, kernel: str, reason: str = "") -> FileVerdict:
    return FileVerdict(path, verdict, kernel, reason, is_hash=True)


def _line(data: Any) -> str:
    return json.dumps(data, separators=(", ", ": "), allow_nan=False)


def _entry(entry: Mapping[str, Any]) -> KernelHashes:
    files = {str(ending): str(sha) for ending, sha in entry["files"].items()}
    choice = choice_from(entry[CHOICE])
    return KernelHashes(str(entry["config"]), files, str(entry["manifest"]), choice)
