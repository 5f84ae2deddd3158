"""What is mutated: kernels, or the C launchers of vendored folders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mutation.launcher import compile_launcher, find_launcher_mutants, folders_of, verify_launcher
from mutation.mutants import configs_of, find_mutants
from mutation.trial import Record, Run, compile_mutant, verify_mutant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fa4gen.workers import Done, Lost
    from mutation.mutants import Mutant
    from mutation.trial import Candidate, Task


@dataclass(frozen=True)
class Kind:
    """What is done in the worker processes: module functions, since they get them by name."""

    subjects: Callable[[Sequence[str], Path], dict[str, list[str]]]
    """From globs of names and the root of the checkout to what can be mutated, by design."""
    find: Callable[[str], list[Mutant]]
    compile: Callable[[Mutant], Candidate]
    verify: Callable[[Task], Done[Record]]
    in_process: bool
    """The mutant runs in the worker itself, which it may crash: that counts as reported."""

    def lost(self, mutant: Mutant, why: Lost) -> Record:
        """Return the record of a mutant that ended its worker, or whose verification raised."""
        if self.in_process and not why.details:
            return Record.of(mutant, "caught", runs=(Run(1, True, says=why.reason),))
        return Record.of(mutant, "unfinished", f"{why.reason}\n{why.details}".strip())


KERNELS = Kind(configs_of, find_mutants, compile_mutant, verify_mutant, in_process=False)
LAUNCHERS = Kind(
    folders_of, find_launcher_mutants, compile_launcher, verify_launcher, in_process=True
)
