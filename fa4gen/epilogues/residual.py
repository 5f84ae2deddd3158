"""The interface of a kind of residual: C of alpha * A . B + beta * C, for each tile's epilogue.

An entry says which axes of the output C has and, in CUDA, how a thread reads the elements that
belong to its sums from shared memory. Everything else follows from the axes: tensor map, slots and
barriers, the TMA loads ahead of the epilogue, argument checks, strides in vendored folders, cases,
reference and benchmarks.

A C with both axes passes through panels like those of the output, swizzled alike; on Hopper they
are the same slots. Other kinds have small slots of their own with the elements in their order.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.epilogues.gate import GateLayout


@dataclass(frozen=True)
class Loads:
    """CUDA that reads what one thread adds to its sums, line by line."""

    words: tuple[str, ...]
    """Expressions over the names that the lines declare: see ``Residual.hopper`` and
    ``blackwell``."""
    up_words: tuple[str, ...] = ()
    """With a gated activation and a C of one axis: those of up, where ``words`` are of gate."""
    each: tuple[str, ...] = ()
    """Within the loop over the groups (Hopper) or chunks (Blackwell) of columns."""
    once: tuple[str, ...] = ()
    """Before this loop."""


@dataclass(frozen=True, kw_only=True)
class Residual:
    """A kind of residual."""

    name: str
    """The config's word."""
    axes: tuple[str, ...]
    """The axes of C without its batch, "m" before "n"; empty without a C."""
    meaning: str
    """For the documentation of configs, after the name."""
    parameter: str = ""
    """The use of C, for the kernel's list of parameters."""
    operation: str = ""
    """The text after the formula where a kernel describes its computation."""
    hopper: Mapping[int, Loads] = field(default_factory=dict)
    """By the bytes of an element of C. 2: the words are four pairs of elements for the sums of rows
    r and r + 8 of eight columns, then of the next eight, where r is ``16 * warp + lane / 4``; in
    the loop, ``group`` counts sixteen columns. 4: two elements, of the columns ``8 * group + lane %
    4 * 2`` and the next of row ``line + 8 * r``. In scope are ``lane`` and ``warp``, the latter of
    its warpgroup; ``residual_slot``, where the elements are, or ``address``, of a matrix; and
    ``keep``, a mask for the bits that are read: 0 where beta is."""
    hopper_swapped: Mapping[int, Loads] = field(default_factory=dict)
    """The loads of ``hopper`` for 2 bytes, where the rows of the sums are columns of the output and
    their columns its rows."""
    hopper_gated: Mapping[tuple[GateLayout, int], Loads] = field(default_factory=dict)
    """The loads of ``hopper`` with a gated activation, where they are others, by the order of gate
    and up in ``residual_slot``, of ``kResidualBytes``; and the bytes of an element."""
    hopper_swapped_gated: Mapping[tuple[GateLayout, int], Loads] = field(default_factory=dict)
    """The loads of ``hopper_swapped`` with a gated activation, by the same key."""
    blackwell_gated: Mapping[tuple[GateLayout, int], Loads] = field(default_factory=dict)
    """The loads of ``blackwell`` with a gated activation, where they are others. In scope is
    ``kRowPieceBytes``, from gate's elements to up's."""
    blackwell: Mapping[int, Loads] = field(default_factory=dict)
    """By the bytes of an element of C. One word: 16 bytes of C as a ``uint4``, of the chunk ``i``
    of the thread's row ``place.row``. In scope are ``from``, the slot, and ``has_residual``: the
    slot is not to be read otherwise, and C is zero."""
    beta: float = 0.0
    """The factor of C in benchmarks."""
    short: str = ""
    """The label in benchmarks."""

    # ---- derived ----

    def hopper_loads(self, element_bytes: int, *, swapped: bool, gate: GateLayout | None) -> Loads:
        """Return the loads on Hopper; ``gate``: the order of a gated activation's columns."""
        plain = self.hopper_swapped if swapped else self.hopper
        if gate is None:
            return plain[element_bytes]
        of_gate = self.hopper_swapped_gated if swapped else self.hopper_gated
        return _with_gate(plain, of_gate, gate, element_bytes)

    def blackwell_loads(self, element_bytes: int, *, gate: GateLayout | None) -> Loads:
        """Return the loads on Blackwell; ``gate`` as above."""
        if gate is None or self.is_matrix:
            return self.blackwell[element_bytes]
        return _with_gate(self.blackwell, self.blackwell_gated, gate, element_bytes)

    @property
    def exists(self) -> bool:
        """Whether there is a C."""
        return bool(self.axes)

    @property
    def is_matrix(self) -> bool:
        """Whether C has the output's shape: the output may overwrite it."""
        return self.axes == ("m", "n")

    @property
    def batched_axes(self) -> tuple[str, ...]:
        """All axes of C."""
        return ("batch", *self.axes)

    @property
    def dims(self) -> tuple[str, ...]:
        """The dimensions of C's tensor map, the contiguous one first."""
        return self.batched_axes[::-1]

    @property
    def words(self) -> str:
        """The residual in words, for summaries."""
        return f"a {self.name} as residual" if self.exists else "no residual"

    @property
    def expected(self) -> str:
        """The array that a call has to pass, for messages."""
        extent = f"{self.axes[-1]} elements" if self.exists else "nothing"
        return "an array of the output's shape" if self.is_matrix else f"an array of {extent}"

    @property
    def described(self) -> str:
        """C with its axes, for the kernel's list of parameters."""
        return f"C ({', '.join(self.batched_axes)}), {self.parameter}"

    @property
    def shape(self) -> str:
        """The axes of one C as Python writes a shape: (m, n) or (n,)."""
        return f"({', '.join(self.axes)}{',' * (len(self.axes) == 1)})"

    def extents(self, m: Any, n: Any) -> tuple[Any, ...]:
        """Return the shape of one C."""
        return tuple({"m": m, "n": n}[axis] for axis in self.axes)

    def elements(self, rows: int, columns: int) -> int:
        """Count the elements of C for ``rows`` rows and ``columns`` columns of the output."""
        count = 1 if self.exists else 0
        for extent in self.extents(rows, columns):
            count *= extent
        return count

    def rows_of(self, c: Any, rows: slice) -> Any:
        """Return the part of C that is added to these rows of the output.

        ``c`` is an array of any package with a batch in front or not; the result has axes of 1 for
        those that C lacks, and broadcasts.
        """
        row = rows if "m" in self.axes else None
        return c[(..., row, slice(None) if "n" in self.axes else None)]


def _with_gate(
    plain: Mapping[int, Loads],
    of_gate: Mapping[tuple[GateLayout, int], Loads],
    gate: GateLayout,
    element_bytes: int,
) -> Loads:
    """Return the loads of a gated activation; those of gate are up's, too, if there are no own."""
    own = plain[element_bytes]
    return of_gate.get((gate, element_bytes)) or replace(own, up_words=own.words)
