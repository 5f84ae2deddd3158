"""DeepGEMM's kernels for Blackwell, compiled and launched as its host code does.

Works from checkouts of deepseek-ai/DeepGEMM and of NVIDIA/cutlass: FA4GEN_DEEPGEMM and
FA4GEN_CUTLASS name their folders. Template arguments, stages and tensor maps are what DeepGEMM
takes for these tiles; the device has four SMs, so that a CTA has several tiles and rings wrap.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator import Program, Report, TensorMap

VARIABLES = ("FA4GEN_DEEPGEMM", "FA4GEN_CUTLASS")
Array = NDArray[Any]
_PARTS = ("deep_gemm/include/deep_gemm", "include/cutlass")
_PROCESSORS = 4
_SHARED = 232448
_MOST_STAGES = 32
_TILE = 128
_SPAN = 128
_TF32 = 11  # CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
_THREADS = 256
_SCALES_A_WORD = 4


@dataclass(frozen=True)
class Checkouts:
    """The folders with the headers of DeepGEMM and of CUTLASS, and the compiler."""

    includes: tuple[Path, ...]
    nvcc: str

    @classmethod
    def named(cls, nvcc: str) -> Checkouts:
        """Those that the variables name."""
        return cls(tuple(place.parent for place in _places()), nvcc)


@dataclass(frozen=True)
class Kernel:
    """A template of DeepGEMM, the header that has it, and its arguments."""

    header: str
    name: str
    arguments: tuple[object, ...]


def missing() -> list[str]:
    """The variables that name no checkout."""
    return [one for one, place in zip(VARIABLES, _places(), strict=True) if not place.is_dir()]


def _places() -> list[Path]:
    return [
        Path(os.environ.get(one, "")) / part for one, part in zip(VARIABLES, _PARTS, strict=True)
    ]


@cache
def program(tools: Checkouts, kernel: Kernel) -> Program:
    """The kernel for ``sm_100a``, by nvcc with DeepGEMM's own options."""
    arguments = ", ".join(map(_word, kernel.arguments))
    text = (
        f"#include <deep_gemm/impls/{kernel.header}.cuh>\n"
        "using namespace deep_gemm;\n"
        f"void *kernel = reinterpret_cast<void *>(&{kernel.name}<{arguments}>);\n"
    )
    with TemporaryDirectory() as folder:
        source, ptx = (Path(folder) / name for name in ("kernel.cu", "kernel.ptx"))
        source.write_text(text)
        done = subprocess.run(
            [
                tools.nvcc, "--ptx", "-arch=compute_100a", "-std=c++20", "-O3",
                "--expt-relaxed-constexpr", "--expt-extended-lambda",
                "--diag-suppress=39,161,174,177,186,940",
                *(f"-I{place}" for place in tools.includes), source, "-o", ptx,
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return Program(ptx.read_text())


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Product:
    """D = A B of K-major operands, A [m, k], B [n, k]; fp8 ones with a scale for a group of k.

    pairs    two CTAs share the columns of B
    columns  of a tile, whose rows are 128
    groups   how many elements of k a scale of A, of B is for; none where they are bf16
    """

    pairs: bool
    columns: int
    groups: tuple[int, int] | None = None

    def launch(
        self, tools: Checkouts, operands: Sequence[Array], out: Array, *, schedule: str
    ) -> Report:
        """``operands``: A and B, and for fp8 the powers of two of both, [rows, groups of k]."""
        (m, k), n = operands[0].shape, len(operands[1])
        size = operands[0].itemsize
        ctas = 1 + self.pairs
        depth = _SPAN // size
        columns = self.columns // ctas
        words = 0 if self.groups is None else _aligned(_TILE) + _aligned(self.columns)
        stage = (_TILE + columns) * depth * size + 4 * words
        extra = 2 * _TILE * _SPAN + 8 * (3 * _MOST_STAGES + 5) + 4
        stages = min((_SHARED - extra) // stage, _MOST_STAGES)
        maps = [
            _map(operands[0], (_TILE, depth)),
            _map(operands[1], (columns, depth)),
            *(
                TensorMap(packed, (1, rows))
                for packed, rows in zip(
                    map(_packed, operands[2:]), (_TILE, self.columns), strict=False
                )
            ),
            _map(out, (_TILE, _SPAN // out.itemsize)),
        ]
        return program(tools, self._kernel(n, k, depth, stages)).launch(
            grid=_PROCESSORS,
            block=_THREADS,
            cluster=ctas,
            dynamic_shared=extra + stages * stage,
            args=[np.uint64(0), *map(np.uint32, (m, n, k)), *maps],
            outputs=[out],
            schedule=schedule,
        )

    def _kernel(self, n: int, k: int, depth: int, stages: int) -> Kernel:
        major = ("cute::UMMA::Major::K",) * 2
        sizes = (0, n, k, _TILE, self.columns, depth, 1, *(_SPAN,) * 3, stages, *(128,) * 2)
        place = (1 + self.pairs, False, _PROCESSORS)
        plain = ("GemmType::Normal", False)
        bf16, fp8 = "cutlass::bfloat16_t", "cutlass::float_e4m3_t"
        if self.groups is None:
            return Kernel(
                "sm100_bf16_gemm",
                "sm100_bf16_gemm_impl",
                (*major, *sizes, *place, _TILE, False, False, *plain, bf16, 100),
            )
        return Kernel(
            "sm100_fp8_fp4_gemm_1d1d",
            "sm100_fp8_fp4_gemm_1d1d_impl",
            (
                *major, *self.groups, _TILE, *sizes, *place, False, False, *plain, fp8, fp8, bf16,
                "epilogue::transform::EpilogueIdentity",
            ),
        )  # fmt: skip


def batch_summed(
    tools: Checkouts, a: Array, b: Array, out: Array, *, split: int, schedule: str
) -> Report:
    """Add the sum over s of A[s] B[s] to ``out``; A [s, m, k], B [s, n, k] in bf16.

    A CTA takes ``split`` blocks of 64 of all s * k, and adds its part to the output.
    """
    (batch, m, k), n = a.shape, b.shape[1]
    depth, stages = 64, 4
    blocks = -(-m // _TILE) * -(-n // _TILE)
    kernel = Kernel(
        "sm100_bmk_bnk_mn",
        "sm100_bmn_bnk_mn_gemm_impl",
        (m, n, k, _TILE, _TILE, depth, split, _SPAN, _SPAN, stages, 128),
    )
    extra = 2 * _TILE * _SPAN + 8 * (3 * stages + 5) + 4
    flat = (one.reshape(-1, k) for one in (a, b))
    return program(tools, kernel).launch(
        grid=blocks * -(-batch * (k // depth) // split),
        block=128,
        dynamic_shared=extra + stages * 2 * _TILE * _SPAN,
        args=[
            np.uint32(batch),
            *(_map(one, (_TILE, depth)) for one in flat),
            _map(out, (_TILE, _SPAN // 4)),
        ],
        outputs=[out],
        schedule=schedule,
    )


def added_in_pairs(tools: Checkouts, a: Array, b: Array, out: Array, *, schedule: str) -> Report:
    """Add A B to the float32 ``out``; A [m, k], B [n, k] in bf16, both K-major.

    Two CTAs share the rows of A, and B is the left operand of their products.
    """
    (m, k), n = a.shape, len(b)
    rows, depth, stored = 64, 64, 16
    stage = (rows // 2 + _TILE) * _SPAN
    extra = 2 * stored * _TILE * out.itemsize + 8 * (3 * _MOST_STAGES + 5) + 4
    stages = (_SHARED - extra) // stage
    kernel = Kernel(
        "sm100_bf16_gemm",
        "sm100_bf16_gemm_impl",
        (
            *("cute::UMMA::Major::K",) * 2, 0, n, k, rows, _TILE, depth, 1, *(_SPAN,) * 3, stages,
            *(128,) * 2, 2, True, _PROCESSORS, rows, True, False, "GemmType::Normal", True, "float",
            100,
        ),
    )  # fmt: skip
    maps = (_map(a, (rows // 2, depth)), _map(b, (_TILE, depth)), _map(out, (stored, _SPAN // 4)))
    return program(tools, kernel).launch(
        grid=_PROCESSORS,
        block=_THREADS,
        cluster=2,
        dynamic_shared=extra + stages * stage,
        args=[np.uint64(0), *map(np.uint32, (m, n, k)), *maps],
        outputs=[out],
        schedule=schedule,
    )


def before_normalisation(
    tools: Checkouts, a: Array, b: Array, out: Array, squares: Array, *, schedule: str
) -> Report:
    """A B in tf32 and each row's sum of squares of A, both over parts of k; A is bf16, B float32.

    A [m, k], B [n, k], out [parts, m, n], squares [parts, m].
    """
    (m, k), n = a.shape, len(b)
    rows, depth, stages = 64, 64, 12
    span = min(4 * n, _SPAN)
    kernel = Kernel(
        "sm100_tf32_hc_prenorm_gemm",
        "sm100_tf32_hc_prenorm_gemm_impl",
        (n, k, rows, n, depth, len(out), span, stages, 128, 128),
    )
    right = _map(b, (n, _SPAN // 4))
    right.element = _TF32
    extra = rows * span + 8 * (4 * stages + 1) + 4
    return program(tools, kernel).launch(
        grid=len(out) * -(-m // rows),
        block=_THREADS,
        dynamic_shared=extra + stages * depth * (2 * rows + 4 * n),
        args=[
            np.uint32(m),
            _map(a, (rows, depth)),
            right,
            TensorMap(out, (1, rows, span // 4), swizzle=span),
            squares,
        ],
        outputs=[out, squares],
        schedule=schedule,
    )


def _map(array: Array, box: tuple[int, ...]) -> TensorMap:
    return TensorMap(array, box, swizzle=_SPAN)


def _aligned(rows: int) -> int:
    return -(-rows // 128) * 128


def _packed(powers: Array) -> Array:
    """Exponents [rows, groups] as the kernel reads them: four groups a word, [words, rows]."""
    biased = (powers + 127).astype(np.uint8)
    missing_groups = -powers.shape[1] % _SCALES_A_WORD
    padded = np.pad(biased, ((0, 0), (0, missing_groups)))
    return np.ascontiguousarray(padded.view(np.uint32).T)


def scaled(values: Array, powers: Array, group: int) -> NDArray[np.float64]:
    """What fp8 values with a power of two for each ``group`` of k stand for."""
    wide = values.view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    return wide * np.repeat(2.0**powers, group, axis=1)[:, : values.shape[1]]
