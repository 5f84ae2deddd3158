"""One instruction over the lanes of a warpgroup, without a launch: registers in, registers out."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from fa4gen.emulator.errors import EmulatorError
from fa4gen.emulator.instructions.scalar import cvt, floating_point, integer, logic, moves, packed
from fa4gen.emulator.ptx.parser import parse_module
from fa4gen.emulator.ptx.syntax import RegisterClass
from fa4gen.emulator.state.layout import Layout
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.state.memory import GlobalMemory
from fa4gen.emulator.state.tally import Tally
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.registry import find
from tests.emulator.kernel import kernel

_FAMILIES = (integer, logic, floating_point, packed, cvt, moves)
_TABLE = {key: found for family in _FAMILIES for key, found in family.TRANSLATIONS.items()}
_UNSIGNED = {"p": np.bool_, "h": np.uint16, "r": np.uint32, "d": np.uint64}


def translated(text: str, masked: bool) -> tuple[Any, Any]:
    """Instructions as a Python function (wg, mask), and the parsed PTX function."""
    module = parse_module(kernel(text, (), target="sm_100a"))
    function = module.functions["k"]
    namespace: dict[str, Any] = {}
    emitter = Emitter(Layout(module, function, GlobalMemory()), masked, namespace)
    for instruction in function.instructions[:-1]:
        emitter.instruction = instruction
        find(_TABLE, instruction)(instruction, emitter)
    views = [f"    {view} = g.{view}" for view in sorted(emitter.views)]
    exec("\n".join(["def run(g, m):", *views, *emitter.lines, "    return"]), namespace)
    return namespace["run"], function


def warpgroup_of(lanes: int, registers: Mapping[RegisterClass, int], rank: int = 0) -> Warpgroup:
    """Lanes of a CTA that there is no machine for."""
    machine = SimpleNamespace(tally=Tally(0, 0))
    cta: Any = SimpleNamespace(
        machine=machine, rank=rank, shared_base=np.uint32(rank << 24), label="CTA 0", index=0
    )
    return Warpgroup(cta, 0, lanes, registers, 0)


def _row(wg: Warpgroup, name: str) -> Any:
    cls, index = name[0], int(name[1:])
    return wg.P[index] if cls == "p" else wg.block(cls)[index]  # type: ignore[arg-type]


def execute(text: str, results: str, *, rank: int = 0, **registers: Any) -> Any:
    """Run instructions and give the bits of the registers named in ``results`` (``"r1 p2"``).

    ``registers`` are rows (or scalars): bits, or numbers of the register's width. Everything is
    executed twice, once for all lanes and once for every second one, which has to make no
    difference to those and leave the others alone.
    """
    rows = {name: np.atleast_1d(np.asarray(value)) for name, value in registers.items()}
    lanes = max([len(row) for row in rows.values()], default=1)
    wanted = []
    names = results.split()
    for masked in (False, True):
        run, function = translated(text, masked)
        # the parser gives the registers of a class numbers by declaration, from 0
        wg = warpgroup_of(lanes, function.registers, rank)
        wg.special = {"%tid.x": np.arange(lanes, dtype=np.uint32), "%ctaid.x": np.uint32(3)}
        for name, row in rows.items():
            target = _row(wg, name)
            if name[0] == "p":
                target[...] = row
            else:
                assert row.dtype.itemsize == target.dtype.itemsize, (name, row.dtype)
                target[...] = row.view(_UNSIGNED[name[0]])
        mask = np.arange(lanes) % 2 == 0 if masked else None
        before = {name: _row(wg, name).copy() for name in names}
        with np.errstate(all="ignore"):
            run(wg, mask)
        wanted.append((before, {name: _row(wg, name).copy() for name in names}))
    (_, full), (before, part) = wanted
    for name in names:
        np.testing.assert_array_equal(part[name][::2], full[name][::2])
        np.testing.assert_array_equal(part[name][1::2], before[name][1::2])
    found = [full[name] for name in names]
    return found[0] if len(found) == 1 else found


def refused(text: str) -> bool:
    """Whether an instruction is not modelled."""
    try:
        translated(text, False)
    except EmulatorError:
        return True
    return False
