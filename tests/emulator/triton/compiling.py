"""Triton kernels as PTX, and their launches in the emulator as Triton's own launcher makes them.

Compiling needs no GPU: the target is named, and the pipeline ends with the PTX.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import triton
from numpy.typing import NDArray
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental.gluon._runtime import GluonASTSource, GluonJITFunction

from fa4gen.emulator import Program, Report, Severity, TensorMap

FOR_REVIEW = frozenset(
    {"missing-init-fence", "missing-tcgen05-fence", "missing-proxy-fence", "proxy-war"}
)
"""Findings that Triton's kernels have everywhere, for review or against the letter of the ISA: CTAs
that use their own barriers after bar.sync alone, no tcgen05.fence, no fence.proxy.async between
cp.async and wgmma, and between reads and later copies (that only where the values read have been
needed before)."""
SCRATCH = ("missing-proxy-fence",)
"""Where Triton makes tensor maps or keeps the address of tensor memory, tensor copies write
later, without a fence.proxy.async."""
ROLES = ("partial-warp", "barrier-misuse", "early-exit")
"""With roles for warps, those of one warpgroup execute setmaxnreg in a copy each, some mbarriers
are initialised where others are, a parity may be -1, and nobody waits for the last commits that
release slots."""
_SWIZZLE_SPANS = (0, 32, 64, 128)
_TYPES = {
    np.dtype(bool): "i1",
    np.dtype(np.int8): "i8",
    np.dtype(np.uint8): "u8",
    np.dtype(np.int16): "i16",
    np.dtype(np.uint16): "u16",
    np.dtype(np.int32): "i32",
    np.dtype(np.uint32): "u32",
    np.dtype(np.int64): "i64",
    np.dtype(np.uint64): "u64",
    np.dtype(np.float16): "fp16",
    np.dtype(ml_dtypes.bfloat16): "bf16",
    np.dtype(np.float32): "fp32",
    np.dtype(np.float64): "fp64",
    np.dtype(ml_dtypes.float8_e4m3fn): "fp8e4nv",
    np.dtype(ml_dtypes.float8_e5m2): "fp8e5",
}


@dataclass(frozen=True)
class Descriptor:
    """A tensor descriptor made on the host: an array, and the tile that a load or store moves.

    ``layout`` is that of the tile in shared memory, which Gluon asks for.
    """

    array: NDArray[Any]
    tile: tuple[int, ...]
    layout: Any = None

    @property
    def kind(self) -> str:
        sizes = ",".join(map(str, self.tile))
        layout = "" if self.layout is None else f",{self.layout!r}"
        return f"tensordesc<{_TYPES[self.array.dtype]}[{sizes}]{layout}>"


@dataclass(frozen=True)
class Compiled:
    """The data that a launch needs of a compiled kernel; sizes in bytes."""

    ptx: str
    entry: str
    warps: int
    ctas: int
    shared: int
    scratch: int
    maps: tuple[tuple[tuple[int, ...], int], ...]
    """Box and swizzle span of each descriptor from the host."""


@contextmanager
def _until_ptx() -> Iterator[None]:
    """Leave out ptxas, whose result nobody needs."""

    def leave_out(backend: Any, stages: Any, *rest: Any) -> None:
        stages["cubin"] = lambda ptx, metadata: b"left out"

    with knobs.runtime.scope():
        knobs.runtime.add_stages_inspection_hook = leave_out
        yield


def compile_kernel(
    kernel: Any, arch: int, args: Sequence[Any], constants: dict[str, Any], options: dict[str, Any]
) -> Compiled:
    """Compile for ``arch`` (90, 100), specialised to ``args`` as Triton would at a launch."""
    free = [name for name in kernel.arg_names if name not in constants]
    assert len(free) == len(args), f"{kernel.__name__} takes {free}"
    signature, attributes, constexprs = {}, {}, dict(constants)
    values = dict(zip(free, args, strict=True))
    for index, name in enumerate(kernel.arg_names):
        if name in constants:
            signature[name] = "constexpr"
            continue
        value = values[name]
        signature[name] = _kind(value)
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if isinstance(value, np.ndarray) or (whole and value % 16 == 0):
            attributes[(index,)] = [["tt.divisibility", 16]]
        if whole and value == 1:
            signature[name] = "constexpr"
            constexprs[name] = 1
    language = GluonASTSource if isinstance(kernel, GluonJITFunction) else ASTSource
    source = language(fn=kernel, signature=signature, constexprs=constexprs, attrs=attributes)
    with _until_ptx():
        built = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
    metadata = built.metadata
    maps = getattr(metadata, "tensordesc_meta", None) or ()
    return Compiled(
        built.asm["ptx"],
        metadata.name,
        metadata.num_warps,
        metadata.num_ctas,
        metadata.shared,
        metadata.global_scratch_size,
        tuple((tuple(one["block_size"]), _SWIZZLE_SPANS[one["swizzle"]]) for one in maps),
    )


def _kind(value: Any) -> str:
    if isinstance(value, Descriptor):
        return value.kind
    if isinstance(value, np.ndarray):
        return "*" + _TYPES[value.dtype]
    if isinstance(value, np.generic):
        return _TYPES[value.dtype]
    if isinstance(value, float):
        return "fp32"
    return "i32" if -(2**31) <= value < 2**31 else "i64"


@cache
def _program(ptx: str) -> Program:
    return Program(ptx)


def _arguments(compiled: Compiled, args: Sequence[Any], ctas: int) -> list[Any]:
    """The parameters of the entry: a descriptor also hands over its sizes and strides."""
    maps = iter(compiled.maps)
    out: list[Any] = []
    for value in args:
        if isinstance(value, Descriptor):
            array = value.array
            box, span = next(maps)
            out.append(TensorMap(array, box, swizzle=span))
            out.extend(np.int32(size) for size in array.shape)
            out.extend(np.int64(step // array.itemsize) for step in array.strides)
        elif isinstance(value, (np.ndarray, np.generic)):
            out.append(value)
        elif isinstance(value, float):
            out.append(np.float32(value))
        elif value != 1:  # a 1 is compiled in
            out.append(np.int32(value) if -(2**31) <= value < 2**31 else np.int64(value))
    out.append(np.zeros(compiled.scratch * ctas, np.uint8) if compiled.scratch else None)
    out.append(None)
    return out


def launch(
    kernel: Any,
    arch: int,
    grid: int | tuple[int, ...],
    args: Sequence[Any],
    *,
    warps: int = 4,
    stages: int = 3,
    clusters: int = 1,
    seed: int = 0,
    schedule: str = "uniform",
    known: Collection[str] = (),
    checks: bool = True,
    **constants: Any,
) -> Report:
    """Compile and emulate with all checks, or none.

    Nothing may be found but what is for review in all of Triton's code, and the kinds ``known``.
    """
    options = {"num_warps": warps, "num_stages": stages, "num_ctas": clusters}
    compiled = compile_kernel(kernel, arch, args, constants, options)
    sizes = (grid, 1, 1) if isinstance(grid, int) else (*grid, 1, 1)[:3]
    sizes = (sizes[0] * compiled.ctas, *sizes[1:])
    report = _program(compiled.ptx).launch(
        compiled.entry,
        grid=sizes,
        block=32 * compiled.warps,
        cluster=compiled.ctas,
        args=_arguments(compiled, args, int(np.prod(sizes))),
        dynamic_shared=compiled.shared,
        seed=seed,
        schedule=schedule,
        checks=checks,
    )
    wrong = [
        finding
        for finding in report.findings
        if finding.kind not in known
        and not (finding.kind in FOR_REVIEW and finding.severity is not Severity.ERROR)
    ]
    assert wrong == [], "\n".join(map(str, wrong))
    return report
