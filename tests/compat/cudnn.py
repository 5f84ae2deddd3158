"""cuDNN's front end ships attention kernels as text; this launches them as its engines do.

Works from a checkout of NVIDIA/cudnn-frontend: FA4GEN_CUDNN_FRONTEND names its folder.
"""

from __future__ import annotations

import os
import re
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator import Program, TensorMap

VARIABLE = "FA4GEN_CUDNN_FRONTEND"
_TILE = 128
_SHARED = {
    ("sm90", 64): 122880,
    ("sm90", 128): 232448,
    ("sm100", 64): 232448,
    ("sm100", 128): 232448,
}


@dataclass(frozen=True)
class Tensors:
    """[batch, heads, rows, depth]; ``top`` and ``total`` [batch, heads, rows] in float32."""

    q: NDArray[Any]
    k: NDArray[Any]
    v: NDArray[Any]
    out: NDArray[Any]
    top: NDArray[np.float32]
    total: NDArray[np.float32]


def checkout() -> Path | None:
    """The folder of the checkout, if one is given and exists."""
    folder = Path(os.environ.get(VARIABLE, ""))
    return folder if (folder / "include/cudnn_frontend/generated/sdpa").is_dir() else None


@cache
def program(folder: Path, arch: str, depth: int) -> Program:
    """The kernel compiled with the flags that the front end gives NVRTC."""
    from fa4gen.toolchain.nvrtc_program import NvrtcProgram, import_nvrtc

    path = f"include/cudnn_frontend/generated/sdpa/{arch}/prefill/full_seqlens"
    text = (folder / path / f"d{depth}_fprop_kernel.h").read_text()
    # long texts are in pieces
    source = "".join(re.findall(r'R"KERNEL\((.*?)\)KERNEL"', text, re.DOTALL))
    flags = "".join(re.findall(r'R"FLAGS\((.*?)\)FLAGS"', text, re.DOTALL))
    # options of ptxas do not affect PTX
    options = [one for one in flags.split() if "ptxas" not in one.lower()]
    compiled = NvrtcProgram(import_nvrtc(), source, "kernel.cu", {})
    compiled.compile(options)
    return Program(compiled.ptx)


def launch(folder: Path, arch: str, tensors: Tensors, *, seed: int, schedule: str) -> Any:
    """Run the kernel as the engine of its architecture launches it. Returns the report."""
    batch, heads, rows, depth = tensors.q.shape
    key_heads, keys = tensors.k.shape[1:3]
    group = heads // key_heads
    about = struct.pack(
        "<8I3H2x", batch, heads, key_heads, key_heads, rows, keys, depth, depth, *[group] * 3
    )
    blackwell = arch == "sm100"
    tile = _TILE if blackwell or depth == 128 else 128
    blocks = -(-rows // (2 * _TILE)) if blackwell else -(-rows // tile)
    maps = [
        TensorMap(array, (1, 1, size, 64), swizzle=128, fill="nan")
        for array, size in (
            (tensors.q, tile), (tensors.k, _TILE), (tensors.v, _TILE),
            (tensors.out, _TILE if blackwell else 16),
        )
    ]  # fmt: skip
    strides = [heads * rows, rows, 1]
    shape = struct.pack("<q12q12q", 3, *[batch, heads, rows], *[0] * 9, *strides, *[0] * 9)
    tail = [
        np.float32(depth**-0.5), np.float32(-np.inf),
        tensors.top, shape, tensors.total, shape, maps[2], maps[3],
    ]  # fmt: skip
    pairs = batch * heads
    if blackwell:
        cached = (50 << 20) // (keys * 2 * depth * 2)
        swizzle = max(1, min(1 << (cached.bit_length() - 1), pairs))
        head: list[Any] = [
            *map(_divisor, (heads, swizzle, swizzle * blocks, max(1, pairs % swizzle))),
            *map(np.int32, (pairs // swizzle, blocks, blocks * pairs)),
        ]
    else:
        head = [
            np.int32(blocks * pairs), *map(_divisor, (heads * blocks, blocks)),
            np.zeros(4, np.int32),
        ]  # fmt: skip
    return program(folder, arch, depth).launch(
        grid=blocks * pairs,
        block=512 if blackwell else 384,
        dynamic_shared=_SHARED[arch, depth],
        args=[about, *head, maps[0], maps[1], *tail],
        seed=seed,
        schedule=schedule,
    )


def _divisor(value: int) -> bytes:
    """What the kernels divide with: the value, a shift, a multiplier for the doubled dividend."""
    if value <= 1:
        return struct.pack("<3I", value, 0, 0x80000000)
    power = 31 + (2 * value - 1).bit_length()
    return struct.pack("<3I", value, power - 32, -(-(1 << power) // (2 * value)))
