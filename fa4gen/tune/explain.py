"""The kernel that suits a problem, and why: candidates with the parts of their predicted times."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fa4gen.config.load import load_config
from fa4gen.config.paths import shown_path
from fa4gen.counts import counted
from fa4gen.designs.build import build_plan
from fa4gen.tune.candidates import check_taken, find_candidates, rank
from fa4gen.tune.family import family_of
from fa4gen.tune.follow import still_good

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.config.load import LoadedConfig
    from fa4gen.config.set_file import KernelSetFile, Region
    from fa4gen.tune.candidates import Candidate, Ranked
    from fa4gen.tune.family import Family
    from fa4gen.tune.model.chips import Chip
    from fa4gen.tune.model.prediction import Prediction

COLUMNS = (
    "kernel", "from", "us", "to first", "waves", "filled", "products", "L2", "memory", "latency",
    "after", "launch", "bound by",
)  # fmt: skip
LEGEND = (
    "us is predicted, not measured. products, L2, memory and latency overlap; after is what stores "
    "and exchanged sums add. filled is the part of the waves' places that has a CTA."
)
WORTH_SAYING = 0.02
"""The share of the whole time from which on a difference of parts is a reason."""


@dataclass(frozen=True)
class Choice:
    """The candidates for one problem, the one to choose first."""

    family: Family
    problem: Any
    chip: Chip
    ranked: tuple[Ranked, ...]

    @property
    def first(self) -> Ranked:
        """The one to choose."""
        return self.ranked[0]

    @property
    def config(self) -> Ranked | None:
        """The config itself; None where it does not suit the problem."""
        own = (one for one in self.ranked if one.candidate.source == "config")
        return next(own, None)

    def rows(self, most: int) -> list[tuple[str, ...]]:
        """Return table rows for the first ``most`` candidates, and for the config itself."""
        shown = list(self.ranked[:most])
        if self.config is not None and self.config not in shown:
            shown.append(self.config)
        return [_row(one, self.first.prediction.us) for one in shown]

    def data(self, most: int) -> dict[str, Any]:
        """Return the same as JSON data."""
        return {
            "problem": self.family.word(self.problem),
            **self.family.extents(self.problem),
            "chip": self.chip.name,
            "fitted_on": self.chip.fitted,
            "why": list(why(self)),
            "questions": list(questions(self)),
            "candidates": [
                {
                    "name": one.candidate.name,
                    "from": one.candidate.source,
                    "changes": dict(one.candidate.changes),
                    "us": round(one.prediction.us, 3),
                    "bound_by": one.prediction.bound,
                    "filled": round(one.prediction.filled, 4),
                    **{key: _rounded(value) for key, value in asdict(one.prediction).items()},
                }
                for one in self.ranked[:most]
            ],
        }


def choose(
    base: LoadedConfig, problem: str, chip: Chip, candidates: Sequence[Candidate] = ()
) -> Choice:
    """Rank the candidates of ``base`` for a problem as the command line has it.

    ``candidates`` are found where they are not given. Raises ConfigError.
    """
    found = candidates or find_candidates(base)
    family = family_of(found[0].plan)
    parsed = family.parse_problem(problem)
    check_taken(found, parsed)
    return Choice(family, parsed, chip, tuple(rank(found, parsed, chip)))


def questions(choice: Choice) -> tuple[str, ...]:
    """Return questions about a problem that is hardly meant: they do not change the answer."""
    family, problem, chip = choice.family, choice.problem, choice.chip
    plan = choice.first.candidate.plan
    found = [family.doubt(plan, problem)]
    needed = family.array_bytes(plan, problem) / 2**30
    if needed > chip.memory_gib:
        found.append(
            f"{family.word(problem)}: its arrays take {needed:,.0f} GiB, and an {chip.name} has "
            f"{chip.memory_gib}: is the size meant?"
        )
    return tuple(line for line in found if line)


def region_of(choice: Choice, table: KernelSetFile | None) -> Region | None:
    """Return the region that a chip's table has for the problem: it goes before the model."""
    if table is None:
        return None
    extents = choice.family.extents(choice.problem)
    return next((region for region in table.regions if region.holds(extents)), None)


def is_taken(choice: Choice, region: Region, table: KernelSetFile) -> bool:
    """Return whether `load(..., shapes="auto")` takes a region's kernel for the problem."""
    config = next(path for path in table.configs if path.stem == region.kernel)
    plan = build_plan(load_config(config).config)
    return still_good(choice.family, region, plan, choice.first, choice.problem, choice.chip)


def measured(choice: Choice, region: Region | None, table: KernelSetFile | None) -> tuple[str, ...]:
    """Return a sentence on the kernel of `load(..., shapes="auto")` where a table has a region."""
    if region is None or table is None:
        return ()
    us = "" if region.us is None else f", {region.us:.1f} us measured at {region.problem}"
    what = f"{shown_path(table.path)} names {region.kernel} here{us}"
    if is_taken(choice, region, table):
        return (f'{what}: that is what load(..., shapes="auto") takes.',)
    first = choice.first.candidate.name
    return (
        f"{what}; {first} is predicted to be faster by more than the model's order is uncertain: "
        f'load(..., shapes="auto") takes {first}.',
    )


def measured_data(
    choice: Choice, region: Region | None, table: KernelSetFile | None
) -> dict[str, Any] | None:
    """Return the same as JSON data."""
    if region is None or table is None:
        return None
    words = {"kernel": region.kernel, "us": region.us, "measured_at": region.problem}
    taken = is_taken(choice, region, table)
    return {"file": shown_path(table.path), **words, "is_taken": taken}


def why(choice: Choice) -> tuple[str, ...]:
    """Return sentences on why the first won over the config itself, or over the second."""
    first, other = choice.first, choice.config
    lines = []
    if other is None:
        lines.append("The config itself is not one that the model would choose here.")
    if other is None or other is first:
        if len(choice.ranked) < 2:
            return (*lines, f"{first.candidate.name} is the only candidate.")
        other = choice.ranked[1]
    gain = other.prediction.us / first.prediction.us
    a, b = first.prediction, other.prediction
    lines.append(
        f"{first.candidate.name}: {a.us:.1f} us, {_places(a)}; {other.candidate.name}: {b.us:.1f} "
        f"us, {_places(b)}: {gain:.2f} times as long."
    )
    reasons = [
        f"{name} {before:.1f} -> {after:.1f} us"
        for name, before, after in _parts(b, a)
        if before - after > WORTH_SAYING * b.us
    ]
    if reasons:
        lines.append(f"It saves: {', '.join(reasons)}.")
    elif gain < 1:
        lines.append(
            "It exists already, and no new tile is predicted to be faster by enough to trust that."
        )
    return tuple(lines)


def _places(prediction: Prediction) -> str:
    return (
        f"{counted(prediction.ctas, 'CTA')} in {counted(prediction.waves, 'wave')} of "
        f"{prediction.resident}, {prediction.filled:.0%} filled"
    )


def _parts(one: Prediction, other: Prediction) -> list[tuple[str, float, float]]:
    return [
        ("products", one.multiply_us, other.multiply_us),
        ("L2", one.l2_us, other.l2_us),
        ("memory", one.memory_us, other.memory_us),
        ("latency", one.latency_us, other.latency_us),
        ("stores and sums", one.after_us, other.after_us),
    ]


def _row(one: Ranked, first_us: float) -> tuple[str, ...]:
    p = one.prediction
    times = (p.multiply_us, p.l2_us, p.memory_us, p.latency_us, p.after_us, p.launch_us)
    return (
        one.candidate.name,
        one.candidate.source,
        f"{p.us:.1f}",
        f"{p.us / first_us:.2f}",
        str(p.waves),
        f"{p.filled:.0%}",
        *(f"{time:.1f}" for time in times),
        p.bound,
    )


def _rounded(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value
