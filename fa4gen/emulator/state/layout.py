"""The addresses of the variables of a module and an entry."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.errors import EmulatorError, LaunchError
from fa4gen.emulator.ptx.mangled import shown_name
from fa4gen.emulator.state.memory import GLOBAL_BASE, RESERVED_SHARED, GlobalMemory

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.syntax import Function, Module, Variable


NOWHERE: Final[Mapping[str, int]] = MappingProxyType({})


def align_up(value: int, align: int) -> int:
    """The next multiple of ``align``."""
    return -(-value // align) * align


class Layout:
    """Addresses of variables, each within its own space.

    Shared variables start after the system's part; extern ones share the place where dynamic
    shared memory starts. Global and constant variables get a region of ``memory`` each, at the
    address that ``placed`` has for its name, if any. Raises LaunchError where that cannot be.
    """

    def __init__(
        self,
        module: Module,
        function: Function,
        memory: GlobalMemory,
        placed: Mapping[str, int] = NOWHERE,
    ) -> None:
        self._module = module
        self.function = function
        self.notes: dict[str, Any] = {}
        self._addresses: dict[int, int] = {}
        self.shared_names: list[tuple[int, int, str]] = []
        self.local_bytes = 0
        self.parameter_offsets: list[int] = []
        self._place_parameters(function)
        variables = (*module.variables, *function.variables)
        self._place_shared([v for v in variables if v.space == "shared"])
        for variable in variables:
            if variable.space in ("global", "const"):
                size, writable = max(variable.size, 1), variable.space == "global"
                name = shown_name(variable.name)
                start = placed.get(variable.name)
                if start is None:
                    start = memory.reserve(size, name, align=variable.align, writable=writable)
                else:
                    memory.reserve_at(start, size, name, writable=writable)
                self._addresses[id(variable)] = start
            elif variable.space == "local":
                at = align_up(self.local_bytes, max(variable.align, 8))
                self._addresses[id(variable)] = at
                self.local_bytes = at + variable.size
        self._globals = [v for v in variables if v.space in ("global", "const")]
        self._keep = (module, function)

    def address(self, variable: Variable) -> int:
        """The address of a variable; of a kernel parameter, its offset in the parameter buffer."""
        return self._addresses[id(variable)]

    def initialise(self, memory: GlobalMemory) -> None:
        """Write the initial values of global and constant variables into sealed memory."""
        by_name = {variable.name: variable for variable in self._globals}
        for variable in self._globals:
            at = self.address(variable) - GLOBAL_BASE
            memory.data[at : at + variable.size] = 0
            if variable.initial is not None:
                raw = np.frombuffer(variable.initial, np.uint8)
                memory.data[at : at + len(raw)] = raw
            for offset, name, _generic in variable.relocations:
                if name not in by_name:
                    raise EmulatorError(
                        f"{variable.name} holds the address of {name}, which is no global variable"
                    )
                place = memory.data[at + offset : at + offset + 8]
                value = int.from_bytes(place.tobytes(), "little") + self.address(by_name[name])
                place[...] = np.frombuffer((value % (1 << 64)).to_bytes(8, "little"), np.uint8)

    def contents(self, memory: GlobalMemory, name: str) -> NDArray[np.uint8]:
        """The bytes of a global or constant variable, to be read and written in place."""
        for variable in self._globals:
            if variable.name == name:
                at = self.address(variable) - GLOBAL_BASE
                return memory.data[at : at + variable.size]
        there = ", ".join(variable.name for variable in self._globals) or "none"
        raise LaunchError(f"no global variable is called {name!r}; there is {there}")

    def _place_parameters(self, function: Function) -> None:
        at = 0
        for parameter in function.parameters:
            at = align_up(at, parameter.align)
            self._addresses[id(parameter)] = at
            self.parameter_offsets.append(at)
            at += parameter.size
        self.parameter_bytes = at

    def _place_shared(self, variables: list[Variable]) -> None:
        at = RESERVED_SHARED
        for variable in variables:
            if not variable.extern:
                at = align_up(at, variable.align)
                self._addresses[id(variable)] = at
                self.shared_names.append((at, at + variable.size, shown_name(variable.name)))
                at += variable.size
        extern = [variable for variable in variables if variable.extern]
        if extern:
            # as the driver does: dynamic shared memory starts on the widest required alignment
            at = align_up(at, max(16, *(variable.align for variable in extern)))
            for variable in extern:
                self._addresses[id(variable)] = at
        self.static_shared_end = at
