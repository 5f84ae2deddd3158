"""Triton kernels around tl.dot: products through pointers, descriptors and loops of many kinds."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def product(
    a, b, c, rows, columns, depth, a_step, b_step, c_step,
    TRANSPOSED: tl.constexpr, PRECISION: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """c = a b through pointers, masked at every edge; ``b`` may be stored transposed."""
    i = tl.program_id(0) * HEIGHT + tl.arange(0, HEIGHT)
    j = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    k = tl.arange(0, DEPTH)
    total = tl.zeros((HEIGHT, WIDTH), tl.int32 if a.dtype.element_ty == tl.int8 else tl.float32)
    for begin in range(0, depth, DEPTH):
        at = begin + k
        left = tl.load(
            a + i[:, None] * a_step + at[None, :],
            (i[:, None] < rows) & (at[None, :] < depth), other=0.0,
        )  # fmt: skip
        if TRANSPOSED:
            right = tl.load(
                b + at[:, None] + j[None, :] * b_step,
                (at[:, None] < depth) & (j[None, :] < columns), other=0.0,
            )  # fmt: skip
        else:
            right = tl.load(
                b + at[:, None] * b_step + j[None, :],
                (at[:, None] < depth) & (j[None, :] < columns), other=0.0,
            )  # fmt: skip
        total = tl.dot(left, right, total, input_precision=PRECISION, out_dtype=total.dtype)
    tl.store(
        c + i[:, None] * c_step + j[None, :], total.to(c.dtype.element_ty),
        (i[:, None] < rows) & (j[None, :] < columns),
    )  # fmt: skip


@triton.jit
def product_described(
    a, b, c, depth, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, DEPTH: tl.constexpr
):
    """c = a bᵀ with descriptors from the host."""
    i = tl.program_id(0) * HEIGHT
    j = tl.program_id(1) * WIDTH
    total = tl.zeros((HEIGHT, WIDTH), tl.float32)
    for k in range(0, depth, DEPTH):
        total = tl.dot(a.load([i, k]), b.load([j, k]).T, total)
    c.store([i, j], total.to(c.dtype))


@triton.jit
def product_persistent(
    a, b, c, rows, columns, depth,
    SPECIALISED: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """c = a bᵀ with descriptors made on the device; programs take one tile after the other."""
    a_tiles = tl.make_tensor_descriptor(a, [rows, depth], [depth, 1], [HEIGHT, DEPTH])
    b_tiles = tl.make_tensor_descriptor(b, [columns, depth], [depth, 1], [WIDTH, DEPTH])
    c_tiles = tl.make_tensor_descriptor(c, [rows, columns], [columns, 1], [HEIGHT, WIDTH])
    across = tl.cdiv(columns, WIDTH)
    tiles = tl.cdiv(rows, HEIGHT) * across
    for tile in tl.range(
        tl.program_id(0), tiles, tl.num_programs(0), flatten=True, warp_specialize=SPECIALISED
    ):
        i = tile // across * HEIGHT
        j = tile % across * WIDTH
        total = tl.zeros((HEIGHT, WIDTH), tl.float32)
        for k in range(0, depth, DEPTH):
            total = tl.dot(a_tiles.load([i, k]), b_tiles.load([j, k]).T, total)
        c_tiles.store([i, j], total.to(c.dtype.element_ty))


@triton.jit
def product_split(
    a, b, c, rows, columns, depth, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, DEPTH: tl.constexpr
):
    """c += a b, the depth dealt out to programs that add to ``c`` atomically."""
    i = tl.program_id(0) * HEIGHT + tl.arange(0, HEIGHT)
    j = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    total = tl.zeros((HEIGHT, WIDTH), tl.float32)
    for begin in range(tl.program_id(2) * DEPTH, depth, tl.num_programs(2) * DEPTH):
        k = begin + tl.arange(0, DEPTH)
        left = tl.load(
            a + i[:, None] * depth + k[None, :],
            (i[:, None] < rows) & (k[None, :] < depth), other=0.0,
        )  # fmt: skip
        right = tl.load(
            b + k[:, None] * columns + j[None, :],
            (k[:, None] < depth) & (j[None, :] < columns), other=0.0,
        )  # fmt: skip
        total = tl.dot(left, right, total)
    inside = (i[:, None] < rows) & (j[None, :] < columns)
    tl.atomic_add(c + i[:, None] * columns + j[None, :], total, inside)


@triton.jit
def product_scaled(
    a, a_scale, b, b_scale, c, A_KIND: tl.constexpr, B_KIND: tl.constexpr, A_PACK: tl.constexpr,
    B_PACK: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """One tile of c = a bᵀ in block-scaled formats: a scale per 32 elements along the depth."""
    i = tl.arange(0, HEIGHT)
    j = tl.arange(0, WIDTH)
    ka = tl.arange(0, DEPTH // A_PACK)
    kb = tl.arange(0, DEPTH // B_PACK)
    group = tl.arange(0, DEPTH // 32)
    left = tl.load(a + i[:, None] * (DEPTH // A_PACK) + ka[None, :])
    right = tl.load(b + j[:, None] * (DEPTH // B_PACK) + kb[None, :])
    left_scale = tl.load(a_scale + i[:, None] * (DEPTH // 32) + group[None, :])
    right_scale = tl.load(b_scale + j[:, None] * (DEPTH // 32) + group[None, :])
    total = tl.dot_scaled(left, left_scale, A_KIND, right.T, right_scale, B_KIND)
    tl.store(c + i[:, None] * WIDTH + j[None, :], total)


@triton.jit
def attention(
    query, key, value, out, lse, query_rows, key_rows, scale,
    CAUSAL: tl.constexpr, D: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Attention of one head of a [heads, rows, D] tensor per program_id(1); online softmax."""
    head = tl.program_id(1)
    begin = tl.program_id(0) * HEIGHT
    i = begin + tl.arange(0, HEIGHT)
    d = tl.arange(0, D)
    q = tl.load(
        query + head * query_rows * D + i[:, None] * D + d[None, :],
        i[:, None] < query_rows,
        other=0.0,
    )
    top = tl.full((HEIGHT,), -float("inf"), tl.float32)
    below = tl.zeros((HEIGHT,), tl.float32)
    total = tl.zeros((HEIGHT, D), tl.float32)
    factor = scale * 1.4426950408889634
    end = key_rows
    if CAUSAL:
        end = tl.minimum(key_rows, begin + HEIGHT)
    for first in range(0, end, WIDTH):
        j = first + tl.arange(0, WIDTH)
        spot = head * key_rows * D + j[:, None] * D + d[None, :]
        k = tl.load(key + spot, j[:, None] < key_rows, other=0.0)
        score = tl.dot(q, k.T) * factor
        seen = j[None, :] < key_rows
        if CAUSAL:
            seen = seen & (j[None, :] <= i[:, None])
        score = tl.where(seen, score, -float("inf"))
        now = tl.maximum(top, tl.max(score, 1))
        weight = tl.exp2(score - now[:, None])
        shrink = tl.exp2(top - now)
        v = tl.load(value + spot, j[:, None] < key_rows, other=0.0)
        below = below * shrink + tl.sum(weight, 1)
        total = tl.dot(weight.to(v.dtype), v, total * shrink[:, None])
        top = now
    there = i < query_rows
    tl.store(lse + head * query_rows + i, top * 0.6931471805599453 + tl.log(below), there)
    tl.store(
        out + head * query_rows * D + i[:, None] * D + d[None, :],
        (total / below[:, None]).to(out.dtype.element_ty), there[:, None],
    )  # fmt: skip


@triton.jit
def attention_described(
    query, key, value, out, key_rows, scale, SPECIALISED: tl.constexpr, D: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Attention of one head, whole tiles, through descriptors; roles for warps if SPECIALISED."""
    begin = tl.program_id(0) * HEIGHT
    q = query.load([begin, 0])
    top = tl.full((HEIGHT,), -float("inf"), tl.float32)
    below = tl.zeros((HEIGHT,), tl.float32)
    total = tl.zeros((HEIGHT, D), tl.float32)
    factor = scale * 1.4426950408889634
    for first in tl.range(0, key_rows, WIDTH, warp_specialize=SPECIALISED):
        score = tl.dot(q, key.load([first, 0]).T) * factor
        now = tl.maximum(top, tl.max(score, 1))
        weight = tl.exp2(score - now[:, None])
        shrink = tl.exp2(top - now)
        total = total * shrink[:, None]
        v = value.load([first, 0])
        total = tl.dot(weight.to(v.dtype), v, total)
        below = below * shrink + tl.sum(weight, 1)
        top = now
    out.store([begin, 0], (total / below[:, None]).to(out.dtype))
