"""Run a kernel's PTX on the CPU: the emulator's front door."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.checks.order.cluster_threads import SlotsExhausted
from fa4gen.emulator.checks.order.released import LoadsUnwatched
from fa4gen.emulator.checks.static import report_static
from fa4gen.emulator.errors import LaunchError, OutOfMemoryError
from fa4gen.emulator.instructions.families import load_families, load_waiting
from fa4gen.emulator.instructions.sync.control import default_registers
from fa4gen.emulator.names import Names
from fa4gen.emulator.ptx.flow.pending_loads import PendingLoads
from fa4gen.emulator.ptx.inline import flatten
from fa4gen.emulator.ptx.parser import parse_module
from fa4gen.emulator.ptx.syntax import Module
from fa4gen.emulator.report import Report
from fa4gen.emulator.scheduling.limits import SCHEDULES, Limits, Watch
from fa4gen.emulator.scheduling.residents import Residents
from fa4gen.emulator.scheduling.scheduler import Scheduler
from fa4gen.emulator.state.arguments import bind_arguments
from fa4gen.emulator.state.budget import (
    REMEDY,
    Budget,
    default_budget,
    process_bytes,
    shown_bytes,
)
from fa4gen.emulator.state.findings import Stop
from fa4gen.emulator.state.garbage import collected_at_the_end
from fa4gen.emulator.state.geometry import make_geometry
from fa4gen.emulator.state.layout import Layout
from fa4gen.emulator.state.machine import SLOTS_PER_CTA, Machine
from fa4gen.emulator.state.memory import GlobalMemory
from fa4gen.emulator.state.relocations import Memory
from fa4gen.emulator.state.tally import Tally
from fa4gen.emulator.translate.entry_code import Code
from fa4gen.emulator.translate.waiting_steps import make_waiting

if TYPE_CHECKING:
    from fa4gen.emulator.checks.options import CheckOptions
    from fa4gen.emulator.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class _Request:
    """The arguments of a launch; see Program.launch."""

    entry: str
    grid: int | Sequence[int]
    block: int | Sequence[int]
    args: Sequence[Any]
    memory: Sequence[Memory]
    outputs: Sequence[NDArray[Any]]
    variables: Mapping[str, Memory]
    dynamic_shared: int
    cluster: int | Sequence[int] | None
    seed: int
    schedule: str
    checks: bool | Iterable[str] | CheckOptions
    names: Names
    trace: str | Path | None
    limits: Limits
    resident_clusters: int | None
    registers_per_thread: int | None
    pending_writes: Sequence[NDArray[Any]] | Literal["all"]
    pending_reads: Sequence[NDArray[Any]]
    progress: Callable[[int, int], None] | None


class Program:
    """A PTX module, ready to be launched.

    Raises PtxSyntaxError where the text is not PTX. An entry with instructions that the emulator
    does not model raises UnsupportedError at its launch, before anything runs.
    """

    def __init__(self, ptx: str) -> None:
        self._module = parse_module(ptx)
        self._codes: dict[tuple[Any, ...], tuple[Code, GlobalMemory]] = {}
        # of each entry: how many operations under way the checks have to distinguish in a CTA
        self._pending_loads: dict[str, PendingLoads] = {}
        self._slots: defaultdict[str, int] = defaultdict(lambda: SLOTS_PER_CTA)
        self.sm = int(self._module.target.removeprefix("sm_").rstrip("af"))

    @property
    def entries(self) -> tuple[str, ...]:
        """The names of the kernels in the module."""
        return tuple(name for name, function in self._module.functions.items() if function.entry)

    @property
    def module(self) -> Module:
        """The module as it was parsed."""
        return self._module

    @property
    def target(self) -> str:
        """The architecture that the module was compiled for, such as ``sm_90a``."""
        return self._module.target

    def check(self, entry: str | None = None) -> None:
        """Raise UnsupportedError if an entry uses an instruction that is not modelled."""
        code, _ = self._code(self._entry(entry))
        make_waiting(code, load_waiting())

    def launch(
        self,
        entry: str | None = None,
        *,
        grid: int | Sequence[int] = 1,
        block: int | Sequence[int] = 32,
        args: Sequence[Any] = (),
        memory: Sequence[Memory] = (),
        outputs: Sequence[NDArray[Any]] = (),
        variables: Mapping[str, Memory] | None = None,
        dynamic_shared: int = 0,
        cluster: int | Sequence[int] | None = None,
        seed: int = 0,
        schedule: str = "uniform",
        checks: bool | Iterable[str] | CheckOptions = True,
        names: Names | None = None,
        trace: str | Path | None = None,
        limits: Limits | None = None,
        resident_clusters: int | None = None,
        registers_per_thread: int | None = None,
        pending_writes: Sequence[NDArray[Any]] | Literal["all"] = (),
        pending_reads: Sequence[NDArray[Any]] = (),
        progress: Callable[[int, int], None] | None = None,
    ) -> Report:
        """Run a kernel to its end, or to the first error after which it cannot go on.

        args      in the order of the entry's parameters: arrays are global memory and are changed
                  in place; a TensorMap fills a 128-byte parameter; Bytes fill a struct that
                  holds pointers and maps; NumPy scalars fill the rest
        memory    arrays that no argument leads to, such as those at addresses in raw bytes
        outputs   those of the arrays that the kernel has to write, every element
        variables  by name what global and constant variables of the module hold before the launch,
                  arrays of their size without pointers; afterwards what they hold then
        grid, block, cluster  in CTAs, threads, CTAs; the cluster's default is the entry's own
        dynamic_shared  bytes
        seed, schedule  the interleaving; schedule is one of SCHEDULES
        checks    all, none, or the names of those to make
        names     names of barriers, buffers, roles and parameters
        trace     a file for the timeline (Chrome/Perfetto JSON)
        limits    where a kernel that spins is given up
        resident_clusters  how many run side by side at first; more start when those all wait
        pending_writes  arrays among the arguments that the grid before writes, as this one is a
                  programmatic dependent launch: accesses before griddepcontrol.wait are errors;
                  "all": any global memory, for a launch after any other
        pending_reads  arrays that the grid before reads: writes before griddepcontrol.wait are
                  errors
        progress  called now and then with (CTAs finished, CTAs in all)

        Raises LaunchError for arguments that do not fit, UnsupportedError for instructions that are
        not modelled.
        """
        if schedule not in SCHEDULES:
            raise LaunchError(f"schedule {schedule!r} is none of {', '.join(SCHEDULES)}")
        request = _Request(
            self._entry(entry), grid, block, args, memory, outputs, variables or {}, dynamic_shared,
            cluster, seed, schedule, checks, names or Names(), trace, limits or Limits(),
            resident_clusters, registers_per_thread, pending_writes, pending_reads, progress,
        )  # fmt: skip
        begin = time.perf_counter()
        while True:
            try:
                with collected_at_the_end():
                    report = self._run(request)
            except SlotsExhausted:  # arrays are changed at the end of a run only
                self._slots[request.entry] *= 2
            except LoadsUnwatched:
                function = self._code(request.entry)[0].function
                self._pending_loads[request.entry] = PendingLoads(function)
            except MemoryError:  # a limit of the system's, below the budget
                used = shown_bytes(process_bytes())
                message = f"the system gives no more memory: the process uses {used}"
                raise OutOfMemoryError(message, "", REMEDY) from None
            else:
                return replace(report, elapsed=time.perf_counter() - begin)

    def _run(self, request: _Request) -> Report:
        """One launch; SlotsExhausted or LoadsUnwatched if the checks have to watch more."""
        entry, trace = request.entry, request.trace
        code, template = self._code(entry, request.variables)
        layout = code.layout
        arena = template.copy()
        limits = request.limits
        budget = default_budget() if limits.memory is None else Budget(limits.memory)
        arena.budget = budget
        function = code.function
        geometry = make_geometry(
            request.grid,
            request.block,
            request.cluster,
            request.dynamic_shared,
            function.directives,
            layout.static_shared_end,
        )
        if geometry.num_clusters > limits.steps:
            raise LaunchError(
                f"a grid of {geometry.num_clusters} clusters takes a step each at least; the limit"
                f" is {limits.steps} steps",
                "grid",
                "Launch fewer CTAs, or allow more steps with max_steps.",
            )
        geometry.check_memory(
            budget, function.registers, layout.local_bytes, layout.static_shared_end
        )
        bound = bind_arguments(function, layout, arena, request.args, request.memory, request.names)
        layout.initialise(arena)
        variables = [
            (one.array, layout.contents(arena, name)) for name, one in request.variables.items()
        ]
        for array, contents in variables:
            if array.nbytes != len(contents):
                raise LaunchError(
                    f"a variable of {len(contents)} bytes was given an array of {array.nbytes}"
                )
            contents[...] = np.frombuffer(array.tobytes(), np.uint8)
        random = Random(request.seed)
        registers = request.registers_per_thread
        if registers is None:
            registers = default_registers(geometry.threads, function)
        tally = Tally(len(code.instructions), len(code.steps), code.votes)
        machine = Machine(
            function=function,
            layout=layout,
            memory=arena,
            geometry=geometry,
            parameters=bound.parameters,
            sm=self.sm,
            names=request.names,
            random=random,
            eager=request.schedule == "eager" or trace is not None,
            registers_per_thread=registers,
            slots_per_cta=self._slots[entry],
            pending_loads=self._pending_loads.get(entry),
            pending=bound.arrays.pending(request.pending_writes, request.pending_reads),
            tally=tally,
        )
        from fa4gen.emulator.checks.select import make_observer

        machine.observer = make_observer(
            machine, request.checks, bound.arrays.outputs(request.outputs)
        )
        timeline: Timeline | None = None
        if trace is not None:
            from fa4gen.emulator.checks.listeners import Listeners
            from fa4gen.emulator.timeline.timeline import Timeline

            timeline = Timeline(machine, code.instructions)
            machine.observer = Listeners(machine.observer, timeline)
        ctas = math.prod(geometry.grid)
        residents = request.resident_clusters or random.choice((1, 1, 2))
        scheduler = Scheduler(
            machine,
            code,
            make_waiting(code, load_waiting()),
            request.schedule,
            Residents(machine, residents),
            Watch(limits, budget, machine.log, ctas, request.progress),
            timeline,
        )
        machine.scheduler = scheduler
        if machine.observer.enabled:
            report_static(machine, function)
        with np.errstate(all="ignore"):
            try:
                scheduler.start()
                scheduler.run()
                machine.observer.launch_ends()
            except Stop:
                pass
        tally.ended([cta for one in scheduler.residents.clusters for cta in one.ctas])
        bound.fetch()
        for array, contents in variables:
            array[...] = contents.view(array.dtype).reshape(array.shape)
        cycles = None
        if timeline is not None and trace is not None:
            cycles = timeline.write(Path(trace))
        return Report(
            machine.log.verdict(),
            machine.log.findings(),
            scheduler.instructions,
            0.0,
            request.seed,
            request.schedule,
            scheduler.finished_ctas,
            cycles,
            tally.coverage(
                function.name,
                code.instructions,
                code.points,
                code.executed(tally.reach, tally.held),
            ),
        )

    def lets_dependents_start(self, entry: str) -> bool:
        """Whether a kernel may let a programmatic dependent launch start before its own end."""
        return any(
            one.opcode == "griddepcontrol" and "launch_dependents" in one.modifiers
            for one in flatten(self._module, entry).instructions
        )

    def _entry(self, entry: str | None) -> str:
        names = self.entries
        if entry is None:
            if len(names) != 1:
                raise LaunchError(f"say which entry to launch: {', '.join(names) or 'none here'}")
            return names[0]
        if entry not in names:
            raise LaunchError(
                f"no entry is called {entry!r}; there is {', '.join(names) or 'none'}"
            )
        return entry

    def _code(
        self, entry: str, variables: Mapping[str, Memory] | None = None
    ) -> tuple[Code, GlobalMemory]:
        placed = {
            name: one.address for name, one in (variables or {}).items() if one.address is not None
        }
        key = (entry, *sorted(placed.items()))
        if key not in self._codes:
            function = flatten(self._module, entry)
            memory = GlobalMemory()
            layout = Layout(self._module, function, memory, placed)
            self._codes[key] = Code(function, load_families(), layout), memory
        return self._codes[key]
