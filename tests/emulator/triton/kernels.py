"""Triton kernels without matrix products: elementwise, reductions, orders, atomics, random."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice


@triton.jit
def add(left, right, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    total = tl.load(left + at, inside) + tl.load(right + at, inside)
    tl.store(out + at, total, inside)


@triton.jit
def function(x, out, count, NAME: tl.constexpr, BLOCK: tl.constexpr):
    """One function of many, picked when compiling."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    v = tl.load(x + at, inside, other=1.0)
    if NAME == "exp":
        v = tl.exp(v)
    elif NAME == "exp2":
        v = tl.exp2(v)
    elif NAME == "log":
        v = tl.log(v)
    elif NAME == "log2":
        v = tl.log2(v)
    elif NAME == "sin":
        v = tl.sin(v)
    elif NAME == "cos":
        v = tl.cos(v)
    elif NAME == "tanh":
        v = libdevice.tanh(v)
    elif NAME == "erf":
        v = tl.erf(v)
    elif NAME == "sqrt":
        v = tl.sqrt(v)
    elif NAME == "sqrt_rn":
        v = tl.sqrt_rn(v)
    elif NAME == "rsqrt":
        v = tl.rsqrt(v)
    elif NAME == "sigmoid":
        v = tl.sigmoid(v)
    elif NAME == "floor":
        v = tl.floor(v)
    elif NAME == "ceil":
        v = tl.ceil(v)
    elif NAME == "rint":
        v = libdevice.rint(v)
    elif NAME == "expm1":
        v = libdevice.expm1(v)
    elif NAME == "log1p":
        v = libdevice.log1p(v)
    elif NAME == "atan":
        v = libdevice.atan(v)
    elif NAME == "cbrt":
        v = libdevice.cbrt(v)
    elif NAME == "cube":
        v = libdevice.pow(v, v * 0 + 3)
    else:
        tl.static_assert(False)
    tl.store(out + at, v, inside)


@triton.jit
def arithmetic(x, y, out, count, BLOCK: tl.constexpr):
    """Rows of results: quotient, remainder, shifts, logic, least, greatest, absolute."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    a = tl.load(x + at, inside, other=7)
    b = tl.load(y + at, inside, other=3)
    tl.store(out + at, a // b, inside)
    tl.store(out + count + at, a % b, inside)
    tl.store(out + 2 * count + at, (a << 3) ^ (a >> 2), inside)
    tl.store(out + 3 * count + at, (a & b) | ~b, inside)
    tl.store(out + 4 * count + at, tl.minimum(a, b) + 3 * tl.maximum(a, b), inside)
    tl.store(out + 5 * count + at, tl.abs(a) * b - a, inside)


@triton.jit
def high_product(x, y, out, count, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < count
    product = tl.umulhi(tl.load(x + at, inside, other=0), tl.load(y + at, inside, other=0))
    tl.store(out + at, product, inside)


@triton.jit
def convert(x, out, count, BLOCK: tl.constexpr):
    """From the type of ``x`` to that of ``out``."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(out + at, tl.load(x + at, inside).to(out.dtype.element_ty), inside)


@triton.jit
def clamp(x, low, high, out, count, NANS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < count
    v = tl.load(x + at, inside)
    if NANS:
        v = tl.clamp(v, low, high, propagate_nan=tl.PropagateNan.ALL)
    else:
        v = tl.clamp(v, low, high)
    tl.store(out + at, tl.where(v > 0, v * 2 + 1, tl.fma(v, v, -v)), inside)


@triton.jit
def collatz(x, out, count, BLOCK: tl.constexpr):
    """Steps until 1: a loop whose length the data decides, masked lane by lane."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    v = tl.load(x + at, inside, other=1)
    steps = tl.zeros_like(v)
    while tl.max(v) > 1:
        going = v > 1
        after = tl.where(v % 2 == 0, v // 2, 3 * v + 1)
        v = tl.where(going, after, v)
        steps += going.to(tl.int32)
    tl.store(out + at, steps, inside)


@triton.jit
def reduce_rows(
    x, out, where, columns, NAME: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr
):
    """One number per row, and its place where the reduction has one."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = tl.arange(0, BLOCK)
    inside = at[None, :] < columns
    spot = x + row[:, None] * columns + at[None, :]
    if NAME == "argmax":
        value, index = tl.max(
            tl.load(spot, inside, other=-float("inf")), axis=1, return_indices=True
        )
        tl.store(where + row, index)
    elif NAME == "argmin":
        value, index = tl.min(
            tl.load(spot, inside, other=float("inf")), axis=1, return_indices=True
        )
        tl.store(where + row, index)
    elif NAME == "sum":
        value = tl.sum(tl.load(spot, inside, other=0), axis=1)
    elif NAME == "xor":
        value = tl.xor_sum(tl.load(spot, inside, other=0), axis=1)
    else:
        tl.static_assert(False)
    tl.store(out + row, value)


@triton.jit
def _compose(a, b, c, d):
    """y -> a y + b, and then y -> c y + d."""
    return c * a, c * b + d


@triton.jit
def scan(
    x, y, out, NAME: tl.constexpr, BACKWARDS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """Along the rows of a ROWS x BLOCK matrix."""
    at = tl.arange(0, ROWS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    v = tl.load(x + at)
    if NAME == "sum":
        v = tl.cumsum(v, 1, reverse=BACKWARDS)
    elif NAME == "product":
        v = tl.cumprod(v, 1, reverse=BACKWARDS)
    else:
        _, v = tl.associative_scan((v, tl.load(y + at)), 1, _compose, reverse=BACKWARDS)
    tl.store(out + at, v)


@triton.jit
def histogram(x, out, count, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    counts = tl.histogram(tl.load(x + at, inside, other=0), BINS, mask=inside)
    tl.atomic_add(out + tl.arange(0, BINS), counts)


@triton.jit
def sort(x, out, DOWN: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(out + at, tl.sort(tl.load(x + at), dim=1, descending=DOWN))


@triton.jit
def gather(x, index, out, ROWS: tl.constexpr, BLOCK: tl.constexpr, AXIS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(out + at, tl.gather(tl.load(x + at), tl.load(index + at), AXIS))


@triton.jit
def shuffle(x, out, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """A matrix, transposed, its halves interleaved, flipped: layouts go through shared memory."""
    at = tl.arange(0, ROWS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    v = tl.trans(tl.load(x + at))
    a, b = tl.split(tl.reshape(v, (BLOCK, ROWS // 2, 2)))
    v = tl.flip(tl.interleave(b, a), 1)
    to = tl.arange(0, BLOCK)[:, None] * ROWS + tl.arange(0, ROWS)[None, :]
    tl.store(out + to, v)


@triton.jit
def copy_blocks(x, out, rows, columns, HEIGHT: tl.constexpr, WIDTH: tl.constexpr):
    """The transpose through block pointers, which guard the edges themselves."""
    i = tl.program_id(0) * HEIGHT
    j = tl.program_id(1) * WIDTH
    source = tl.make_block_ptr(x, (rows, columns), (columns, 1), (i, j), (HEIGHT, WIDTH), (1, 0))
    target = tl.make_block_ptr(out, (columns, rows), (rows, 1), (j, i), (WIDTH, HEIGHT), (1, 0))
    v = tl.load(source, boundary_check=(0, 1), padding_option="zero")
    tl.store(target, tl.trans(v), boundary_check=(0, 1))


@triton.jit
def atomics(x, sums, counts, greatest, least, bits, count, BLOCK: tl.constexpr):
    """All programs meet in a few words. ``counts`` are int32, ``bits`` uint32."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    v = tl.load(x + at, inside, other=0)
    tl.atomic_add(sums + at % 8, v.to(sums.dtype.element_ty), inside)
    whole = v.to(tl.int32)
    tl.atomic_add(counts + whole % 16, 1, inside)
    tl.atomic_max(greatest + at * 0, v, inside)
    tl.atomic_min(least + at * 0, whole, inside)
    tl.atomic_or(bits + at * 0, 1 << (whole % 32), inside)
    tl.atomic_xor(bits + 1 + at * 0, whole, inside)
    tl.atomic_and(bits + 2 + at * 0, ~(1 << (whole % 32)), inside)


@triton.jit
def locked_sum(x, lock, out, BLOCK: tl.constexpr):
    """Every program adds its block to ``out`` under a lock, with plain loads and stores."""
    at = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * BLOCK + at)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out + at, tl.load(out + at) + v)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def random(out, whole, normal, seed, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(out + at, tl.rand(seed, at), inside)
    tl.store(whole + at, tl.randint(seed, at), inside)
    tl.store(normal + at, tl.randn(seed, at), inside)


@triton.jit
def dropout(x, out, count, keep, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    v = tl.load(x + at, inside)
    tl.store(out + at, tl.where(tl.rand(seed, at) < keep, v / keep, 0.0), inside)


@triton.jit
def softmax(x, out, rows, columns, step, BLOCK: tl.constexpr):
    """Rows of ``step`` elements apart; each program takes every so-manieth row."""
    at = tl.arange(0, BLOCK)
    inside = at < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        v = tl.load(x + row * step + at, inside, other=-float("inf")).to(tl.float32)
        v = tl.exp(v - tl.max(v, 0))
        tl.store(out + row * step + at, v / tl.sum(v, 0), inside)


@triton.jit
def layer_norm(x, out, weight, bias, mean, inverse, columns, epsilon, BLOCK: tl.constexpr):
    """A row in blocks: two passes for the moments, one for the result."""
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, columns, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        total += tl.load(x + row * columns + at, at < columns, other=0).to(tl.float32)
    centre = tl.sum(total, 0) / columns
    for begin in range(0, columns, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        v = tl.load(x + row * columns + at, at < columns, other=0).to(tl.float32)
        v = tl.where(at < columns, v - centre, 0.0)
        squares += v * v
    scale = 1 / tl.sqrt(tl.sum(squares, 0) / columns + epsilon)
    tl.store(mean + row, centre)
    tl.store(inverse + row, scale)
    for begin in range(0, columns, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        inside = at < columns
        v = tl.load(x + row * columns + at, inside, other=0).to(tl.float32)
        w = tl.load(weight + at, inside)
        b = tl.load(bias + at, inside)
        tl.store(out + row * columns + at, (v - centre) * scale * w + b, inside)


@triton.jit
def layer_norm_backward(
    dx, dout, dweight, dbias, x, weight, mean, inverse, locks, used, columns,
    GROUPS: tl.constexpr, BLOCK: tl.constexpr, ORDERED: tl.constexpr,
):  # fmt: skip
    """Gradients of a row; those of weight and bias are summed per group of rows, under a lock."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    v = tl.load(x + row * columns + at, inside, other=0).to(tl.float32)
    g = tl.load(dout + row * columns + at, inside, other=0).to(tl.float32)
    w = tl.load(weight + at, inside, other=0).to(tl.float32)
    scale = tl.load(inverse + row)
    unit = tl.where(inside, (v - tl.load(mean + row)) * scale, 0.0)
    scaled = w * g
    along = tl.sum(unit * scaled, 0) / columns
    level = tl.sum(scaled, 0) / columns
    tl.store(dx + row * columns + at, (scaled - (unit * along + level)) * scale, inside)
    group = row % GROUPS
    while tl.atomic_cas(locks + group, 0, 1) == 1:
        pass
    first = tl.load(used + group) == 0
    if ORDERED:
        tl.debug_barrier()  # every thread reads, one writes
    to = group * columns + at
    dw = g * unit
    db = g
    if first:
        tl.store(used + group, 1)
    else:
        dw += tl.load(dweight + to, inside, other=0)
        db += tl.load(dbias + to, inside, other=0)
    tl.store(dweight + to, dw, inside)
    tl.store(dbias + to, db, inside)
    tl.debug_barrier()
    tl.atomic_xchg(locks + group, 0)
