"""``fa4gen verify --record``: writes proofs into the manifests of generated kernels."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fa4gen.config.settings import Setting
    from fa4gen.render.render import RenderedKernel
    from fa4gen.verify.verdict import Verdict


@dataclass(frozen=True)
class Recorder:
    """The generated kernels with manifests to be written."""

    folder: Path
    kernels: Mapping[str, RenderedKernel]
    """By ``arch/name``."""

    @classmethod
    def of(
        cls,
        asked: bool,
        out: Path | None,
        paths: Sequence[Path],
        settings: Sequence[Setting],
        templates: Path | None,
        patterns: Sequence[str],
        jobs: int,
    ) -> Recorder | None:
        """Return the recorder of a call, None where nothing is to be recorded.

        Before anything is run, kernels that are not there as they are rendered are refused:
        NotCurrentError.
        """
        if not asked:
            if out is not None:
                raise click.UsageError("-o is where --record finds the kernels: give both")
            return None
        if patterns:
            raise click.UsageError("--cases runs a part, which proves nothing that can be recorded")
        from fa4gen.cli.generated import records_of
        from fa4gen.config.selection import output_folder
        from fa4gen.render.batch import render_configs
        from fa4gen.render.recorded_proof import require_current

        folder = output_folder(out)
        records = records_of(folder)
        rendered = render_configs(paths, templates, jobs, settings, records)
        kernels = [one.kernel for one in rendered]
        require_current(kernels, folder)
        return cls(folder, {kernel.folder: kernel for kernel in kernels})

    def record(self, verdicts: Sequence[Verdict]) -> None:
        """Write ``verdicts``' proofs into the manifests; a kernel that failed loses its proof."""
        from fa4gen.cli.output import note
        from fa4gen.config.paths import shown_path
        from fa4gen.render.recorded_proof import RecordedProof, record_proof

        date = datetime.now(UTC).date().isoformat()
        for verdict in verdicts:
            kernel = self.kernels[f"{verdict.arch}/{verdict.name}"]
            proof = RecordedProof(verdict.proof, date, verdict.seed, verdict.num_cases)
            record_proof(kernel, self.folder, proof if verdict.passed else None)
        note(f"recorded in the manifests below {shown_path(self.folder)}")
