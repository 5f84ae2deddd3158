"""The table of mutants in docs/emulator_mutations.md."""

from __future__ import annotations

from tests.emulator.mutations.harness import MUTANTS
from tests.emulator.mutations.kernels import KERNELS
from tests.emulator.mutations.mutant import CLASSES, Found
from tests.emulator.mutations.sources import BUGS


def rows() -> list[tuple[str, ...]]:
    """Class, mistake, kernel and architecture, what is reported, where it was made before."""
    ordered = sorted(MUTANTS, key=lambda mutant: list(CLASSES).index(mutant.group))
    return [
        (
            CLASSES[mutant.group],
            f"{mutant.about} (`{mutant.name}`)",
            f"`{mutant.kernel}`",
            f"{mutant.verdict}: {' or '.join(dict.fromkeys(map(words, mutant.found)))}",
            "; ".join(one for bug in mutant.bugs.split() for one in BUGS[bug]),
        )
        for mutant in ordered
    ]


def words(found: Found) -> str:
    """A finding for people."""
    where = found.at.rstrip("(")
    whose = f" by {found.who}" if found.who else ""
    return f"**{found.kind}** at `{where}`{whose}"


def kernel_rows() -> list[tuple[str, ...]]:
    """Kernel, architecture, what it is, number of mutants."""
    return [
        (
            f"[`{kernel.name}`](../tests/emulator/mutations/cuda/{kernel.entry}.cu)",
            f"`{kernel.arch}`",
            kernel.about,
            str(sum(mutant.kernel == kernel.name for mutant in MUTANTS)),
        )
        for kernel in KERNELS.values()
    ]
