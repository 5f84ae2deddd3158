"""A problem that a matrix product is verified on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from fa4gen.verify.gemm.input_kinds import kind_meaning

if TYPE_CHECKING:
    from fa4gen.verify.gemm.row_index import IndexKind


@dataclass(frozen=True)
class GemmCase:
    """One problem. ``beta`` counts only for a kernel with a residual.

    ``n``: columns of the output; with a gated activation B has twice as many.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = ("case", "batch", "m", "n", "k", "data", "and")

    name: str
    m: int
    n: int
    k: int
    batch: int | None = None
    """None: the tensors have two axes."""
    alpha: float = 1.0
    beta: float = 0.5
    data: str = "normal"
    padded: bool = False
    """Unused elements after each row and each matrix, and addresses of 16-byte alignment only;
    tensors whose rows are not a multiple of 16 bytes have them anyway."""
    shared: tuple[str, ...] = ()
    """Those of "b" and "c" that have no batch."""
    in_place: bool = False
    """The output overwrites C."""
    nan_in_c: bool = False
    """C is NaN throughout; for beta of 0."""
    index: IndexKind = "mixed"
    """The index where rows are gathered."""
    multiprocessors: int | None = None
    """The multiprocessors of the chip that the launcher assumes for an emulated case; None: the
    backend's."""
    group: int | None = None
    """Row tiles worked on together where the case is emulated; None: the launcher's choice."""
    far: bool = False
    """The rows and columns of scales are 2^31 elements apart where the case is emulated."""
    counts: tuple[int, ...] = ()
    """Rows of each group, in a kernel with groups: m is the most, and batch the number of them."""
    apart: tuple[int, int] = (0, 0)
    """Rows before the first group and after the last; masked groups have the latter each."""

    def __str__(self) -> str:
        batch = "" if self.batch is None else f"batch {self.batch}, "
        text = f"{self.name}: {batch}m {self.m}, n {self.n}, k {self.k}, {self.data}"
        return ", ".join((text, *self._specials()))

    def row(self) -> tuple[object, ...]:
        """Return the values of COLUMNS."""
        batch = "-" if self.batch is None else self.batch
        data = kind_meaning(self.data)
        return self.name, batch, self.m, self.n, self.k, data, ", ".join(self._specials())

    def data_items(self) -> dict[str, Any]:
        """Return the case as JSON data."""
        return asdict(self)

    def _specials(self) -> list[str]:
        words = [f"shared {name}" for name in self.shared]
        words += ["padded"] * self.padded + ["in place"] * self.in_place
        words += [f"index {self.index}"] * (self.index != "mixed")
        words += ["far scales"] * self.far
        words += ["NaN in c"] * self.nan_in_c + ["NaN in a and b"] * (self.alpha == 0)
        if self.alpha != 1:
            words.append(f"alpha {self.alpha:g}")
        if self.beta != _DEFAULT_BETA:
            words.append(f"beta {self.beta:g}")
        if self.counts:
            words.append(f"groups of {_shortened(self.counts)} rows")
        return words


def _shortened(counts: tuple[int, ...]) -> str:
    """Return the first few numbers."""
    shown = ", ".join(map(str, counts[:COUNTS_SHOWN]))
    return shown + ", ..." * (len(counts) > COUNTS_SHOWN)


COUNTS_SHOWN = 8
_DEFAULT_BETA = 0.5
