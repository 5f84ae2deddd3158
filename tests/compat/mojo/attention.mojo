# MAX's own flash attention, causal, with random operands. Arguments: rows, keys, and into how many
# parts the keys are split, 0 if MAX is to choose. Prints the addresses of q, k, v and the output.

from std.random import rand
from std.sys import argv
from std.sys.defines import get_defined_int

from layout import Idx, TileTensor, row_major
from max.gpu.host import DeviceContext
from nn.attention.gpu.mha import flash_attention
from nn.attention.mha_mask import CausalMask

comptime dtype = DType.bfloat16
comptime depth = get_defined_int["depth", 128]()
comptime heads = get_defined_int["heads", 2]()
comptime key_heads = get_defined_int["key_heads", 1]()


def main() raises:
    var rows = Int(argv()[1])
    var keys = Int(argv()[2])
    var given = Int(argv()[3])
    var parts = Optional[Int](given) if given else Optional[Int](None)
    with DeviceContext() as ctx:
        var q_host = ctx.enqueue_create_host_buffer[dtype](rows * heads * depth)
        var k_host = ctx.enqueue_create_host_buffer[dtype](keys * key_heads * depth)
        var v_host = ctx.enqueue_create_host_buffer[dtype](keys * key_heads * depth)
        rand(q_host.as_span())
        rand(k_host.as_span())
        rand(v_host.as_span())
        var q = ctx.enqueue_create_buffer[dtype](rows * heads * depth)
        var k = ctx.enqueue_create_buffer[dtype](keys * key_heads * depth)
        var v = ctx.enqueue_create_buffer[dtype](keys * key_heads * depth)
        var out = ctx.enqueue_create_buffer[dtype](rows * heads * depth)
        ctx.enqueue_copy(q, q_host)
        ctx.enqueue_copy(k, k_host)
        ctx.enqueue_copy(v, v_host)
        var of_q = row_major((1, rows, Idx[heads], Idx[depth]))
        var of_k = row_major((1, keys, Idx[key_heads], Idx[depth]))
        flash_attention(
            TileTensor(out, of_q),
            TileTensor(q, of_q),
            TileTensor(k, of_k),
            TileTensor(v, of_k),
            CausalMask(),
            Float32(depth) ** -0.5,
            ctx,
            num_partitions=parts,
        )
        ctx.synchronize()
        print(
            Int(q.unsafe_ptr()), Int(k.unsafe_ptr()), Int(v.unsafe_ptr()), Int(out.unsafe_ptr())
        )
        _ = q^
        _ = k^
        _ = v^
        _ = out^
