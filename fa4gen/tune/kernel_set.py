"""Several kernels that compute the same, as one callable that picks by the shapes of a call."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from fa4gen.callables import as_callable, compile_config
from fa4gen.config.load import load_config, locate
from fa4gen.config.paths import shown_path
from fa4gen.config.set_file import KernelSetFile, Region, is_table, read_set
from fa4gen.counts import counted
from fa4gen.designs.build import build_plan
from fa4gen.errors import CompileError, ConfigError, Problem
from fa4gen.resources import usable_cpus
from fa4gen.tune.candidates import Candidate, Source, features, find_candidates, rank
from fa4gen.tune.family import family_of
from fa4gen.tune.follow import still_good
from fa4gen.tune.model.chips import chip_for

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fa4gen.config.load import LoadedConfig
    from fa4gen.designs.common.plans import Plan
    from fa4gen.tune.candidates import Ranked
    from fa4gen.tune.model.chips import Chip

SHAPES_KEPT = 4096
"""Picks that are kept; when there are more, all are forgotten and made again."""


@dataclass
class _Kernel:
    """A kernel of the set, compiled when it is first needed."""

    candidate: Candidate
    lock: threading.Lock = field(default_factory=threading.Lock)
    made: Any = None
    refused: bool = False
    """Whether it does not compile, such as a new tile that spills: it is not picked again."""


class KernelSet:
    """Kernels that compute the same: called like one of them, it picks the one for the shapes.

    The pick is that of the region that a table has for the problem, else the fastest by the cost
    model. A table that comes with fa4gen is followed where it was measured, and between these
    problems as long as the model predicts no other kernel to be faster by more than its order can
    be trusted with. A pick is kept by shape, so that later calls look it up in a dictionary. A
    kernel is compiled when a call first needs it, unless ``compile`` did that before; in place of a
    new tile that does not compile, the next one is picked. Thread-safe.

    ``chip`` and ``table`` say for which chip it picks, and by which table; without one the model
    decides alone.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        *,
        regions: Sequence[Region] = (),
        chip: str = "",
        table: Path | None = None,
        tuned: LoadedConfig | None = None,
        compiler: str = "auto",
        cache: bool = True,
        templates: Path | None = None,
    ) -> None:
        """Take kernels of one family; nothing is compiled, no GPU is touched.

        ``chip`` is the name of the one to choose for, by default the GPU that is present, else the
        first of the architecture that the model knows. Of kernels for several architectures, those
        that the GPU runs are chosen from, without one those that the chip runs. ``regions`` are
        those of ``table``. With ``tuned``, a config, the table that comes with fa4gen for it and
        the chip is followed, with the kernels that it names; it is read when a kernel is chosen
        for the first time. ``templates`` is a folder of own ones.
        """
        self._kernels = {one.name: _Kernel(one) for one in candidates}
        self._plan = candidates[0].plan
        self._archs = tuple(dict.fromkeys(one.plan.arch for one in candidates))
        self._usable: tuple[str, ...] = ()
        self._family = family_of(self._plan)
        self._regions = tuple(regions)
        self._chip_name = chip
        self._table = table
        self._tuned = tuned
        self._judges = tuned is not None
        self._table_lock = threading.Lock()
        self._build = partial(_compile, compiler=compiler, cache=cache, templates=templates)
        self._picked: dict[Any, Any] = {}

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call the kernel for the shapes of the arrays; arguments and errors are the kernel's."""
        return self._kernel_for(arguments, options)(*arguments, **options)

    def prepare(self, *arguments: Any, **options: Any) -> Any:
        """Prepare a call by the kernel for the shapes, to be launched as often as needed."""
        return self._kernel_for(arguments, options).prepare(*arguments, **options)

    def __repr__(self) -> str:
        name = self.table.name if self.table is not None else None
        by = f"table {name}, then the model" if name else "the model: there is no table"
        kernels = counted(len(self._kernels), "kernel")
        archs = ", ".join(self._archs)
        return f"KernelSet({kernels}, arch={archs!r}, chip={self.chip!r}, by {by})"

    @property
    def chip(self) -> str:
        """The name of the chip that kernels are chosen for."""
        self._read_table()
        return self._chip_name

    @property
    def table(self) -> Path | None:
        """The table that it follows where that has a region; None where the model decides alone."""
        self._read_table()
        return self._table

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all kernels that it may pick."""
        return tuple(self._kernels)

    @property
    def compiled(self) -> tuple[str, ...]:
        """The names of those that are compiled."""
        return tuple(name for name, kernel in self._kernels.items() if kernel.made is not None)

    def choose(self, problem: str) -> str:
        """Return the name of the kernel for a problem, such as "16x4096x14336".

        Raises ConfigError for any other text.
        """
        return self._choose(self._family.parse_problem(problem)).candidate.name

    def compile(
        self, problems: Sequence[str] | None = None, *, jobs: int | None = None
    ) -> tuple[str, ...]:
        """Compile the kernels for ``problems`` in parallel; return their names.

        Without ``problems`` the kernels of the table are compiled, if there is one. ``jobs`` is the
        number of processes, by default the CPUs that this one may use. Raises ConfigError for a
        text that is not a problem, and the errors of compiling.
        """
        self._read_table()
        if problems is None:
            problems = [region.problem for region in self._regions if region.problem]
        parsed = [self._family.parse_problem(problem) for problem in problems]
        while True:  # again where some were refused: others are picked
            wanted = {one.candidate.name: one for one in map(self._choose, parsed)}
            missing = [one for one in wanted.values() if one.made is None]
            if not missing:
                return tuple(wanted)
            self._make_all(missing, jobs)

    def _make_all(self, missing: Sequence[_Kernel], jobs: int | None) -> None:
        if len(missing) == 1:
            self._make(missing[0])
            return
        from fa4gen.workers import map_tasks

        tasks = [one.candidate for one in missing]
        workers = min(len(tasks), jobs or usable_cpus())
        for one, built in zip(missing, map_tasks(self._build, tasks, jobs=workers), strict=True):
            with one.lock:
                if one.made is None:
                    one.refused = built is None
                    if built is not None:
                        one.made = as_callable(*built)

    def _kernel_for(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        key = self._family.call_key(arguments, options)
        kernel = self._picked.get(key)
        return self._pick(key) if kernel is None else kernel

    def _pick(self, key: Any) -> Any:
        """Choose and make the kernel for a call's shapes, and keep it."""
        problem = self._family.problem_of_call(self._plan, key)
        kernel = None
        while kernel is None:
            kernel = self._make(self._choose(problem))
        if len(self._picked) >= SHAPES_KEPT:
            self._picked.clear()
        self._picked[key] = kernel
        return kernel

    def _choose(self, problem: Any) -> _Kernel:
        self._read_table()
        extents = self._family.extents(problem)
        for region in self._regions:
            kernel = self._kernels[region.kernel]
            takes = self._family.takes(kernel.candidate.plan, problem)
            if region.holds(extents) and takes and self._may_pick(kernel):
                return self._judged(region, kernel, problem)
        return self._kernels[self._first(problem).candidate.name]

    def _judged(self, region: Region, kernel: _Kernel, problem: Any) -> _Kernel:
        """Return a region's kernel, or the model's first where that is the one to take."""
        at = region.problem
        if not self._judges or (at and problem == self._family.parse_problem(at)):
            return kernel
        first, plan = self._first(problem), kernel.candidate.plan
        good = still_good(self._family, region, plan, first, problem, self._chip)
        return kernel if good else self._kernels[first.candidate.name]

    def _first(self, problem: Any) -> Ranked:
        usable = filter(self._may_pick, self._kernels.values())
        return rank((kernel.candidate for kernel in usable), problem, self._chip)[0]

    def _may_pick(self, kernel: _Kernel) -> bool:
        return not kernel.refused and kernel.candidate.plan.arch in self._usable

    @property
    def _chip(self) -> Chip:
        """The constants of the chip to choose for."""
        name = self.chip
        return chip_for(self._usable[0], name)

    def _find_chip(self) -> None:
        """Find out the chip to choose for, and the architectures that run."""
        from fa4gen.runtime.device import find_device

        device = find_device(*self._archs)
        chips = [chip_for(arch, self._chip_name) for arch in self._archs]
        chip = next((one for one in chips if one.name == self._chip_name), chips[0])
        if not self._chip_name:
            self._chip_name = chip.name if device is None else device.name
        runs = chip.runs if device is None else device.runs
        self._usable = tuple(filter(runs, self._archs))

    def _read_table(self) -> None:
        """Find out the chip, and the table that comes with fa4gen for it, if any is wanted."""
        with self._table_lock:
            if not self._usable:
                self._find_chip()
            if self._tuned is None:
                return
            from fa4gen.tune.committed import find_table

            file = find_table(self._tuned, self._chip_name)
            self._tuned = None
            if file is not None:
                kernels = dict(self._kernels)
                for one in load_candidates(file, "tile"):
                    known = kernels.get(one.name)
                    if known is None or not known.candidate.is_same(one):
                        kernels[one.name] = _Kernel(one)
                self._kernels = kernels
                self._regions, self._table = file.regions, file.path

    def _make(self, kernel: _Kernel) -> Any:
        """Return the callable of a kernel; other threads wait for one that is being compiled.

        None for a new tile that does not compile.
        """
        if kernel.made is None and not kernel.refused:
            with kernel.lock:
                if kernel.made is None and not kernel.refused:
                    built = self._build(kernel.candidate)
                    kernel.refused = built is None
                    if built is not None:
                        kernel.made = as_callable(*built)
        return kernel.made


def all_kernels(loaded: LoadedConfig, **options: Any) -> KernelSet:
    """Return the set of a config: itself, shipped ones of its function, other tiles.

    It follows the table that comes with fa4gen for the chip; ``options`` are those of KernelSet
    that say how a kernel is built. Raises ConfigError for a config that cannot work, and for a
    family without a cost model.
    """
    plan = build_plan(loaded.config)
    family_of(plan).refuse_set(plan)
    return KernelSet(find_candidates(loaded), tuned=loaded, **options)


def open_set(path: Path, **options: Any) -> KernelSet:
    """Return the set that a file names, with ``options`` as in ``all_kernels``.

    Raises ConfigError with all that is wrong with the file.
    """
    file = read_set(path)
    return KernelSet(
        load_candidates(file),
        regions=file.followed,
        chip=file.chip,
        table=path if is_table(path) else None,
        **options,
    )


def load_candidates(file: KernelSetFile, source: Source = "config") -> list[Candidate]:
    """Return the kernels of a set; ConfigError for one that cannot work or computes another.

    With the source "tile" one that does not compile is not picked.
    """
    found: list[Candidate] = []
    problems: list[Problem] = []
    for config in file.configs:
        try:
            loaded = load_config(config)
            try:
                found.append(Candidate(loaded, build_plan(loaded.config), source, {}))
            except ConfigError as error:
                raise locate(error, loaded) from error
        except ConfigError as error:
            problems += error.problems
    for other in found[1:]:
        problems += _differences(found[0], other, shown_path(file.path))
    if problems:
        raise ConfigError(*problems)
    family_of(found[0].plan).refuse_set(found[0].plan)
    return found


def _differences(first: Candidate, other: Candidate, file: str) -> list[Problem]:
    """Return a problem where two kernels do not compute the same."""
    if first.name == other.name:
        return [Problem(f"two kernels are called {first.name}", "Rename one of them.", file)]
    one = features(first.loaded, family_of(first.plan))
    two = features(other.loaded, family_of(other.plan))
    keys = [key for key in one | two if one.get(key) != two.get(key) and key != "arch"]
    if not keys:
        return []
    words = ", ".join(f"{key}: {one.get(key)} and {two.get(key)}" for key in keys)
    return [
        Problem(
            f"{first.name} and {other.name} do not compute the same: {words}",
            "Kernels of a set differ in tiles, stages and the like alone.",
            file,
        )
    ]


def _compile(
    candidate: Candidate, *, compiler: str, cache: bool, templates: Path | None
) -> tuple[Plan, bytes] | None:
    """Return the plan that compiled clean with its cubin; None for a new tile where none does."""
    try:
        new = candidate.source == "tile"
        chosen = compile_config(
            candidate.loaded, compiler=compiler, cache=cache, fixes=not new, templates=templates
        )
    except CompileError:
        if not new:
            raise
        return None
    return chosen.plan, chosen.kernel.cubin
