"""The tensor map operand of a copy."""

from __future__ import annotations

from fa4gen.emulator.instructions.copy.endpoints import only
from fa4gen.emulator.ptx.syntax import Instruction
from fa4gen.emulator.state.decoded_map import DecodedMap, decode
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.state.map_bits import MAP_ALIGN, MAP_BYTES, MapError
from fa4gen.emulator.state.memory import GLOBAL_BASE, PARAM_WINDOW, WINDOW_BYTES


def read_map(wg: Warpgroup, lane: int, site: Instruction, address: int) -> DecodedMap:
    """The map at a generic address: in the parameters, or in global or constant memory."""
    machine = wg.machine
    if address % MAP_ALIGN:
        machine.fault(
            "misaligned",
            f"the tensor map at {address:#x} is not {MAP_ALIGN}-byte aligned",
            site,
            wg,
            only(wg, lane),
        )
    if PARAM_WINDOW <= address < PARAM_WINDOW + WINDOW_BYTES:
        at, source = address - PARAM_WINDOW, machine.parameters
        inside = at + MAP_BYTES <= len(source)
    else:
        at, source = address - GLOBAL_BASE, machine.memory.data
        region = machine.memory.region(address)
        inside = region is not None and address + MAP_BYTES <= region.stop
    if not inside:
        machine.fault(
            "out-of-bounds",
            f"no tensor map can be at {machine.memory.describe(address)}",
            site,
            wg,
            only(wg, lane),
        )
    try:
        found = decode(source[at : at + MAP_BYTES].tobytes())
    except MapError as error:
        machine.fault("tensor-map", str(error), site, wg, only(wg, lane))
    if found.atom != 16 and machine.sm < 100:
        machine.fault(
            "tensor-map",
            f"a swizzle with atoms of {found.atom} bytes does not exist before sm_100",
            site,
            wg,
            only(wg, lane),
        )
    if found.element.packed and machine.sm < 100:
        machine.fault(
            "tensor-map",
            f"elements in {found.element.name} do not exist before sm_100",
            site,
            wg,
            only(wg, lane),
        )
    return found
