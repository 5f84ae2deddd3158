"""Whether verify reports mistakes: mutants of kernels made by rule, each verified without a GPU.

python benchmarks/mutate.py --seed 1 [--count 400] [--design NAME ...] [--configs GLOB ...]
                            [--features 8] [--rule NAME ...] [--launcher] [--verify-seeds 3]
                            [--limit SECONDS] [-j N] [--out FILE.jsonl] [--list] [--show all]
python benchmarks/mutate.py --again FILE.jsonl [--verify-seeds 3] [--limit SECONDS] [-j N] ...

A mutant is a kernel with one change that one of the rules of ``mutation/rules.py`` makes to its
source or its device header. For each design ``--features`` configs with different features are
taken, and of their mutants a sample in which rules and kernels take turns; the sample follows from
the seed. ``--launcher`` mutates the C launcher of vendored folders instead.

discarded    it does not compile, or compiles to the same code: no mutant, another takes its place
caught       what ``fa4gen verify`` does without a GPU reports it, for each seed of verify's
survived     a seed passes; "partly emulated" counts as passed
unfinished   the emulator did not end within ``--limit`` seconds; verify ends such runs later
equivalent   it survived, and benchmarks/results/equivalent_mutants.yaml says why it may

With ``--out`` each result is appended as a line of JSON as it is found, and results that are there
already are not found again: use a new file after a change of verify. ``--again`` takes the mutants
of such a file that survived or did not end, but for those judged equivalent since. The exit status
is 1 where a mutant survived or did not end, or an entry of the list of equivalents fits nothing any
more.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
for place_of_code in (str(ROOT), str(ROOT / "benchmarks")):
    if place_of_code not in sys.path:
        sys.path.insert(0, place_of_code)

from fa4gen.verify.blas import use_one_blas_thread  # noqa: E402

use_one_blas_thread()  # before anything imports NumPy

from mutation.equivalents import read_equivalents, stale  # noqa: E402
from mutation.kinds import KERNELS, LAUNCHERS, Kind  # noqa: E402
from mutation.mutants import different, in_order, shares  # noqa: E402
from mutation.rules import RULE_NAMES  # noqa: E402
from mutation.trial import Candidate, Record, Task  # noqa: E402

from fa4gen.cli.output import print_table  # noqa: E402
from fa4gen.cli.progress import progress  # noqa: E402
from fa4gen.workers import Lost, map_tasks, run_tasks  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mutation.equivalents import Equivalent
    from mutation.mutants import Mutant

STATUSES = ("discarded", "caught", "equivalent", "survived", "unfinished")
BAD = ("survived", "unfinished")


class Results:
    """The records so far, and the file that they are appended to."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.records: dict[str, Record] = {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                record = Record.read(json.loads(line))
                self.records[record.key] = record

    def add(self, record: Record) -> None:
        """Keep a record, in the file as well."""
        self.records[record.key] = record
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record.data()) + "\n")


def sample(
    kind: Kind,
    orders: Mapping[str, Sequence[Mutant]],
    wanted: Mapping[str, int],
    results: Results,
    jobs: int,
) -> list[Candidate]:
    """Compile mutants of each design in their order until ``wanted`` of each are real ones."""
    taken = dict.fromkeys(orders, 0)
    found: dict[str, list[Candidate]] = {design: [] for design in orders}
    codes: set[tuple[str, str]] = set()
    while True:
        batch: list[Mutant] = []
        for design, order in orders.items():
            missing = wanted[design] - len(found[design])
            batch += order[taken[design] : taken[design] + missing]
            taken[design] += missing
        if not batch:
            return [candidate for design in orders for candidate in found[design]]
        with progress(len(batch), "mutants compiled") as bar:
            for candidate in _compiled(kind, batch, results, jobs):
                mutant, why = candidate.mutant, candidate.discarded
                code = (mutant.subject, candidate.code)
                if not why and candidate.code and code in codes:
                    why = "same code as another mutant"
                codes.add(code)
                if not why:
                    found[mutant.design].append(candidate)
                elif mutant.key not in results.records:
                    results.add(Record.of(mutant, "discarded", why))
                bar.advance()


def _compiled(
    kind: Kind, batch: Sequence[Mutant], results: Results, jobs: int
) -> Iterator[Candidate]:
    """Yield the batch in its order, without compiling those that have a record."""
    known = {
        mutant.key: Candidate(mutant, discarded=record.why if record.status == "discarded" else "")
        for mutant in batch
        if (record := results.records.get(mutant.key))
    }
    unknown = [mutant for mutant in batch if mutant.key not in known]
    made = {one.mutant.key: one for one in map_tasks(kind.compile, unknown, jobs=jobs)}
    for mutant in batch:
        yield known.get(mutant.key) or made[mutant.key]


def verify(
    kind: Kind,
    mutants: Sequence[Mutant],
    results: Results,
    *,
    seeds: int,
    limit_s: float,
    jobs: int,
) -> None:
    """Verify mutants, those of a kernel together: a worker renders it once."""
    tasks = [Task(mutant, seeds) for mutant in sorted(mutants, key=lambda one: one.kernel)]
    with (
        closing(run_tasks(kind.verify, tasks, jobs=jobs, time_limit_s=limit_s)) as outcomes,
        progress(len(tasks), "mutants verified") as bar,
    ):
        for task, outcome in outcomes:
            if not isinstance(outcome, Lost):
                record = outcome.result
            elif outcome.reason.startswith("did not end"):
                record = Record.of(task.mutant, "unfinished", outcome.reason)
            else:
                record = kind.lost(task.mutant, outcome)
            results.add(record)
            bar.advance()


def status_of(record: Record, equivalents: Iterable[Equivalent]) -> str:
    """Return a record's status; "equivalent" where the list has it."""
    if record.status in BAD and any(entry.fits(record) for entry in equivalents):
        return "equivalent"
    return record.status


def counts_by(records: Iterable[tuple[Record, str]], key: str) -> list[tuple[object, ...]]:
    """Return a row of counts of statuses for each value of ``key``, a field of the records."""
    counts: dict[str, Counter[str]] = {}
    for record, status in records:
        counts.setdefault(getattr(record, key), Counter())[status] += 1
    rows = [(name, counts[name]) for name in sorted(counts)]
    rows.append(("all", sum((count for _, count in rows), Counter())))
    return [(name, count.total(), *(count[status] for status in STATUSES)) for name, count in rows]


def try_sample(arguments: argparse.Namespace, kind: Kind, results: Results) -> list[Equivalent]:
    """Make a sample, or show it, and verify it; return the equivalents that fit no mutant."""
    rng = random.Random(arguments.seed)
    chosen = {
        design: different(configs, arguments.features, rng)
        for design, configs in kind.subjects(arguments.configs, ROOT).items()
        if not arguments.design or design in arguments.design
    }
    mutants = find_mutants(kind, [one for configs in chosen.values() for one in configs], arguments)
    old = stale(read_equivalents(), mutants)
    if arguments.rule:
        mutants = [mutant for mutant in mutants if mutant.rule in arguments.rule]
    orders = {
        design: in_order((m for m in mutants if m.design == design), rng) for design in chosen
    }
    wanted = shares(arguments.count, list(orders)) if orders else {}
    if arguments.list:
        for design, order in orders.items():
            for mutant in order[: wanted[design]]:
                print(mutant)
        return old
    while True:
        candidates = sample(kind, orders, wanted, results, arguments.jobs)
        left = [one.mutant for one in candidates if one.mutant.key not in results.records]
        if not left:  # others took the place of those that turned out to be no mutants
            return old
        verify_as(arguments, kind, left, results)


def try_again(arguments: argparse.Namespace, kind: Kind, results: Results) -> None:
    """Verify again, or show, the mutants of another run that survived or did not end."""
    equivalents = read_equivalents()
    bad = {
        record.key: record
        for record in Results(arguments.again).records.values()
        if status_of(record, equivalents) in BAD
    }
    files = {Path(record.config).name for record in bad.values()}
    subjects = [
        subject
        for configs in kind.subjects(arguments.configs, ROOT).values()
        for subject in configs
        if Path(subject).name in files
    ]
    again = [mutant for mutant in find_mutants(kind, subjects, arguments) if mutant.key in bad]
    for key in bad.keys() - {mutant.key for mutant in again}:
        print(f"this line has changed since: {bad[key]}")
    left = [mutant for mutant in again if mutant.key not in results.records]
    if arguments.list:
        print(*left, sep="\n")
    else:
        verify_as(arguments, kind, left, results)


def find_mutants(
    kind: Kind, subjects: Sequence[str], arguments: argparse.Namespace
) -> list[Mutant]:
    """Return every mutant of the subjects."""
    mutants = []
    with progress(len(subjects), "kernels mutated") as bar:
        for found in map_tasks(kind.find, subjects, jobs=arguments.jobs):
            mutants += found
            bar.advance()
    return mutants


def verify_as(
    arguments: argparse.Namespace, kind: Kind, mutants: Sequence[Mutant], results: Results
) -> None:
    """Verify mutants with the seeds, the limit and the workers of the command line."""
    verify(
        kind, mutants, results,
        seeds=arguments.verify_seeds, limit_s=arguments.limit, jobs=arguments.jobs,
    )  # fmt: skip


def main() -> int:
    """Verify a sample, print what survived and the tables; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    mutants = parser.add_mutually_exclusive_group(required=True)
    mutants.add_argument("--seed", type=int, help="of the sample")
    mutants.add_argument(
        "--again", type=Path, help="results, of which the mutants that survived are tried again"
    )
    parser.add_argument("--count", type=int, default=400, help="mutants in all (400)")
    parser.add_argument("--design", action="append", default=[], help="only this; repeatable")
    parser.add_argument("--configs", action="append", default=[], help="names or globs of configs")
    parser.add_argument("--features", type=int, default=8, help="configs of each design (8)")
    parser.add_argument("--rule", action="append", default=[], choices=RULE_NAMES)
    parser.add_argument("--launcher", action="store_true", help="mutate C launchers instead")
    parser.add_argument("--verify-seeds", type=int, default=3, help="seeds of verify (3)")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for a mutant (300)")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, help="file of results, continued where it exists")
    parser.add_argument("--list", action="store_true", help="show the sample, compile nothing")
    parser.add_argument("--show", choices=("bad", "all"), default="bad", help="mutants to print")
    arguments = parser.parse_args()
    kind = LAUNCHERS if arguments.launcher else KERNELS
    results = Results(arguments.out)
    old: list[Equivalent] = []
    if arguments.again:
        try_again(arguments, kind, results)
    else:
        old = try_sample(arguments, kind, results)
    if arguments.list:
        return 0
    equivalents = read_equivalents()
    judged = [(record, status_of(record, equivalents)) for record in results.records.values()]
    for record, status in judged:
        if status in BAD or arguments.show == "all":
            print(f"{status}: {record}\n")
    for key in ("design", "rule"):
        columns = (key, "made", *STATUSES)
        print_table(columns, counts_by(judged, key), right=columns[1:])
        print()
    for entry in old:
        print(f"{entry}: no kernel looked at has this line: take it off the list of equivalents")
    return 1 if old or any(status in BAD for _, status in judged) else 0


if __name__ == "__main__":
    sys.exit(main())
