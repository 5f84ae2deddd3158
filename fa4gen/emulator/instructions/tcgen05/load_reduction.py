"""``tcgen05.ld.red`` (sm_103): a load that also gives each lane its smallest or largest value.

The reduction goes over the registers that the lane loads; ``.abs`` compares magnitudes and gives
one; without ``.NaN`` a NaN loses against every number [?]. The loaded registers stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.scalar.rows.ieee import canonical, extreme_of
from fa4gen.emulator.ptx.syntax import Instruction, Register
from fa4gen.emulator.ptx.types import dtype_of
from fa4gen.emulator.translate.emit import Emitter

SHAPES: Final = ("32x32b", "16x32bx2")


@dataclass(frozen=True, slots=True)
class Reduction:
    """The reduction of the loaded values; ``target`` is the index of a 32-bit register.

    ``propagate`` says that a NaN wins.
    """

    largest: bool
    propagate: bool
    magnitudes: bool
    kind: str
    target: int

    def apply(self, values: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """The bits of one value for each thread; ``values`` is (registers, threads)."""
        numbers: NDArray[Any] = np.ascontiguousarray(values).view(dtype_of(self.kind))
        if self.kind != "f32":
            of_integers = np.maximum if self.largest else np.minimum
            return np.asarray(of_integers.reduce(numbers, axis=0)).view(np.uint32)
        if self.magnitudes:
            numbers = np.abs(numbers)
        pair = partial(extreme_of, largest=self.largest, propagate=self.propagate)
        result: NDArray[Any] = canonical(reduce(pair, numbers), self.kind)
        return result.view(np.uint32)


def parse(i: Instruction, e: Emitter, words: list[str]) -> Reduction:
    """The words after shape and count, ``min`` to the type, and the second operand."""
    kind = words[-1] if words else ""
    flags = words[1:-1]
    if not words or words[0] not in ("min", "max") or kind not in ("u32", "s32", "f32"):
        raise e.refuse("a reduction with min or max of u32, s32 or f32 was expected")
    if flags not in ([], ["abs"], ["NaN"], ["abs", "NaN"]) or (flags and kind != "f32"):
        raise e.refuse("." + ".".join(flags))
    target = i.operands[1]
    if not isinstance(target, Register) or target.cls != "r":
        raise e.refuse("a 32-bit register for the result was expected")
    return Reduction(words[0] == "max", "NaN" in flags, "abs" in flags, kind, target.index)
