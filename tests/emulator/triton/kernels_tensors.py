"""Triton kernels around tensor descriptors, clusters and dependent launches."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


@triton.jit
def shift(source, target, down, across, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    """Boxes of a tensor of three dimensions, moved; what lies outside is read as 0."""
    at = [tl.program_id(0) * A, tl.program_id(1) * B, tl.program_id(2) * C]
    tile = source.load([at[0], at[1] + down, at[2] + across])
    target.store(at, tile + 1)


@triton.jit
def gather_rows(source, rows, target, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """Rows of a matrix by their numbers, and back to other places."""
    index = tl.load(rows + tl.arange(0, ROWS))
    tile = source.gather(index, 8)
    target.scatter(tile, index ^ 1, 0)


@triton.jit
def meet(target, x, NAME: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """All programs combine a tile into one place, without a register of it coming back."""
    at = tl.arange(0, ROWS)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    tile = tl.load(x + tl.program_id(0) * ROWS * WIDTH + at)
    if NAME == "add":
        target.atomic_add([0, 0], tile)
    elif NAME == "max":
        target.atomic_max([0, 0], tile)
    elif NAME == "min":
        target.atomic_min([0, 0], tile)
    elif NAME == "xor":
        target.atomic_xor([0, 0], tile)
    else:
        target.atomic_or([0, 0], tile)


@triton.jit
def after(x, out, count, BLOCK: tl.constexpr):
    """Waits for the launch before, and lets the next one begin."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    gdc_wait()
    v = tl.load(x + at, at < count)
    gdc_launch_dependents()
    tl.store(out + at, v * v, at < count)
