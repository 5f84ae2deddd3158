"""Meanings of names: registers, variables and labels of nested blocks, and special registers."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from fa4gen.emulator.ptx.syntax import Register, RegisterClass, Special, Symbol, Vector

Named: TypeAlias = Register | Symbol | Special | Vector

_TRAILING_DIGITS: Final = re.compile(r"\d+$", re.ASCII)

_MOST_DIGITS: Final = 19  # of a number that counts registers

_VECTORS: Final = (
    "tid", "ntid", "ctaid", "nctaid",
    "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid",
)  # fmt: skip
_SCALARS: Final = (
    "laneid", "warpid", "nwarpid", "smid", "nsmid", "gridid",
    "clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi",
    "lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt",
    "cluster_ctarank", "cluster_nctarank", "is_explicit_cluster", "current_graph_exec",
    "total_smem_size", "dynamic_smem_size", "aggr_smem_size",
    "reserved_smem_offset_begin", "reserved_smem_offset_end", "reserved_smem_offset_cap",
    "reserved_smem_offset_0", "reserved_smem_offset_1",
)  # fmt: skip
SPECIALS: Final = frozenset(
    ["WARP_SZ"]
    + [f"%{name}" for name in (*_SCALARS, *_VECTORS)]
    + [f"%{name}.{component}" for name in _VECTORS for component in "xyzw"]
    + [f"%envreg{index}" for index in range(32)]
    + [f"%pm{index}{suffix}" for index in range(8) for suffix in ("", "_64")]
)
VECTORS: Final = frozenset(f"%{name}" for name in _VECTORS)
"""Special registers of which only the components have a value."""
MODELLED: Final = frozenset(
    name
    for name in SPECIALS
    if name not in VECTORS and not name.endswith(".w") and not name.startswith("%pm")
) - {"%reserved_smem_offset_0", "%reserved_smem_offset_1"}
"""Special registers that have a value in the emulator."""


class Scope:
    """A block with its own names; its parent has the others."""

    __slots__ = ("_declared", "_known", "_parent", "_ranges", "labels", "tables")

    def __init__(self, parent: Scope | None = None) -> None:
        self._parent = parent
        self._declared: dict[str, Register | Symbol | Vector] = {}
        # Ranges such as %r<5>, by prefix: class, index of the first, how many.
        self._ranges: dict[str, tuple[RegisterClass, int, int]] = {}
        # Names found so far, here or further out: the parser spends most of its time on lookups.
        self._known: dict[str, Named] = {}
        self.labels: dict[str, int] = {}
        self.tables: dict[str, tuple[str, ...]] = {}

    def declare(self, name: str, meaning: Register | Symbol | Vector) -> bool:
        """Add a name; False if this block has it already."""
        if name in self._declared or self._ranged(name) is not None:
            return False
        self._declared[name] = self._known[name] = meaning
        return True

    def declare_range(self, prefix: str, cls: RegisterClass, first: int, count: int) -> bool:
        """Add ``prefix0`` to ``prefix(count-1)``; False if this block has one of them already."""
        if prefix in self._ranges:
            return False
        self._ranges[prefix] = (cls, first, count)
        self._known.clear()
        self._known.update(self._declared)
        return all(self._ranged(name) is None for name in self._declared)

    def find(self, name: str) -> Named | None:
        """Look a name up, innermost block first."""
        found = self._known.get(name)
        if found is None:
            found = self._search(name)
            if found is not None:
                self._known[name] = found
        return found

    def label(self, name: str) -> int | None:
        """Find the instruction a label stands before."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.labels:
                return scope.labels[name]
            scope = scope._parent
        return None

    def table(self, name: str) -> tuple[Scope, tuple[str, ...]] | None:
        """Find a ``.branchtargets`` list and the block with the labels that it names."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.tables:
                return scope, scope.tables[name]
            scope = scope._parent
        return None

    def _search(self, name: str) -> Named | None:
        found = self._ranged(name)
        if found is not None:
            return found
        if self._parent is not None:
            return self._parent.find(name)
        return Special(name) if name in SPECIALS else None

    def _ranged(self, name: str) -> Register | None:
        if not self._ranges:
            return None
        match = _TRAILING_DIGITS.search(name)
        if match is None:
            return None
        # %r1<5> and %r<5> may both exist: the prefix may itself end with digits.
        for cut in range(max(match.start(), len(name) - _MOST_DIGITS), len(name)):
            cls, first, count = self._ranges.get(name[:cut], ("r", 0, 0))
            digits = name[cut:]
            if int(digits) < count and (digits[0] != "0" or digits == "0"):
                return Register(name, cls, first + int(digits))
        return None
