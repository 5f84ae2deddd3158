# A matrix product of 256 x 256 x 512 by MAX's own kernel for Blackwell, with random operands.
# Prints the addresses of a, b and c.

from max.gpu.host import DeviceContext
from layout import TileTensor, Coord, row_major, Idx
from linalg.matmul.gpu.sm100_structured.default.matmul import (
    blackwell_matmul_tma_umma_warp_specialized,
)
from linalg.matmul.gpu.sm100_structured.structured_kernels.config import MatmulConfig
from std.utils.index import Index
from std.random import rand


def main() raises:
    comptime dtype = DType.bfloat16
    comptime m = 256
    comptime n = 256
    comptime k = 512
    with DeviceContext() as ctx:
        var a_host = ctx.enqueue_create_host_buffer[dtype](m * k)
        var b_host = ctx.enqueue_create_host_buffer[dtype](n * k)
        var a_shape = row_major(Coord(Idx[m], Idx[k]))
        var b_shape = row_major(Coord(Idx[n], Idx[k]))
        var c_shape = row_major(Coord(Idx[m], Idx[n]))
        var a_tile = TileTensor(a_host, a_shape)
        var b_tile = TileTensor(b_host, b_shape)
        rand(a_tile._storage, a_tile.num_elements())
        rand(b_tile._storage, b_tile.num_elements())
        var a = ctx.enqueue_create_buffer[dtype](m * k)
        var b = ctx.enqueue_create_buffer[dtype](n * k)
        var c = ctx.enqueue_create_buffer[dtype](m * n)
        ctx.enqueue_copy(a, a_host)
        ctx.enqueue_copy(b, b_host)
        comptime config = MatmulConfig[dtype, dtype, dtype, True](
            cluster_shape=Index(1, 1, 1),
            mma_shape=Index(128, 128, 16),
            block_swizzle_size=0,
            cta_group=1,
        )
        blackwell_matmul_tma_umma_warp_specialized[transpose_b=True, config=config](
            TileTensor(c, c_shape), TileTensor(a, a_shape), TileTensor(b, b_shape), ctx
        )
        ctx.synchronize()
        print(Int(a.unsafe_ptr()), Int(b.unsafe_ptr()), Int(c.unsafe_ptr()))
        _ = a^
        _ = b^
        _ = c^
