"""``fa4gen vendor verify``: verify's cases, launched by the C code in the folder.

What is there is what is proved: the folder's C files are built by the host's compiler, its .cu is
compiled, edited or not. Where no GPU runs a kernel, the emulator runs what the launcher hands to a
stand-in for the driver.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from fa4gen.errors import Fa4genError, Problem
from fa4gen.verify.blas import use_one_blas_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fa4gen.toolchain.model import CompiledKernel
    from fa4gen.vendoring.kernels_on_disk import KernelOnDisk
    from fa4gen.verify.backend import Backend
    from fa4gen.verify.run import VerifyOptions
    from fa4gen.verify.verdict import Verdict


@dataclass(frozen=True)
class FolderVerdict:
    """One kernel of a vendored folder, verified."""

    symbol: str
    """The C function."""
    verdict: Verdict
    """Its ``proof`` is "partly emulated (n instructions not run)", "emulated" or "ran on <GPU>",
    its ``config`` the manifest."""
    cubin: str
    """The state of the machine code: "as compiled from kernels/", or why that is not known."""
    notes: tuple[str, ...] = ()
    """Remarks that are not failures."""

    @property
    def passed(self) -> bool:
        """Whether nothing was found wrong."""
        return self.verdict.passed


@dataclass(frozen=True)
class Libraries:
    """A folder built twice: for the real driver, and for the stand-in at ``stand_in``."""

    prefix: str
    stand_in: Path
    recorded: Path
    real: Path | None
    """None where no GPU is used."""


@dataclass(frozen=True)
class PickVendored:
    """From an architecture to the backend of a kernel; plain data, as it goes to processes."""

    libraries: Libraries
    symbol: str

    def __call__(self, arch: str) -> Backend | None:
        """Return the GPU that runs ``arch``, else the emulator; None where there is neither."""
        from fa4gen.vendoring.emulator_backend import VendoredEmulator
        from fa4gen.vendoring.gpu_backend import VendoredGpu

        made = self.libraries
        if made.real is not None:
            gpu = VendoredGpu(arch, made.real, made.prefix, self.symbol)
            if gpu.available():
                return gpu
        emulator = VendoredEmulator(arch, made.recorded, made.stand_in, made.prefix, self.symbol)
        return emulator if emulator.available() else None


def verify_folder(
    folder: str | Path,
    *,
    seed: int,
    jobs: int = 1,
    progress: Callable[[FolderVerdict], None] | None = None,
    patterns: tuple[str, ...] = (),
    strict: bool = False,
    compiler: str = "auto",
    emulate: bool = False,
) -> list[FolderVerdict]:
    """Verify every kernel of a vendored folder by its own C code; verdicts in the kernels' order.

    ``patterns`` choose cases as in ``fa4gen verify``; with ``strict``, kernels that are partly
    emulated fail; ``progress`` gets each verdict as it is
    ready; ``jobs`` processes share what is emulated. ``emulate`` leaves GPUs out.

    Raises ConfigError for any other folder, CompileError where its C files do not
    compile, MissingCapabilityError without a C compiler. What is wrong with a kernel is in its
    verdict.
    """
    use_one_blas_thread()
    from fa4gen.vendoring.kernels_on_disk import read_contents
    from fa4gen.verify.run import VerifyOptions

    contents = read_contents(Path(folder))
    options = VerifyOptions(seed, patterns, strict=strict)
    with TemporaryDirectory(prefix="fa4gen-vendor-") as scratch:
        libraries = _build(contents.folder, contents.prefix, Path(scratch), emulate=emulate)
        work = partial(_verify, libraries=libraries, options=options, compiler=compiler)
        found: dict[str, FolderVerdict] = {}
        for verdict in _verdicts(contents.kernels, libraries, work, jobs):
            found[verdict.symbol] = verdict
            if progress is not None:
                progress(verdict)
    return [found[kernel.symbol] for kernel in contents.kernels]


def _build(folder: Path, prefix: str, scratch: Path, *, emulate: bool) -> Libraries:
    from fa4gen.runtime.device import all_devices
    from fa4gen.vendoring.host_build import build_library
    from fa4gen.vendoring.standin import build_stand_in

    stand_in = build_stand_in()
    recorded = build_library(folder, scratch / f"lib{prefix}_recorded.so", stand_in=stand_in)
    real = None
    if not emulate and all_devices():
        real = build_library(folder, scratch / f"lib{prefix}.so")
    return Libraries(prefix, stand_in, recorded, real)


def _verdicts(
    kernels: Sequence[KernelOnDisk],
    libraries: Libraries,
    work: Callable[..., FolderVerdict],
    jobs: int,
) -> Iterator[FolderVerdict]:
    """Yield verdicts: those of the GPU first, in this process, then those that are emulated.

    Once a kernel has crashed or hung, no other is run on the GPU.
    """
    emulated = []
    stopped = ""
    for kernel in kernels:
        backend = PickVendored(libraries, kernel.symbol)(kernel.plan.arch)
        if backend is None or backend.emulates:
            emulated.append(kernel)
        elif stopped:
            yield work(kernel, not_run=f"not run, because {stopped} left the GPU unusable")
        else:
            verdict = work(kernel)
            if verdict.verdict.stopped:
                stopped = kernel.symbol
            yield verdict
    workers = min(jobs, len(emulated))
    if workers <= 1:
        yield from (work(kernel, jobs=jobs) for kernel in emulated)
        return
    from fa4gen.workers import map_tasks

    yield from map_tasks(partial(work, jobs=jobs // workers), emulated, jobs=workers)


def _verify(
    kernel: KernelOnDisk,
    *,
    libraries: Libraries,
    options: VerifyOptions,
    compiler: str,
    jobs: int = 1,
    not_run: str = "",
) -> FolderVerdict:
    """Compile a kernel, run its cases unless ``not_run`` says why not, compare its cubin."""
    use_one_blas_thread()
    from fa4gen.toolchain.model import Unit
    from fa4gen.vendoring.cubin_check import SAME
    from fa4gen.verify.build import BuiltKernel
    from fa4gen.verify.run import verify_built

    plan = kernel.plan
    shown = str(kernel.manifest)
    try:
        compiled = _compile(kernel, compiler)
    except Fa4genError as error:
        built = BuiltKernel(shown, plan, None, "rendered", error.problems, error.exit_status)
        return FolderVerdict(kernel.symbol, built.verdict(options.seed), "not compiled")
    unit = Unit(plan.name, kernel.source, kernel.headers, plan.arch)
    built = BuiltKernel(shown, plan, compiled, "compiled", unit=unit)
    notes = _notes(kernel)
    try:
        cubin, wrong = _check_cubin(kernel, compiled, libraries)
        if not_run:
            raise Fa4genError(Problem(not_run, file=shown))
        pick = PickVendored(libraries, kernel.symbol)
        verdict = verify_built(built, options, pick(plan.arch), pick=pick, jobs=jobs)
    except Fa4genError as error:
        failed = replace(built, problems=error.problems, exit_status=error.exit_status)
        return FolderVerdict(kernel.symbol, failed.verdict(options.seed), "not compared", notes)
    if wrong:
        remedy = "Compile it again: fa4gen vendor recompile DIR."
        problem = Problem(wrong, remedy, file=shown)
        verdict = replace(verdict, problems=(*verdict.problems, problem))
    elif cubin != SAME:
        notes = (*notes, f"{kernel.symbol}: its cubin was {cubin}")
    return FolderVerdict(kernel.symbol, verdict, cubin, notes)


def _compile(kernel: KernelOnDisk, compiler: str) -> CompiledKernel:
    from fa4gen.toolchain.cache import Cache
    from fa4gen.toolchain.compile import compile_kernel

    return compile_kernel(
        kernel.source,
        kernel.headers,
        kernel.plan.arch,
        name=kernel.symbol,
        compiler=compiler,
        cache=Cache.default(),
    )


def _check_cubin(
    kernel: KernelOnDisk, compiled: CompiledKernel, libraries: Libraries
) -> tuple[str, str]:
    from fa4gen.vendoring.binding import Binding
    from fa4gen.vendoring.case_calls import CallError
    from fa4gen.vendoring.cubin_check import compare_cubin, load_cubin
    from fa4gen.vendoring.standin import StandIn

    try:
        binding = Binding(libraries.recorded, libraries.prefix).kernel(kernel.symbol)
    except AttributeError as error:
        raise CallError(
            Problem(
                f"the launcher lacks a function: {error}",
                "Write the folder again: fa4gen vendor update.",
            )
        ) from error
    found = load_cubin(binding, StandIn(libraries.stand_in), kernel.plan.arch)
    return compare_cubin(found, compiled, kernel.symbol)


def _notes(kernel: KernelOnDisk) -> tuple[str, ...]:
    if not kernel.replanned:
        return ()
    keys = ", ".join(kernel.replanned)
    return (
        f"{kernel.symbol}: the fa4gen of today plans it otherwise ({keys}); its cases follow the "
        "plan of today",
    )
