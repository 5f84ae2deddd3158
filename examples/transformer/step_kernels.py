# SPDX-License-Identifier: Apache-2.0
"""The kernels of a step of decoding, by fa4gen: their configs, and how they are loaded.

With fused epilogues two of a layer's kernels follow attention and one another directly:

    norm | qkv | rotation, cache | attention, out + residual | norm | gate_up, down + residual

Bars separate fa4gen's kernels from PyTorch's. With ``dependent_launch`` a kernel starts while the
one before it still runs, if that one says so: fa4gen's do, PyTorch's do where Inductor makes them.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

ROWS = 16
"""The most rows of a product: BM of the kernels."""
PRODUCT = {"kernel": "gemm", "swap_operands": True, "BM": ROWS, "BN": 64, "evict_first": "b"}
CONFIGS: dict[str, dict[str, Any]] = {
    "qkv": {**PRODUCT, "split_k": 2},
    "residual": {**PRODUCT, "split_k": 2, "residual": "matrix"},
    "gate_up": {**PRODUCT, "BN": 128, "activation": "silu(gate) * up"},
    "head": PRODUCT,
    "decode": {
        "kernel": "attention",
        "depth": 128,
        "mask": "causal",
        "pack_heads": True,
        "keys": "paged",
        "page_size": 64,
        "lse": False,
    },
}
"""The kernels; out and down are ``residual``. split_k: products of 4096 columns fill the GPU."""
SHORT: dict[str, dict[str, Any]] = {
    **{name: {"num_stages": 5} for name in ("qkv", "residual", "head")},
    "gate_up": {"num_stages": 3, "num_epi_stages": 1},
}
"""Rings of half a multiprocessor's shared memory: the next kernel's CTA has room there, too."""


def configs(*, dependent: bool, short: bool = False) -> dict[str, dict[str, Any]]:
    """Return the configs for Hopper in bf16."""
    target = {"arch": "sm_90a", "dtype": "bf16", "dependent_launch": dependent}
    rings = SHORT if short else {}
    return {name: {**keys, **rings.get(name, {}), **target} for name, keys in CONFIGS.items()}


def loaded(*, dependent: bool, short: bool = False) -> dict[str, Any]:
    """Return the kernels by name, compiled where no cache has them."""
    import fa4gen

    made = configs(dependent=dependent, short=short)
    with ThreadPoolExecutor() as pool:
        return dict(zip(made, pool.map(fa4gen.load, made.values()), strict=True))
