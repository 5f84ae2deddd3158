"""From config files to compiled kernels, several at a time in worker processes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fa4gen.errors import (
    CompileError,
    ConfigError,
    Fa4genError,
    MissingCapabilityError,
    Problem,
)
from fa4gen.verify.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fa4gen.config.settings import Setting
    from fa4gen.designs.common.plans import Plan
    from fa4gen.toolchain.model import CompiledKernel, Unit


@dataclass(frozen=True)
class BuiltKernel:
    """A kernel as far as it could be built; plain data, since it is sent between processes."""

    config: str
    plan: Plan | None = None
    compiled: CompiledKernel | None = None
    proof: str = "not rendered"
    problems: tuple[Problem, ...] = ()
    exit_status: int = 0
    unit: Unit | None = None
    """The unit that was compiled."""

    @property
    def name(self) -> str:
        """The kernel's name; the config's where it has no plan."""
        return self.plan.name if self.plan is not None else Path(self.config).stem

    @property
    def arch(self) -> str:
        """The kernel's architecture; "" without a plan."""
        return self.plan.arch if self.plan is not None else ""

    def verdict(self, seed: int, *, problem: str = "", exit_status: int = 0) -> Verdict:
        """Return the verdict on a kernel that is not run, with one ``problem`` more if given."""
        more = (Problem(problem, file=self.config),) if problem else ()
        return Verdict(
            config=self.config,
            name=self.name,
            arch=self.arch,
            proof=self.proof,
            seed=seed,
            problems=self.problems + more,
            exit_status=self.exit_status or exit_status,
            seconds=0.0,
            facts=asdict(self.compiled.resources) if self.compiled is not None else {},
        )


def build_kernel(
    config: str,
    compiler: str = "auto",
    settings: Sequence[Setting] = (),
    templates: Path | None = None,
) -> BuiltKernel:
    """Load, plan, render and compile a config file; errors are part of the result.

    ``templates`` is a folder of own ones.
    """
    from fa4gen.callables import compile_config
    from fa4gen.config.load import load_config, locate
    from fa4gen.config.paths import shown_path
    from fa4gen.designs.build import build_plan

    plan = None
    shown = shown_path(Path(config))
    try:
        loaded = load_config(config, settings)
        try:
            plan = build_plan(loaded.config)
        except ConfigError as error:
            raise locate(error, loaded) from error
        chosen = compile_config(loaded, compiler=compiler, templates=templates)
    except Fa4genError as error:
        was_rendered = isinstance(error, CompileError | MissingCapabilityError)
        proof = "rendered" if was_rendered else "not rendered"
        return BuiltKernel(shown, plan, None, proof, error.problems, error.exit_status)
    return BuiltKernel(shown, chosen.plan, chosen.kernel, "compiled", unit=chosen.candidate.unit)


def build_kernels(
    configs: Sequence[str],
    jobs: int = 1,
    compiler: str = "auto",
    settings: Sequence[Setting] = (),
    templates: Path | None = None,
) -> Iterator[BuiltKernel]:
    """Yield the build of each config, in their order, by ``jobs`` processes: ``build_kernel``."""
    workers = min(jobs, len(configs))
    if workers <= 1:
        yield from (build_kernel(config, compiler, settings, templates) for config in configs)
        return
    from fa4gen.workers import map_tasks

    work = partial(build_kernel, compiler=compiler, settings=settings, templates=templates)
    yield from map_tasks(work, configs, jobs=workers)
