"""Small PTX kernels for tests: a body, its parameters, and a launch."""

from __future__ import annotations

from typing import Any

from fa4gen.emulator import Program, Report

REGISTERS = """
    .reg .pred %p<32>;
    .reg .b16 %h<64>;
    .reg .b32 %r<320>;
    .reg .b64 %d<64>;
    .reg .b128 %q<4>;
"""


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
