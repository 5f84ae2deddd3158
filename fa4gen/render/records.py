"""The records of kernels rendered before, in their manifests or as hashes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fa4gen.designs.common.candidates import is_valid
from fa4gen.json_text import parse_json
from fa4gen.render.choice import FIRST, ChoiceRecord, choice_of
from fa4gen.render.manifest import HASHES, config_sha256, folder_of, intact_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from fa4gen.designs.common.kernel_config import KernelConfig
    from fa4gen.render.hashes import KernelHashes
    from fa4gen.render.render import RenderedKernel


@dataclass(frozen=True)
class Records:
    """The manifests below some output folders, and the hashes that these keep."""

    hashes: Mapping[Path, Mapping[str, KernelHashes]] = field(default_factory=dict)
    """The hashes kept in each output folder; the first folder that knows a kernel counts."""

    @classmethod
    def below(cls, *folders: Path) -> Records:
        """Return the records of output folders. Raises ConfigError for unreadable hashes."""
        return cls({folder: _hashes_in(folder) for folder in dict.fromkeys(folders)})

    def choice(self, config: KernelConfig) -> ChoiceRecord:
        """Return the candidate recorded for ``config``; FIRST for none, or another config's."""
        wanted = config_sha256(config)
        found = (
            choice
            for found_for, choice, _ in self._of(folder_of(config), config.name)
            if found_for == wanted
        )
        choice = next(found, FIRST)
        try:
            return choice if is_valid(config, choice.keys) else FIRST
        except (KeyError, TypeError, AttributeError):  # anybody can write a manifest
            return FIRST

    def is_as_compiled(self, rendered: RenderedKernel) -> bool:
        """Whether a record says that a compiler took these very texts."""
        manifest = parse_json(rendered.files[f"{rendered.name}.json"].encode())
        return any(
            choice.compiler and files == manifest["files"]
            for _, choice, files in self._of(rendered.folder, rendered.name)
        )

    def _of(
        self, folder: str, name: str
    ) -> Iterator[tuple[str, ChoiceRecord, Mapping[str, object]]]:
        """Yield config's hash, candidate and files' hashes of each record of a kernel."""
        for out in self.hashes:
            try:
                found = intact_manifest((out / folder / f"{name}.json").read_bytes())
                if found is not None:
                    yield found["inputs"]["config_sha256"], choice_of(found), dict(found["files"])
            except (OSError, KeyError, TypeError, ValueError):
                continue
        for hashes in self.hashes.values():
            if one := hashes.get(folder):
                files = {f"{name}{ending}": sha for ending, sha in one.files.items()}
                yield one.config, one.choice, files


def _hashes_in(folder: Path) -> Mapping[str, KernelHashes]:
    if not (folder / HASHES).exists():
        return {}
    from fa4gen.render.hashes import read_hashes

    return read_hashes(folder)
