"""``fa4gen doctor``: the abilities of this machine to compile and run, determined by trying."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fa4gen.cli.options import OutputFormat, format_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.errors import Problem
    from fa4gen.runtime.device import DeviceInfo
    from fa4gen.toolchain.survey import Tool

_STYLES = {
    "ok": "green",
    "missing": "red",
    "problem": "red",
    "yes": "green",
    "no": "red",
    "partly": "yellow",
}


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
    from dataclasses import asdict

    from fa4gen.cli.output import print_json, print_table, problem_data, report
    from fa4gen.errors import MissingCapabilityError
    from fa4gen.runtime.device import all_devices

    tools = _look()
    gpus = all_devices()
    missing = _missing(tools, gpus, require_gpu, require_nvcc)
    abilities = _abilities(tools, gpus)
    status = MissingCapabilityError.exit_status if missing else 0
    if output_format == "json":
        commands = [
            {"commands": names.split(", "), "here": here, "how_far": how}
            for names, here, how in abilities
        ]
        print_json(
            {
                "exit_status": status,
                "tools": [asdict(tool) for tool in tools],
                "commands": commands,
                "problems": [problem_data(problem) for problem in missing],
            }
        )
    else:
        rows: list[tuple[str, str, str]] = []
        for tool in tools:
            rows.append((tool.name, tool.state, tool.details))
            rows += [("", "", tool.remedy)] if tool.remedy else []
        print_table(("what", "state", "details"), rows, styles=_STYLES)
        click.echo()
        print_table(("commands", "here", "how far"), abilities, styles=_STYLES)
    for problem in missing:
        report(problem, output_format, text=f"error: {problem}")
    return status


def _look() -> list[Tool]:
    from concurrent.futures import ThreadPoolExecutor

    from fa4gen.toolchain.survey import Tool, survey_compiler
    from fa4gen.version import __version__

    with ThreadPoolExecutor(1) as pool:
        # Its own processes: all the rest, which imports much, is done meanwhile.
        nvcc = pool.submit(survey_compiler, "nvcc")
        import platform

        from fa4gen.toolchain.cache import Cache
        from fa4gen.toolchain.survey import survey_cache, survey_packages

        return [
            Tool("fa4gen", "ok", __version__),
            Tool("Python", "ok", f"{platform.python_version()} on {platform.platform()}"),
            *survey_packages(),
            survey_compiler("nvrtc"),
            nvcc.result(),
            _driver(),
            *_gpus(),
            survey_cache(Cache.default()),
        ]


def _driver() -> Tool:
    from fa4gen.errors import MissingCapabilityError
    from fa4gen.runtime.device import NO_DRIVER, load_driver
    from fa4gen.toolchain.survey import Tool

    try:
        status, version = load_driver().cuDriverGetVersion()
    except MissingCapabilityError:
        status, version = 1, 0
    if int(status):
        return Tool("driver", "absent", NO_DRIVER)
    return Tool("driver", "ok", f"supports CUDA {version // 1000}.{version % 1000 // 10}")


def _gpus() -> list[Tool]:
    from fa4gen.runtime.device import all_devices, why_no_device
    from fa4gen.toolchain.survey import Tool

    found = []
    for gpu in all_devices():
        archs = ", ".join(_archs(gpu))
        runs = f"runs {archs}" if archs else "runs no generated kernel"
        details = f"{gpu}, {gpu.memory_bytes / 2**30:.0f} GiB, {runs}"
        found.append(Tool(f"GPU {gpu.ordinal}", "ok" if archs else "problem", details))
    return found or [Tool("GPU", "absent", why_no_device())]


def _archs(gpu: DeviceInfo) -> list[str]:
    from fa4gen.designs.common.hardware import ARCHITECTURES

    return [arch for arch in ARCHITECTURES if gpu.runs(arch)]


def _missing(
    tools: Sequence[Tool], gpus: Sequence[DeviceInfo], require_gpu: bool, require_nvcc: bool
) -> list[Problem]:
    from fa4gen.errors import Problem
    from fa4gen.runtime.device import why_no_device

    problems = []
    if require_gpu and not any(_archs(gpu) for gpu in gpus):
        there = ", ".join(map(str, gpus)) or why_no_device()
        problems.append(
            Problem(
                f"no GPU here runs generated kernels: {there}",
                "Run this on a machine with one, or leave out --require-gpu.",
            )
        )
    nvcc = next(tool for tool in tools if tool.name == "nvcc")
    if require_nvcc and not nvcc.archs:
        problems.append(Problem(nvcc.details, nvcc.remedy))
    return problems


def _abilities(tools: Sequence[Tool], gpus: Sequence[DeviceInfo]) -> list[tuple[str, str, str]]:
    """Return for each group of commands whether it works here, and its limits."""
    from fa4gen.designs.common.hardware import ARCHITECTURES

    compiler = next((tool.name for tool in tools if tool.archs), "")
    archs = ", ".join(dict.fromkeys(arch for tool in tools for arch in tool.archs))
    compiles = f"{compiler}, for {archs}" if compiler else "no compiler"
    gpu = next((gpu for gpu in gpus if _archs(gpu)), None)
    if not compiler:
        verifies = ("no", "no compiler")
    elif gpu is None:
        verifies = ("yes", "emulates on the CPU: no GPU here")
    else:
        verifies = ("yes", f"runs {', '.join(_archs(gpu))} on {gpu}, emulates the rest")
    torch = any(tool.name == "torch" and tool.state == "ok" for tool in tools)
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
