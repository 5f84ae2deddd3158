"""Which instructions that did not run are those that the plan says no problem reaches."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fa4gen.designs.shared.unreachable import Unreachable
    from fa4gen.toolchain.ptx_places import Place


@dataclass(frozen=True)
class Judged:
    """Instructions that did not run, by what the plan says of them.

    ``not_run`` are lines of PTX of those that it does not name; ``reasons`` counts the others.
    ``refuted`` says which of its entries are wrong.
    """

    not_run: tuple[int, ...]
    reasons: Mapping[str, int]
    refuted: tuple[str, ...]


def judge_unreachable(
    lines: Sequence[int],
    never: Sequence[int],
    places: Mapping[int, Place],
    unreachable: Sequence[Unreachable],
) -> Judged:
    """Compare what the plan calls unreachable with ``never``, of all ``lines`` what did not run."""
    excused = Counter[int]()
    reasons = Counter[str]()
    refuted = []
    idle = set(never)
    for entry in unreachable:
        for place, at in _by_place(lines, places, entry).items():
            share = entry.share_of(len(at))
            left = [line for line in at if line in idle][-share:] if share else []
            if len(left) < share:
                refuted.append(
                    f"the plan says that no problem reaches {entry.function} ({entry.reason}), and "
                    f"{share - len(left)} of these {share} instructions ran: {place}"
                )
            reasons[entry.reason] += sum(line not in excused for line in left)
            excused.update(left)
    return Judged(
        tuple(line for line in never if not excused[line]), dict(+reasons), tuple(refuted)
    )


def _by_place(
    lines: Sequence[int], places: Mapping[int, Place], entry: Unreachable
) -> dict[Place, list[int]]:
    """Return the lines of PTX that an entry means, copies of one source line together."""
    found: dict[Place, list[int]] = defaultdict(list)
    for line in lines:
        place = places.get(line)
        if place is not None and entry.means(place.lines):
            found[place].append(line)
    return found
