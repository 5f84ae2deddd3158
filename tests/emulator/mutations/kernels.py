"""The kernels that are mutated: compiling them, launching them, and what they have to compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from ml_dtypes import bfloat16
from numpy.typing import NDArray

from fa4gen.emulator import Limits, NamedRange, NamedThreads, Names, Program, Report, TensorMap
from fa4gen.toolchain.compile import find_compiler
from fa4gen.toolchain.model import Unit

FOLDER: Final = Path(__file__).parent / "cuda"
LIMITS: Final = Limits(steps=3_000_000, idle_steps=50_000)

Data = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel and a small problem for it.

    ``data`` makes inputs and outputs of a seed, ``arguments`` the arguments of a launch from them,
    ``expected`` the right outputs, of which ``out`` may differ by ``tolerance``.
    """

    name: str
    arch: str
    about: str
    threads: int
    shared_bytes: int
    names: Names
    data: Callable[[int], Data]
    arguments: Callable[[Data], list[Any]]
    expected: Callable[[Data], NDArray[Any]]
    tolerance: float
    grid: int = 1
    file: str = ""

    @property
    def entry(self) -> str:
        """The kernel's own name and its file's."""
        return self.file or self.name

    @property
    def source(self) -> str:
        return (FOLDER / f"{self.entry}.cu").read_text()

    def launch(self, program: Program, data: Data, **options: Any) -> Report:
        options = {"limits": LIMITS, "names": self.names, **options}
        return program.launch(
            self.entry, grid=self.grid, block=self.threads, args=self.arguments(data),
            dynamic_shared=self.shared_bytes, **options,
        )  # fmt: skip

    def is_right(self, data: Data) -> bool:
        error = np.abs(data["out"].astype(np.float64) - self.expected(data))
        return bool((error <= self.tolerance).all())


@cache
def compiled(kernel: str, source: str, arch: str) -> str:
    """The PTX of a source, with its lines."""
    headers = {"ptx.cuh": (FOLDER / "ptx.cuh").read_text()}
    return find_compiler("nvrtc").build_ptx(Unit(kernel, source, headers, arch, line_info=True))


def shared(*parts: tuple[str, int, int]) -> tuple[NamedRange, ...]:
    """Consecutive places of shared memory: name, number of slots, bytes of a slot."""
    ranges, at = [], 0
    for name, slots, size in parts:
        ranges.append(NamedRange(name, at, at + slots * size, size if slots > 1 else 0))
        at += slots * size
    return tuple(ranges)


def roles(*parts: tuple[str, int]) -> tuple[NamedThreads, ...]:
    """Roles of consecutive threads: name, number of threads."""
    result, first = [], 0
    for name, threads in parts:
        result.append(NamedThreads(name, first, first + threads))
        first += threads
    return tuple(result)


# ---- matrix products: C (rows, columns) = A (rows, depth) B^T (columns, depth)


def product_data(rows: int, columns: int, depth: int, out: Any = bfloat16) -> Callable[[int], Data]:
    def make(seed: int) -> Data:
        random = np.random.default_rng(seed)
        a = random.standard_normal((rows, depth), np.float32).astype(bfloat16)
        b = random.standard_normal((columns, depth), np.float32).astype(bfloat16)
        return {"a": a, "b": b, "out": np.full((rows, columns), np.nan, out)}

    return make


def product(data: Data) -> NDArray[Any]:
    result: NDArray[Any] = data["a"].astype(np.float64) @ data["b"].astype(np.float64).T
    return result


def tiles(rows: int, b_rows: int, staging: int) -> Callable[[Data], list[Any]]:
    """Arguments of the kernels with TMA stores: a tile's rows, rows of B, rows of a stored box."""

    def make(data: Data) -> list[Any]:
        across = data["b"].shape[0] // 64
        return [
            TensorMap(data["a"], (rows, 64), swizzle=128),
            TensorMap(data["b"], (b_rows, 64), swizzle=128),
            TensorMap(data["out"], (staging, 64)),
            np.int32(across * (data["a"].shape[0] // rows)),
            np.int32(across),
            np.int32(data["a"].shape[1] // 64),
        ]

    return make


def pair_tiles(rows: int) -> Callable[[Data], list[Any]]:
    """Arguments of the kernels of two CTAs, which load half of a tile of B each."""

    def make(data: Data) -> list[Any]:
        return [
            TensorMap(data["a"], (rows, 64), swizzle=128),
            TensorMap(data["b"], (32, 64), swizzle=128),
            data["out"],
            np.int32(data["b"].shape[0] // 64),
            np.int32(data["a"].shape[1] // 64),
            np.int32(data["b"].shape[0]),
        ]

    return make


# ---- attention


def attention(q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], scale: float) -> NDArray[Any]:
    """Softmax attention to base two, in float64; ``scale`` multiplies the scores."""
    scores = scale * (q.astype(np.float64) @ k.astype(np.float64).T)
    weights = np.exp2(scores - scores.max(axis=1, keepdims=True))
    result: NDArray[Any] = weights @ v.astype(np.float64) / weights.sum(axis=1, keepdims=True)
    return result


def attention_data(
    queries: int, keys: int, depth: int, kind: Any, growth: float = 1
) -> Callable[[int], Data]:
    """Random tensors; ``growth`` > 1 makes later keys larger, so that maxima grow."""

    def make(seed: int) -> Data:
        random = np.random.default_rng(seed)

        def tensor(rows: int) -> NDArray[Any]:
            return random.standard_normal((rows, depth), np.float32)

        k = tensor(keys) * np.linspace(1, growth, keys, dtype=np.float32)[:, None]
        return {
            "q": tensor(queries).astype(kind), "k": k.astype(kind), "v": tensor(keys).astype(kind),
            "out": np.full((queries, depth), np.nan, kind),
        }  # fmt: skip

    return make


def generic_arguments(data: Data) -> list[Any]:
    return [data["q"], data["k"], data["v"], data["out"], np.int32(len(data["k"]) // 4)]


ATTENTION_SCALE: Final = np.float32(np.log2(np.e) / np.sqrt(128))


def attention_arguments(data: Data) -> list[Any]:
    loads = [TensorMap(data[name], (128, 64), swizzle=128) for name in "qkv"]
    store = TensorMap(data["out"], (128, 128))
    return [*loads, store, np.int32(len(data["k"]) // 128), ATTENTION_SCALE]


STAGES: Final = ("stage", 3, 24576), ("staging", 2, 8192)
RING: Final = ("full", 3, 8), ("empty", 3, 8)

# the same source for both architectures
GENERIC: Final = [
    Kernel(
        name, arch, "attention by ordinary loads from a ring of bulk copies", 160, 2048,
        Names(
            shared(("stage", 2, 256), ("full", 2, 8), ("empty", 2, 8)),
            roles(("consumer", 128), ("producer", 32)),
        ),
        attention_data(128, 20, 8, np.float32), generic_arguments,
        lambda data: attention(data["q"], data["k"], data["v"], 1), 1e-4, file="generic",
    )
    for name, arch in (("generic_sm90", "sm_90a"), ("generic_sm100", "sm_100a"))
]  # fmt: skip

KERNELS: Final = {
    kernel.name: kernel
    for kernel in (
        Kernel(
            "gemm_sm90", "sm_90a", "matrix product: TMA, wgmma of two warpgroups, TMA stores",
            384, 91136,
            Names(
                shared(*STAGES, *RING),
                roles(("producer", 128), ("consumer 0", 128), ("consumer 1", 128)),
            ),
            product_data(128, 128, 5 * 64), tiles(128, 64, 64), product, 0.25,
        ),
        Kernel(
            "cluster_sm90", "sm_90a", "matrix product of a cluster: multicast, remote arrivals",
            160, 50176,
            Names(
                shared(("stage", 3, 16384), *RING),
                roles(("consumer", 128), ("producer", 32)),
            ),
            product_data(128, 128, 4 * 64, np.float32), pair_tiles(64), product, 1e-3,
            grid=2,
        ),
        *GENERIC,
        Kernel(
            "gemm_sm100", "sm_100a", "matrix product: TMA, tcgen05, two accumulators, TMA stores",
            192, 91136,
            Names(
                shared(
                    ("stage", 3, 24576), ("staging", 1, 16384), *RING, ("done", 2, 8),
                    ("free", 2, 8), ("slot", 1, 4),
                ),
                roles(("epilogue", 128), ("loader", 32), ("issuer", 32)),
            ),
            product_data(128, 192, 3 * 64), tiles(128, 64, 128), product, 0.25,
        ),
        Kernel(
            "pair_sm100", "sm_100a", "matrix product of a pair of CTAs: cta_group::2",
            192, 62464,
            Names(
                shared(
                    ("stage", 3, 20480), *RING, ("done", 1, 8), ("free", 1, 8), ("slot", 1, 4)
                ),
                roles(("epilogue", 128), ("loader", 32), ("issuer", 32)),
            ),
            product_data(256, 128, 4 * 64, np.float32), pair_tiles(128), product, 1e-3,
            grid=2,
        ),
        Kernel(
            "attention_sm100", "sm_100a", "attention as FlashAttention-4 arranges it",
            512, 165888,
            Names(
                shared(
                    ("queries", 2, 32768), ("stage", 3, 32768), ("factor", 2, 512),
                    ("queries_full", 2, 8), *RING, ("scores", 2, 8), ("weights", 2, 8),
                    ("rescaled", 2, 8), ("outputs", 2, 8), ("factor_full", 2, 8),
                    ("factor_empty", 2, 8), ("slot", 1, 4),
                ),
                roles(
                    ("softmax 0", 128), ("softmax 1", 128), ("correction", 128), ("issuer", 32),
                    ("loader", 32), ("idle", 64),
                ),
            ),
            attention_data(256, 3 * 128, 128, bfloat16, growth=12), attention_arguments,
            lambda data: attention(data["q"], data["k"], data["v"], float(ATTENTION_SCALE)), 0.05,
        ),
    )
}  # fmt: skip
