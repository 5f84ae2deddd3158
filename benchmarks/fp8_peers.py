"""Attention in fp8 of other libraries on a GPU: cuDNN's and FlashAttention-3's."""

from __future__ import annotations

import ctypes
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from fp8_problem import Inputs, Shape


def flash_attention_3(library: Path | None) -> Callable[..., Any]:
    """Return FlashAttention-3's forward for e4m3: (query, key, value, scales, causal) to output."""
    import torch

    if library is None:
        import flash_attn_interface

        def call(query: Any, key: Any, value: Any, scales: Any, causal: bool) -> Any:
            names = ("q_descale", "k_descale", "v_descale")
            given = dict(zip(names, scales, strict=True))
            out = flash_attn_interface.flash_attn_func(query, key, value, causal=causal, **given)
            return out[0] if isinstance(out, tuple) else out

        return call
    for place in Path(sysconfig.get_path("purelib")).glob("nvidia/*/lib/libnvrtc.so.1?"):
        ctypes.CDLL(str(place), mode=ctypes.RTLD_GLOBAL)  # the library does not find it
    torch.ops.load_library(str(library))
    forward = torch.ops.sgl_kernel.fwd

    def call_library(query: Any, key: Any, value: Any, scales: Any, causal: bool) -> Any:
        nothing = (None,) * 17  # new keys, lengths, tables, rotary embedding
        scale = query.shape[-1] ** -0.5
        rest = (scale, causal, -1, -1, 0, 0.0, True, None, 1, None, 0, None)
        return forward(query, key, value, *nothing, *scales, *rest)[0]

    return call_library


def fa3(shape: Shape, inputs: Inputs, library: Path | None) -> Callable[[], Any]:
    """Return a launch of FlashAttention-3's attention in fp8, which returns its output."""
    import torch

    forward = flash_attention_3(library)
    heads = (shape.batch, shape.key_heads)
    scales = tuple(torch.full(heads, scale, device="cuda") for scale in inputs.scales)
    return lambda: forward(*inputs.narrow, scales, shape.causal)


def cudnn(shape: Shape, inputs: Inputs, out: Any, out_scale: float) -> Callable[[], Any]:
    """Return a launch of cuDNN's attention in fp8; its output is e4m3, too."""
    import cudnn as library
    import torch

    types, handle = library.data_type, library.create_handle()
    stream = torch.cuda.current_stream().cuda_stream
    library.set_stream(handle=handle, stream=stream)
    graph = library.pygraph(
        io_data_type=types.FP8_E4M3,
        intermediate_data_type=types.FLOAT,
        compute_data_type=types.FLOAT,
        handle=handle,
    )

    def operand(name: str, x: Any) -> Any:
        batch, rows, heads, depth = x.shape
        strides = [rows * heads * depth, depth, heads * depth, 1]
        return graph.tensor(
            name=name, dim=[batch, heads, rows, depth], stride=strides, data_type=types.FP8_E4M3
        )

    names = ("descale_q", "descale_k", "descale_v", "descale_s", "scale_s", "scale_o")
    numbers = {
        name: graph.tensor(name=name, dim=[1] * 4, stride=[1] * 4, data_type=types.FLOAT)
        for name in names
    }
    operands = dict(zip("qkv", map(operand, "qkv", inputs.narrow), strict=True))
    result, _, largest_s, largest_o = graph.sdpa_fp8(
        **operands,
        **numbers,
        attn_scale=shape.depth**-0.5,
        use_causal_mask=shape.causal,
        generate_stats=False,
    )
    extents, strides = (operand("out", out).get_dim(), operand("out", out).get_stride())
    result.set_output(True).set_dim(extents).set_stride(strides).set_data_type(types.FP8_E4M3)
    for number in (largest_s, largest_o):
        number.set_output(True).set_dim([1] * 4).set_stride([1] * 4).set_data_type(types.FLOAT)
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([library.heur_mode.A, library.heur_mode.FALLBACK])
    graph.check_support()
    graph.build_plans()
    workspace = torch.empty(max(16, graph.get_workspace_size()), dtype=torch.uint8, device="cuda")
    given = (*inputs.scales, 1 / 256, 256.0, out_scale)
    held = [torch.full((1,), number, device="cuda") for number in given]
    held += [torch.zeros(1, device="cuda") for _ in range(2)]
    tensors = (*operands.values(), result, *numbers.values(), largest_s, largest_o)
    addresses = [x.data_ptr() for x in (*inputs.narrow, out, *held)]
    pack = dict(zip(tensors, addresses, strict=True))

    def launch() -> None:
        assert held  # alive as long as the launch
        graph.execute(pack, workspace, handle=handle)

    return launch


@dataclass(frozen=True)
class Peers:
    """Launches of other libraries, their outputs with what each is multiplied by, and refusals."""

    runs: dict[str, Callable[[], Any]]
    results: dict[str, tuple[Any, float]]
    left_out: dict[str, str]


def peers_of(shape: Shape, inputs: Inputs, wanted: Any, library: Path | None) -> Peers:
    """Return the libraries that run, and why the others do not."""
    import torch

    batch, rows = inputs.narrow[0].shape[:2]
    size = (batch, rows, shape.heads, shape.depth)
    narrow = torch.zeros(size, device="cuda", dtype=torch.uint8).view(torch.float8_e4m3fn)
    out_scale = 224 / float(wanted.abs().max())
    peers = Peers({}, {}, {})

    def cudnn_fp8() -> tuple[Callable[[], Any], tuple[Any, float]]:
        launch = cudnn(shape, inputs, narrow, out_scale)
        launch()
        return launch, (narrow, 1 / out_scale)

    def fa3_fp8() -> tuple[Callable[[], Any], tuple[Any, float]]:
        launch = fa3(shape, inputs, library)
        return launch, (launch(), 1.0)

    for name, make in (("cudnn fp8", cudnn_fp8), ("fa3 fp8", fa3_fp8)):
        try:
            peers.runs[name], peers.results[name] = make()
        except Exception as problem:  # whatever a library raises, it does not take part
            peers.left_out[name] = f"{type(problem).__name__}: {str(problem)[:200]}"
            print(f"{name} left out: {peers.left_out[name]}")
    return peers
