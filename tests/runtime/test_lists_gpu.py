"""On a GPU: lists of blocks that CuPy makes are those of NumPy, and a kernel's call takes them."""

from __future__ import annotations

import numpy as np
import pytest

import fa4gen
from fa4gen.masks.block_lists import ListSizes, list_blocks
from fa4gen.masks.expression import parse_mask
from fa4gen.runtime.declared_arguments import list_sizes
from fa4gen.verify.reference import AttentionProblem, exact_attention

SIZES = [
    ListSizes(2, 4, 2, 300, 420, 192, 64, 96),
    ListSizes(1, 2, 2, 700, 130, 128, 64, 128),
    ListSizes(3, 3, 1, 1, 1, 192, 64, 64),
    ListSizes(1, 1, 1, 65, 0, 64, 64, 64),
]
MASKS = {
    "documents": "key <= query and document[batch, query] == document[batch, key]",
    "heads": "seen[head, row // 64, key // 40] != 0",
    "bits": "bit(word[key_head, row], key % 40) == 1",
    "gaps": "key % 3 == 0 and abs(query - key) < 200",
}
KEYS = {"kernel": "attention", "arch": "sm_90a", "dtype": "fp16", "depth": 64, "blocks": "listed"}


def drawn(sizes, seed):
    rng = np.random.default_rng(seed)
    document = np.cumsum(rng.random((sizes.batch, max(1, sizes.key_rows))) < 0.02, axis=1)
    return {
        "document": document.astype(np.int32),
        "seen": (rng.random((sizes.query_heads, 8, 12)) < 0.4).astype(np.int32),
        "word": rng.integers(-(2**31), 2**31, (sizes.key_heads, sizes.query_rows)).astype(np.int32),
    }


@pytest.mark.gpu("sm_90a")
@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: f"{sizes.query_rows}x{sizes.key_rows}")
@pytest.mark.parametrize("name", MASKS)
def test_cupy_makes_the_lists_of_numpy(name, sizes) -> None:
    import cupy

    mask, tensors = parse_mask(MASKS[name]), drawn(sizes, 5)
    of_gpu = {key: cupy.asarray(one) for key, one in tensors.items()}
    expected, found = (
        list_blocks(mask, sizes, tensors, np),
        list_blocks(mask, sizes, of_gpu, cupy),
    )
    assert list(found) == list(expected)
    # Tiles with as many entries are in any order.
    order = np.argsort(expected["block_ranges"][..., 0, 0], axis=-1)[..., None, None]
    again = np.argsort(found["block_ranges"].get()[..., 0, 0], axis=-1)[..., None, None]
    assert (
        np.take_along_axis(expected["block_ranges"], order, 2)
        == np.take_along_axis(found["block_ranges"].get(), again, 2)
    ).all()
    for key in ("block_entries", "row_keys"):
        assert found[key].dtype == np.int32
        assert (found[key].get() == expected[key]).all()


@pytest.mark.gpu("sm_90a")
@pytest.mark.parametrize("layout", ["bshd", "bhsd"])
def test_a_call_with_the_lists_of_its_kernel(layout) -> None:
    import cupy

    kernel = fa4gen.load({**KEYS, "mask": "documents", "score": "alibi"})
    rng = np.random.default_rng(6)
    query = rng.normal(size=(2, 333, 4, 64)).astype(np.float16)
    key, value = (rng.normal(size=(2, 500, 2, 64)).astype(np.float16) for _ in range(2))
    sizes = list_sizes(kernel.plan, query.shape, key.shape)
    given = {
        "document": drawn(sizes, 7)["document"],
        "slope": np.array([0.5, 0.25, 0.1, 0.01], np.float32),
    }
    exact = exact_attention(
        AttentionProblem.of(kernel.plan, 0.125), query, key, value, tensors=given
    )
    on_gpu = {name: cupy.asarray(one) for name, one in given.items()}
    turn = (lambda one: one) if layout == "bshd" else (lambda one: one.transpose(0, 2, 1, 3))
    q, k, v = (cupy.asarray(np.ascontiguousarray(turn(one))) for one in (query, key, value))
    lists = kernel.list_blocks(q, k, layout=layout, document=on_gpu["document"])
    out, lse = kernel(q, k, v, layout=layout, **on_gpu, **lists)
    error = np.abs(turn(out.get()).astype(np.float64) - exact.out)
    assert error.max() <= 2e-3 * np.abs(exact.out).max()
    seen = np.isfinite(exact.lse)
    assert (np.isfinite(lse.get()) == seen).all()
    assert np.allclose(lse.get()[seen], exact.lse[seen], rtol=1e-4, atol=1e-3)
