"""The contents of a module, as the driver reports them: kernels, parameters, global variables."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from fa4gen.emulator.ptx.syntax import Function, Module, Variable
from fa4gen.emulator.state.layout import align_up

_REGISTERS = 168  # the resources that a compiler may give a thread are not known from PTX
_FEW_REGISTERS = 32


@dataclass(frozen=True, slots=True)
class Kernel:
    """An entry: offset and size of each parameter, bytes of shared and local memory, limits."""

    name: str
    parameters: tuple[tuple[int, int], ...]
    static_shared: int
    local: int
    max_threads: int
    registers: int
    cluster: tuple[int, int, int]


def kernels(module: Module) -> tuple[Kernel, ...]:
    """The entries of a module."""
    return tuple(_kernel(module, one) for one in module.functions.values() if one.entry)


def global_variables(module: Module) -> tuple[Variable, ...]:
    """The global and constant variables of a module that have a size."""
    return tuple(one for one in module.variables if one.space in ("global", "const") and one.size)


def initial_bytes(variable: Variable, addresses: dict[str, int]) -> bytes:
    """A variable's initial bytes in a loaded module; ``addresses`` has all variables by name."""
    raw = bytearray((variable.initial or b"").ljust(variable.size, b"\0"))
    for offset, name, _ in variable.relocations:
        (added,) = struct.unpack_from("<Q", raw, offset)
        struct.pack_into("<Q", raw, offset, (added + addresses.get(name, 0)) % (1 << 64))
    return bytes(raw)


def _kernel(module: Module, function: Function) -> Kernel:
    parameters = []
    at = 0
    for one in function.parameters:
        at = align_up(at, one.align)
        parameters.append((at, one.size))
        at += one.size
    shared = local = 0
    for one in (*module.variables, *function.variables):
        if one.space == "shared" and not one.extern:
            shared = align_up(shared, one.align) + one.size
        elif one.space == "local":
            local = align_up(local, one.align) + one.size
    directives = function.directives
    threads = directives.get("reqntid") or directives.get("maxntid")
    most = math.prod(threads) if threads else 1024
    x, y, z = (*directives.get("reqnctapercluster", (0, 0, 0)), 1, 1)[:3]
    registers = min(_REGISTERS, 65536 // max(most, 1) // 8 * 8, *directives.get("maxnreg", (255,)))
    return Kernel(
        function.name,
        tuple(parameters),
        shared,
        local,
        most,
        max(registers, _FEW_REGISTERS),
        (x, y, z),
    )
