"""Problems that a merging kernel is verified on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from fa4gen.designs.merge.model import MergePlan

LseKind = Literal["normal", "apart", "huge", "empty", "all_empty", "equal", "nan"]
LSE_KINDS: dict[LseKind, str] = {
    "normal": "log-sum-exps near one another: every part counts",
    "apart": "of standard deviation 40: one part has nearly all of the weight",
    "huge": "near 1e30 and -1e30: differences are exact or overflow",
    "empty": "parts without keys, of which the output is NaN; some rows have no others",
    "all_empty": "no part of any row has a key",
    "equal": "the same everywhere: the mean of the parts",
    "nan": "NaN, infinite or empty in some parts: NaN in all of a row's results",
}


@dataclass(frozen=True)
class MergeCase:
    """One problem."""

    COLUMNS: ClassVar[tuple[str, ...]] = ("case", "parts", "batch", "rows", "heads", "data", "and")

    name: str
    parts: int
    rows: int
    heads: int
    batch: int | None = None
    """None: the tensors have no axis of batches."""
    lse: LseKind = "normal"
    padded: bool = False
    """Unused elements after rows, heads, batches and parts; rows of a head follow one another."""
    in_place: int | None = None
    """The part that the output, and its log-sum-exp, overwrite."""

    def row(self) -> tuple[object, ...]:
        """Return the values of COLUMNS."""
        batch = "-" if self.batch is None else self.batch
        more = ["padded"] * self.padded
        more += [] if self.in_place is None else [f"in place of part {self.in_place}"]
        words = LSE_KINDS[self.lse]
        return self.name, self.parts, batch, self.rows, self.heads, words, ", ".join(more)

    def data_items(self) -> dict[str, Any]:
        """Return the case as JSON data."""
        return asdict(self)

    def __str__(self) -> str:
        words = f"{self.parts} parts, batch {self.batch}, rows {self.rows}, heads {self.heads}"
        place = "" if self.in_place is None else f", in place of part {self.in_place}"
        return f"{self.name}: {words}, {self.lse}{', padded' * self.padded}{place}"


def emulated_cases(plan: MergePlan) -> tuple[MergeCase, ...]:
    """Return the cases for the emulator: numbers of parts, edges of a CTA's rows, data, places."""
    rows, group = plan.BM, plan.parts_in_flight
    place = 1 if plan.dtype == plan.out_dtype else None
    return (
        MergeCase("parts/1", 1, 3, 2),
        MergeCase("parts/2", 2, rows, 1),
        MergeCase(f"parts/{group + 1}", group + 1, rows + 1, 1, lse="apart"),
        MergeCase("parts/7", 7, rows - 1, 2, padded=True),
        MergeCase("parts/none", 0, 5, 2),
        MergeCase("empty/rows", 2, 0, 2),
        MergeCase("batch/3", 4, 5, 3, batch=3),
        MergeCase("lse/huge", 6, 9, 3, lse="huge"),
        MergeCase("lse/empty", 2 * group + 1, 21, 3, lse="empty", padded=True),
        MergeCase("lse/all_empty", group + 1, 7, 2, lse="all_empty"),
        MergeCase("lse/equal", 9, 5, 3, batch=2, lse="equal"),
        MergeCase("lse/nan", group + 1, 23, 2, lse="nan"),
        MergeCase("lse/nan_1", 1, 9, 2, lse="nan"),
        MergeCase("place/same", 3, 11, 2, batch=2, lse="empty", in_place=place),
        MergeCase("place/padded", 8, rows // 2 + 3, 2, padded=True, in_place=place),
    )


def default_cases(plan: MergePlan) -> tuple[MergeCase, ...]:
    """Return the cases for a GPU: those of the emulator, and larger ones."""
    more = [
        MergeCase(f"many/{lse}_{parts}", parts, 1111, 16, batch=2, lse=lse, padded=parts > 2)
        for lse in LSE_KINDS
        for parts in (2, 3, 16)
    ]
    return (*emulated_cases(plan), *more)
