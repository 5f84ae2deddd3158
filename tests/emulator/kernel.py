"""Small PTX kernels for tests: a body, its parameters, and a launch."""

from __future__ import annotations

from typing import Any

from fa4gen.emulator import Program, Report, TensorMap

REGISTERS = """
    .reg .pred %p<32>;
    .reg .b16 %h<64>;
    .reg .b32 %r<320>;
    .reg .b64 %d<64>;
    .reg .b128 %q<4>;
"""
_OF_A_KERNEL = {"params", "target", "shared", "directives", "module", "registers"}
# all threads of a cluster meet
SYNC = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"


def kernel(
    body: str,
    params: tuple[str, ...] = ("u64",),
    *,
    target: str = "sm_90a",
    shared: int = 0,
    directives: str = "",
    module: str = "",
    registers: str = REGISTERS,
) -> str:
    """A module with one entry ``k``; parameter n is ``p<n>``, loaded into %d<n> if a u64, else
    into %r<n>. ``shared`` bytes of static shared memory are called ``tile``.

    ``tensor_map`` as a parameter type makes a 128-byte parameter with its generic address in %d<n>.
    """
    declared, loads = [], []
    for index, kind in enumerate(params):
        if kind == "tensor_map":
            declared.append(f".param .align 64 .b8 p{index}[128]")
            loads.append(f"mov.b64 %d{index}, p{index}; cvta.param.u64 %d{index}, %d{index};")
        else:
            declared.append(f".param .{kind} p{index}")
            register = "%d" if kind.endswith("64") else "%r"
            loads.append(f"ld.param.{kind} {register}{index}, [p{index}];")
    memory = f".shared .align 1024 .b8 tile[{shared}];" if shared else ""
    version = "8.8"
    return f"""
.version {version}
.target {target}
.address_size 64
{module}
.visible .entry k({", ".join(declared)}) {directives}
{{
{registers}
    {memory}
    {" ".join(loads)}
{body}
    ret;
}}
"""


def vector(first: int, count: int, letter: str = "r") -> str:
    """``{%r100, %r101, ...}``."""
    return "{" + ", ".join(f"%{letter}{first + n}" for n in range(count)) + "}"


def run(ptx: str, *args: Any, block: Any = 32, grid: Any = 1, **options: Any) -> Report:
    """Launch the entry ``k``."""
    return Program(ptx).launch("k", grid=grid, block=block, args=args, **options)


def launch(body: str, *args: Any, ctas: int = 1, **options: Any) -> Report:
    """Launch a kernel of ``body``, whose parameters are tensor maps or else of 64 bits.

    ``ctas`` of a cluster; other options are those of a kernel or of its launch.
    """
    params = tuple("tensor_map" if isinstance(a, TensorMap | bytes) else "u64" for a in args)
    given = {name: options.pop(name) for name in _OF_A_KERNEL & options.keys()}
    if ctas > 1:
        given["directives"] = f".reqnctapercluster {ctas}, 1, 1 .explicitcluster"
    return run(kernel(body, **{"params": params, **given}), *args, **{"grid": ctas, **options})


def kinds(report: Report) -> list[str]:
    return [finding.kind for finding in report.findings]


def reported(body: str, *args: Any, **options: Any) -> list[str]:
    """The kinds of the findings of a launch."""
    return kinds(launch(body, *args, **options))


def clean(body: str, *args: Any, **options: Any) -> None:
    """A launch that has to leave nothing to report."""
    report = launch(body, *args, **options)
    assert not report.findings, str(report)
