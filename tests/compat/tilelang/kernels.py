"""Kernels in TileLang's language, as its users write them; sizes are fixed when compiling.

Without ``from __future__ import annotations``: TileLang reads the annotations of parameters.
"""

from collections.abc import Callable
from typing import Any

import tilelang.language as T


def product(*, m: int, n: int, k: int, tile: tuple[int, int, int], stages: int) -> Any:
    """C [m, n] of A [m, k] and B [n, k]; TileLang gives the copies a warpgroup of their own."""
    rows, columns, depth = tile

    @T.prim_func
    def main(
        A: T.Tensor((m, k), "bfloat16"),
        B: T.Tensor((n, k), "bfloat16"),
        C: T.Tensor((m, n), "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(n, columns), T.ceildiv(m, rows), threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "bfloat16")
            b = T.alloc_shared((columns, depth), "bfloat16")
            total = T.alloc_fragment((rows, columns), "float32")
            T.clear(total)
            for step in T.Pipelined(T.ceildiv(k, depth), num_stages=stages):
                T.copy(A[by * rows, step * depth], a)
                T.copy(B[bx * columns, step * depth], b)
                T.gemm(a, b, total, transpose_B=True)
            T.copy(total, C[by * rows, bx * columns])

    return main


def tensor_product(*, m: int, n: int, k: int, tile: tuple[int, int, int], stages: int) -> Any:
    """The product with its sums in tensor memory (Blackwell)."""
    rows, columns, depth = tile

    @T.prim_func
    def main(
        A: T.Tensor((m, k), "bfloat16"),
        B: T.Tensor((n, k), "bfloat16"),
        C: T.Tensor((m, n), "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(n, columns), T.ceildiv(m, rows), threads=128) as (bx, by):
            a = T.alloc_shared((rows, depth), "bfloat16")
            b = T.alloc_shared((columns, depth), "bfloat16")
            sums = T.alloc_tmem((rows, columns), "float32")
            done = T.alloc_barrier(1)
            loaded = T.alloc_fragment((rows, columns), "float32")
            for step in T.Pipelined(T.ceildiv(k, depth), num_stages=stages):
                T.copy(A[by * rows, step * depth], a)
                T.copy(B[bx * columns, step * depth], b)
                T.gemm(a, b, sums, transpose_B=True, clear_accum=step == 0, mbar=done)
            T.copy(sums, loaded)
            T.copy(loaded, C[by * rows, bx * columns])

    return main


def attention(*, rows: int, keys: int, depth: int, tile: tuple[int, int], stages: int) -> Any:
    """OUT [rows, heads, depth] of Q, K, V with two heads, and the log-sum-exp; no mask."""
    height, width = tile
    heads = 2
    scale = depth**-0.5 * 1.44269504
    rows_apart = T.GemmWarpPolicy.FullRow

    @T.prim_func
    def main(
        Q: T.Tensor((rows, heads, depth), "bfloat16"),
        K: T.Tensor((keys, heads, depth), "bfloat16"),
        V: T.Tensor((keys, heads, depth), "bfloat16"),
        OUT: T.Tensor((rows, heads, depth), "bfloat16"),
        SUMS: T.Tensor((heads, rows), "float32"),
    ):
        with T.Kernel(T.ceildiv(rows, height), heads, threads=128) as (bx, by):
            q = T.alloc_shared((height, depth), "bfloat16")
            k = T.alloc_shared((width, depth), "bfloat16")
            v = T.alloc_shared((width, depth), "bfloat16")
            scores = T.alloc_fragment((height, width), "float32")
            weights = T.alloc_fragment((height, width), "bfloat16")
            out = T.alloc_fragment((height, depth), "float32")
            top = T.alloc_fragment((height,), "float32")
            before = T.alloc_fragment((height,), "float32")
            factor = T.alloc_fragment((height,), "float32")
            part = T.alloc_fragment((height,), "float32")
            total = T.alloc_fragment((height,), "float32")
            T.copy(Q[bx * height : (bx + 1) * height, by, :], q)
            T.fill(out, 0)
            T.fill(total, 0)
            T.fill(top, -T.infinity("float32"))
            for block in T.Pipelined(keys // width, num_stages=stages):
                T.copy(K[block * width : (block + 1) * width, by, :], k)
                T.clear(scores)
                T.gemm(q, k, scores, transpose_B=True, policy=rows_apart)
                T.copy(top, before)
                T.reduce_max(scores, top, dim=1, clear=False)
                for i in T.Parallel(height):
                    factor[i] = T.exp2(before[i] * scale - top[i] * scale)
                for i, j in T.Parallel(height, width):
                    scores[i, j] = T.exp2(scores[i, j] * scale - top[i] * scale)
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(height):
                    total[i] = total[i] * factor[i] + part[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(height, depth):
                    out[i, j] *= factor[i]
                T.copy(V[block * width : (block + 1) * width, by, :], v)
                T.gemm(weights, v, out, policy=rows_apart)
            for i, j in T.Parallel(height, depth):
                out[i, j] /= total[i]
            T.copy(out, OUT[bx * height : (bx + 1) * height, by, :])
            for i in T.Parallel(height):
                SUMS[by, bx * height + i] = (T.log2(total[i]) + top[i] * scale) / 1.44269504

    return main


def scaled_product(*, m: int, n: int, k: int, tile: tuple[int, int], stages: int) -> Any:
    """C [m, n] of A [m, k] and B [n, k] in mxfp8 (Blackwell); a stage is 128 of k.

    A word of scales is that of four blocks of a row; the words of 128 of k go together.
    """
    rows, columns = tile
    depth, kind = 128, "float8_e4m3fn"

    @T.prim_func
    def main(
        A: T.Tensor((m, k), kind),
        B: T.Tensor((n, k), kind),
        SCALE_A: T.Tensor((k // depth * m,), "uint32"),
        SCALE_B: T.Tensor((k // depth * n,), "uint32"),
        C: T.Tensor((m, n), "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(n, columns), T.ceildiv(m, rows), threads=128) as (bx, by):
            a = T.alloc_shared((stages, rows, depth), kind)
            b = T.alloc_shared((stages, columns, depth), kind)
            words_a = T.alloc_shared((stages, rows), "uint32")
            words_b = T.alloc_shared((stages, columns), "uint32")
            sums = T.alloc_tmem((rows, columns), "float32")
            scales_a = T.alloc_tmem((rows, rows // 32), "uint32")
            scales_b = T.alloc_tmem((rows, columns // 32), "uint32")
            loaded = T.alloc_barrier([32] * stages)
            turned = T.alloc_barrier([32] * stages)
            free = T.alloc_barrier([1] * stages)
            done = T.alloc_barrier([1])
            total = T.alloc_fragment((rows, columns), "float32")
            thread = T.get_thread_binding()
            if thread < 32:
                for step in T.serial(k // depth):
                    slot = step % stages
                    T.mbarrier_wait_parity(free[slot], step // stages % 2 ^ 1)
                    row, column, at = by * rows, bx * columns, step * depth
                    T.tma_copy(
                        A[row : row + rows, at : at + depth], a[slot, :, :], barrier=loaded[slot]
                    )
                    T.tma_copy(
                        B[column : column + columns, at : at + depth],
                        b[slot, :, :],
                        barrier=loaded[slot],
                    )
                    of_a, of_b = step * m + row, step * n + column
                    T.tma_copy(SCALE_A[of_a : of_a + rows], words_a[slot, :], barrier=loaded[slot])
                    T.tma_copy(
                        SCALE_B[of_b : of_b + columns], words_b[slot, :], barrier=loaded[slot]
                    )
                    T.mbarrier_arrive(loaded[slot])
            elif thread < 64:
                for step in T.serial(k // depth):
                    slot = step % stages
                    T.mbarrier_wait_parity(loaded[slot], step // stages % 2)
                    T.mbarrier_wait_parity(turned[slot], step // stages % 2)
                    T.tcgen05_cp_warpx4(words_a[slot, :], scales_a)
                    T.tcgen05_cp_warpx4(words_b[slot, :], scales_b)
                    T.tcgen05_gemm_blockscaled(
                        a[slot, :, :], b[slot, :, :], sums, scales_a, scales_b, transpose_B=True,
                        clear_accum=step == 0, mbar=free[slot], k_start=step * depth,
                        sf_a_granularity_k=32, sf_b_granularity_k=32,
                    )  # fmt: skip
                T.tcgen05_mma_arrive(done)
            elif thread < 96:
                for step in T.serial(k // depth):
                    slot = step % stages
                    T.mbarrier_wait_parity(loaded[slot], step // stages % 2)
                    T.tcgen05_sf_warp_transpose(words_a[slot, :])
                    T.tcgen05_sf_warp_transpose(words_b[slot, :])
                    T.fence_proxy_async()
                    T.mbarrier_arrive(turned[slot])
            T.mbarrier_wait_parity(done, 0)
            T.sync_threads()
            T.copy(sums, total)
            T.copy(total, C[by * rows, bx * columns])

    return main


KERNELS: dict[str, Callable[..., Any]] = {
    "attention": attention,
    "product": product,
    "scaled_product": scaled_product,
    "tensor_product": tensor_product,
}
