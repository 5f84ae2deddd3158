"""Compiles kernels of CuTe DSL without a GPU and records how they are launched.

    python record.py CASE OUTPUT

CASE is JSON: ``what`` (a function of this file), ``arch`` and the function's arguments. OUTPUT is a
pickle: the launches, and the arrays by name with the address that the host code took them to have.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import standin


def attention(
    *,
    depth: int,
    rows: int,
    keys: int,
    mask: str,
    dtype: str,
    heads: int = 1,
    key_heads: int = 1,
    batch: int = 1,
    clc: bool = False,
) -> dict[str, Any]:
    """FlashAttention-4's forward: out and lse of q, k, v, each [batch, rows, heads, depth]."""
    import os

    if clc:
        os.environ["FA_CLC"] = "1"
    import torch
    from flash_attn.cute.interface import _flash_attn_fwd
    from tensors import on_device

    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    tensors = {
        "q": torch.randn(batch, rows, heads, depth).to(kind),
        "k": torch.randn(batch, keys, key_heads, depth).to(kind),
        "v": torch.randn(batch, keys, key_heads, depth).to(kind),
        "out": torch.full((batch, rows, heads, depth), torch.nan, dtype=kind),
        "lse": torch.full((batch, heads, rows), torch.nan),
    }
    q, k, v, out, lse = map(on_device, tensors.values())
    _flash_attn_fwd(q, k, v, causal=mask == "causal", out=out, lse=lse, return_lse=True)
    return tensors


def backward(
    *,
    depth: int,
    rows: int,
    keys: int,
    mask: str,
    dtype: str,
    heads: int = 1,
    key_heads: int = 1,
    deterministic: bool = False,
) -> dict[str, Any]:
    """FlashAttention-4's backward: dq, dk, dv of q, k, v, out, dout and lse."""
    import torch
    from flash_attn.cute.interface import _flash_attn_bwd
    from tensors import Allocations, on_device

    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    of_q, of_k = (1, rows, heads, depth), (1, keys, key_heads, depth)
    tensors = {name: torch.randn(of_q if name in ("q", "dout") else of_k).to(kind)
               for name in ("q", "k", "v", "dout")}  # fmt: skip
    q, k, v = (tensors[name].double() for name in "qkv")
    k, v = (one.repeat_interleave(heads // key_heads, 2) for one in (k, v))
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * depth**-0.5
    if mask == "causal":
        hidden = torch.ones(rows, keys, dtype=torch.bool).triu(keys - rows + 1)
        scores = scores.masked_fill(hidden, -torch.inf)
    weights = torch.softmax(scores, -1)
    tensors["out"] = torch.einsum("bhqk,bkhd->bqhd", weights, v).to(kind).contiguous()
    tensors["lse"] = torch.logsumexp(scores, -1).float()
    for name in "qkv":
        tensors[f"d{name}"] = torch.full_like(tensors[name], torch.nan)
    placed = {name: on_device(tensor) for name, tensor in tensors.items()}
    with Allocations() as allocations:
        _flash_attn_bwd(**placed, causal=mask == "causal", deterministic=deterministic)
    return tensors | {f"made {index}": one for index, one in enumerate(allocations.made)}


def gemm(
    *, m: int, n: int, k: int, tile: tuple[int, int], cluster: tuple[int, int], dtype: str
) -> dict[str, Any]:
    """QuACK's matrix product: d [m, n] of a [m, k] and b [n, k]."""
    import torch
    from quack.gemm import gemm as product
    from tensors import on_device

    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    tensors = {
        "a": torch.randn(1, m, k).to(kind),
        "b": torch.randn(1, n, k).to(kind),
        "d": torch.full((1, m, n), torch.nan, dtype=kind),
    }
    a, b, d = map(on_device, tensors.values())
    product(a, b, d, None, None, *tile, *cluster)
    return tensors


def scaled(
    *, m: int, n: int, k: int, tile: tuple[int, int], cluster: tuple[int, int], form: str
) -> dict[str, Any]:
    """QuACK's scaled product: d [m, n] of a [m, k] and b [n, k], with scales in atoms."""
    import torch
    from quack.gemm import gemm as product
    from tensors import on_device

    torch.manual_seed(0)
    columns, block = (k, 32) if form == "mxfp8" else (k // 2, 16)

    def elements(rows: int) -> torch.Tensor:
        bits = torch.randint(0, 256, (1, rows, columns), dtype=torch.uint8)
        if form == "nvfp4":
            return bits.view(torch.float4_e2m1fn_x2)
        return bits.where(bits % 128 != 127, 0).view(torch.float8_e4m3fn)

    def scales(rows: int) -> torch.Tensor:
        shape = (1, -(-rows // 128), -(-k // (4 * block)), 32, 4, 4)
        if form == "nvfp4":
            return torch.randint(32, 80, shape, dtype=torch.uint8).view(torch.float8_e4m3fn)
        return torch.randint(120, 130, shape, dtype=torch.uint8).view(torch.float8_e8m0fnu)

    tensors = {
        "a": elements(m),
        "b": elements(n),
        "d": torch.full((1, m, n), torch.nan, dtype=torch.bfloat16),
        "scale_a": scales(m),
        "scale_b": scales(n),
    }
    a, b, d, scale_a, scale_b = map(on_device, tensors.values())
    name = form if form == "nvfp4" else f"{form}_e4m3"
    product(
        a, b, d, None, None, *tile, *cluster,
        SFA=scale_a, SFB=scale_b, bs_format_a=name, bs_format_b=name,
    )  # fmt: skip
    return tensors


CASES: dict[str, Callable[..., dict[str, Any]]] = {
    "attention": attention,
    "backward": backward,
    "gemm": gemm,
    "scaled": scaled,
}


def main(case: dict[str, Any], output: Path) -> None:
    what, arch = case.pop("what"), case.pop("arch")
    with TemporaryDirectory(dir=output.parent) as folder:
        recorder = standin.install(arch, Path(folder))
        tensors = CASES[what](**case)
    import torch

    arrays = {}
    for name, tensor in tensors.items():
        kind = str(tensor.dtype).split(".")[1]
        if tensor.dtype.itemsize == 1:  # NumPy has none of 8-bit floats; a byte may hold two
            tensor, kind = tensor.view(torch.uint8), "uint8"
        bits = tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor
        arrays[name] = (tensor.data_ptr(), kind, bits.numpy())
    output.write_bytes(
        pickle.dumps(
            {"launches": [asdict(launch) for launch in recorder.launches], "arrays": arrays}
        )
    )


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), Path(sys.argv[2]))
