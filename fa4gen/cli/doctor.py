"""``fa4gen doctor``: the abilities of this machine to compile and run, determined by trying."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from fa4gen.cli.options import OutputFormat, format_option
from fa4gen.counts import counted

if TYPE_CHECKING:
    from fa4gen.errors import Problem
    from fa4gen.runtime.device import DeviceInfo
    from fa4gen.toolchain.survey import CacheReport, CompilerReport, PackageReport

_MIB = 1 << 20


@dataclass(frozen=True)
class _Findings:
    python: str
    platform: str
    packages: list[PackageReport]
    compilers: list[CompilerReport]
    driver: str
    """CUDA version that the driver supports; "" without one."""
    gpus: tuple[DeviceInfo, ...]
    why_no_gpu: str
    cache: CacheReport


@click.command(name="doctor")
@click.option(
    "--require-gpu",
    is_flag=True,
    help="End with status 4 without a GPU that runs generated kernels.",
)
@click.option("--require-nvcc", is_flag=True, help="End with status 4 without a working nvcc.")
@format_option
def command(require_gpu: bool, require_nvcc: bool, output_format: OutputFormat) -> int:
    """Show what this machine can compile and run, and what each command can do here.

    Compilers are tried out: each compiles a small kernel for every architecture.
    """
    from fa4gen.cli.output import print_json, report
    from fa4gen.errors import MissingCapabilityError

    found = _look()
    missing = _missing(found, require_gpu, require_nvcc)
    status = MissingCapabilityError.exit_status if missing else 0
    if output_format == "json":
        print_json({"exit_status": status} | _data(found, missing))
    else:
        _print_text(found)
    for problem in missing:
        report(problem, output_format, text=f"error: {problem}")
    return status


def _look() -> _Findings:
    from concurrent.futures import ThreadPoolExecutor

    from fa4gen.toolchain.survey import survey_compiler

    with ThreadPoolExecutor(1) as pool:
        # Its own processes: all the rest, which imports much, is done meanwhile.
        nvcc = pool.submit(survey_compiler, "nvcc")
        import platform

        from fa4gen.runtime.device import all_devices, why_no_device
        from fa4gen.toolchain.cache import Cache
        from fa4gen.toolchain.survey import survey_cache, survey_packages

        nvrtc = survey_compiler("nvrtc")
        driver = _driver_version()
        return _Findings(
            python=platform.python_version(),
            platform=platform.platform(),
            packages=survey_packages(),
            driver=driver,
            gpus=all_devices(),
            why_no_gpu=why_no_device(),
            cache=survey_cache(Cache.default()),
            compilers=[nvrtc, nvcc.result()],
        )


def _driver_version() -> str:
    from fa4gen.errors import MissingCapabilityError
    from fa4gen.runtime.device import load_driver

    try:
        status, version = load_driver().cuDriverGetVersion()
    except MissingCapabilityError:
        return ""
    return f"{version // 1000}.{version % 1000 // 10}" if int(status) == 0 else ""


def _archs(gpu: DeviceInfo) -> list[str]:
    from fa4gen.designs.common.hardware import ARCHITECTURES

    return [arch for arch in ARCHITECTURES if gpu.runs(arch)]


def _missing(found: _Findings, require_gpu: bool, require_nvcc: bool) -> list[Problem]:
    from fa4gen.errors import Problem

    problems = []
    if require_gpu and not any(_archs(gpu) for gpu in found.gpus):
        there = ", ".join(map(str, found.gpus)) or found.why_no_gpu
        problems.append(
            Problem(
                f"no GPU here runs generated kernels: {there}",
                "Run this on a machine with one, or leave out --require-gpu.",
            )
        )
    nvcc = next(compiler for compiler in found.compilers if compiler.name == "nvcc")
    if require_nvcc and not nvcc.archs:
        problems.append(Problem(nvcc.problem, nvcc.remedy))
    return problems


def _abilities(found: _Findings) -> list[tuple[str, str, str]]:
    """Return for each group of commands whether it works here, and its limits."""
    from fa4gen.designs.common.hardware import ARCHITECTURES

    compiler = next((c.name for c in found.compilers if c.archs), "")
    archs = ", ".join(dict.fromkeys(a for c in found.compilers for a in c.archs))
    compiles = f"{compiler}, for {archs}" if compiler else "no compiler"
    gpu = next((gpu for gpu in found.gpus if _archs(gpu)), None)
    if not compiler:
        verifies = ("no", "no compiler")
    elif gpu is None:
        verifies = ("yes", "emulates on the CPU: no GPU here")
    else:
        verifies = ("yes", f"runs {', '.join(_archs(gpu))} on {gpu}, emulates the rest")
    torch = any(p.name == "torch" and p.version for p in found.packages)
    return [
        ("render, check, explain, list, schema", "yes", ""),
        ("compile", "yes" if compiler else "no", compiles),
        ("emulate", "yes", f"any PTX for {', '.join(ARCHITECTURES)}"),
        ("verify, sweep", *verifies),
        ("bench", *_bench(bool(compiler) and gpu is not None, torch)),
    ]


def _bench(runs: bool, torch: bool) -> tuple[str, str]:
    if not runs:
        return "no", "needs a compiler and a GPU"
    if not torch:
        return "partly", "without cuDNN, FA2 and cuBLAS as peers: torch is not installed"
    return "yes", "with cuDNN, FA2 and cuBLAS as peers"


def _print_text(found: _Findings) -> None:
    from fa4gen.cli.output import print_table
    from fa4gen.runtime.device import NO_DRIVER
    from fa4gen.version import __version__

    styles = {"ok": "green", "missing": "red", "problem": "red", "yes": "green", "no": "red"}
    styles |= {"partly": "yellow"}
    rows: list[tuple[str, str, str]] = [
        ("fa4gen", "ok", __version__),
        ("Python", "ok", f"{found.python} on {found.platform}"),
    ]
    for package in found.packages:
        state = "ok" if package.version and not package.problem else "problem"
        if not package.version:
            state = "absent" if package.optional else "missing"
        detail = package.version or f"for {package.purpose}"
        rows.append((package.name, state, "; ".join(filter(None, (detail, package.problem)))))
    for compiler in found.compilers:
        if compiler.version:
            text = f"{compiler.version} for {', '.join(compiler.archs) or 'nothing'}"
            text += f"; {compiler.problem}" if compiler.problem else ""
            rows.append((compiler.name, "ok" if compiler.archs else "problem", text))
            rows.append(("", "", compiler.path))
        else:
            rows.append((compiler.name, "absent", compiler.problem))
            rows.append(("", "", compiler.remedy))
    driver = f"supports CUDA {found.driver}" if found.driver else NO_DRIVER
    rows.append(("driver", "ok" if found.driver else "absent", driver))
    for gpu in found.gpus:
        archs = ", ".join(_archs(gpu))
        memory = f"{gpu.memory_bytes / 2**30:.0f} GiB"
        runs = f"runs {archs}" if archs else "runs no generated kernel"
        rows.append(
            (f"GPU {gpu.ordinal}", "ok" if archs else "problem", f"{gpu}, {memory}, {runs}")
        )
    if not found.gpus:
        rows.append(("GPU", "absent", found.why_no_gpu))
    cache = found.cache
    held = f"{cache.folder}: {counted(cache.entries, 'entry')}, {cache.bytes / _MIB:.1f} MiB"
    state = "ok" if cache.writable else "problem"
    rows.append(("cache", state, f"{held}; {cache.problem}" if cache.problem else held))
    print_table(("what", "state", "details"), rows, styles=styles)
    click.echo()
    print_table(("commands", "here", "how far"), _abilities(found), styles=styles)


def _data(found: _Findings, missing: list[Problem]) -> dict[str, Any]:
    from dataclasses import asdict

    from fa4gen.cli.output import problem_data
    from fa4gen.version import __version__

    return {
        "fa4gen": __version__,
        "python": found.python,
        "platform": found.platform,
        "packages": [asdict(package) for package in found.packages],
        "compilers": [asdict(compiler) for compiler in found.compilers],
        "driver": found.driver,
        "gpus": [asdict(gpu) | {"archs": _archs(gpu)} for gpu in found.gpus],
        "why_no_gpu": found.why_no_gpu,
        "cache": asdict(found.cache) | {"folder": str(found.cache.folder)},
        "commands": [
            {"commands": names.split(", "), "here": here, "how_far": how}
            for names, here, how in _abilities(found)
        ],
        "problems": [problem_data(problem) for problem in missing],
    }
