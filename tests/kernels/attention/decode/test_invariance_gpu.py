"""A sequence gives the same bits in random batches where splits have a number of keys: on a GPU."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fa4gen
from tests.runtime.gpu_arrays import to_gpu

CONFIG: dict[str, Any] = {
    "kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128, "mask": "causal",
    "pack_heads": True, "split_keys": {"keys": 512},
}  # fmt: skip
FP8 = {"kv_dtype": "fp8_e4m3"}
KERNELS: dict[str, dict[str, Any]] = {
    "lengths": {"key_lengths": True},
    "pages": {"keys": "paged", "page_size": 64},
    "wide": {"keys": "paged", "page_size": 64, "packed_rows": 64},
    "fp8": {"keys": "paged", "page_size": 64, **FP8},
    "fp8_pages": {"keys": "paged", "page_size": 64, **FP8, "kv_scale": "page"},
}
PAGE, PAGES = 64, 40
KEYS = PAGE * PAGES
HEADS, KEY_HEADS, ROWS = 8, 2, 2
OWN = (1, 511, 513, 1900, KEYS)
"""Keys of the sequence whose bits are compared."""


def numbers(rng: np.random.Generator, *shape: int, is_fp8: bool) -> Any:
    """Keys or values; of fp8 the bits, without those that are no number."""
    if is_fp8:
        bits = rng.integers(0, 256, shape, dtype=np.uint8)
        return np.where(bits & 0x7F == 0x7F, 0, bits).astype(np.uint8)
    return rng.standard_normal(shape, np.float32).astype(ml_dtypes.bfloat16)


@pytest.mark.gpu("sm_90a")
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("own_keys", OWN)
def test_a_sequence_gives_the_same_bits_in_random_batches(name: str, own_keys: int) -> None:
    keys = KERNELS[name]
    kernel: Any = fa4gen.load({**CONFIG, **keys, "name": f"invariant_{name}"})
    rng = np.random.default_rng(own_keys)
    is_fp8, is_paged = "kv_dtype" in keys, "page_size" in keys
    own_query = numbers(rng, ROWS, HEADS, 128, is_fp8=False)
    own = [numbers(rng, PAGES, PAGE, KEY_HEADS, 128, is_fp8=is_fp8) for _ in "kv"]
    of_pages = [rng.uniform(0.5, 2, (PAGES, KEY_HEADS)).astype(np.float32) for _ in "kv"]
    found = []
    for batch in (1, 2, *rng.integers(3, 16, 4).tolist()):
        place = int(rng.integers(batch))
        lengths = rng.integers(0, KEYS + 1, batch).astype(np.int32)
        lengths[place] = own_keys
        query = numbers(rng, batch, ROWS, HEADS, 128, is_fp8=False)
        query[place] = own_query
        stored = [numbers(rng, batch * PAGES, PAGE, KEY_HEADS, 128, is_fp8=is_fp8) for _ in "kv"]
        table = np.arange(batch * PAGES, dtype=np.int32)
        if is_paged:
            table = rng.permutation(table)
        table = table.reshape(batch, PAGES)
        more: dict[str, Any] = {"key_lengths": to_gpu(lengths)}
        for array, mine in zip(stored, own, strict=True):
            array[table[place]] = mine
        if is_paged:
            more["page_table"] = to_gpu(table)
        else:
            stored = [array.reshape(batch, KEYS, KEY_HEADS, 128) for array in stored]
        if is_fp8:
            count = batch * PAGES if keys.get("kv_scale") == "page" else batch
            for argument, mine in zip(("key_descale", "value_descale"), of_pages, strict=True):
                scales = rng.uniform(0.5, 2, (count, KEY_HEADS)).astype(np.float32)
                scales[table[place] if count > batch else place] = (
                    mine if count > batch else mine[0]
                )
                more[argument] = to_gpu(scales)
        out, lse = kernel(to_gpu(query), *map(to_gpu, stored), **more)
        found.append((out.get()[place].view(np.uint16), lse.get()[place].view(np.uint32)))
    for out, lse in found[1:]:
        np.testing.assert_array_equal(out, found[0][0])
        np.testing.assert_array_equal(lse, found[0][1])
