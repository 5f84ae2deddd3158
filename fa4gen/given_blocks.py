"""Lists of blocks of keys for calls of kernels with ``blocks: {rows: R, keys: K}``.

Each function returns ``block_offsets`` and ``block_indices`` by name, for ``kernel(..., **lists)``:
int32 arrays of NumPy for one of NumPy, else of CuPy on the array's GPU, enqueued on CuPy's current
stream; the host does not wait. A list has the blocks of K keys that R query rows see; the axes in
front of it are (batch, heads, blocks of rows), or (heads, blocks of rows of all sequences) where a
batch is ragged. Heads are those of the config's ``blocks``: query heads, or key heads.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from fa4gen.runtime.refusal import refusal

NO_BLOCK = -1
"""An entry of a list that names no block."""
INT32_MAX = 2**31 - 1


def from_mask(seen: Any) -> dict[str, Any]:
    """Return the lists of a mask over blocks (..., blocks of keys): those that are not zero."""
    xp, seen = _with_module(seen)
    *axes, most = seen.shape
    lists = _count_lists(axes, most, "seen")
    if _is_numpy(xp) or not seen.size:
        numbers = xp.where(seen != 0, xp.arange(most, dtype=xp.int32), xp.int32(NO_BLOCK))
        return {"block_offsets": _offsets(xp, lists, most), "block_indices": numbers.reshape(-1)}
    offsets = xp.empty(lists + 1, dtype=xp.int32)
    indices = xp.empty(seen.size, dtype=xp.int32)
    _list_mask(xp)(seen, most, offsets, indices.reshape(seen.shape))
    return {"block_offsets": offsets, "block_indices": indices}


def from_indices(indices: Any) -> dict[str, Any]:
    """Return the lists of numbers of blocks (..., most of a list), padded with -1."""
    xp, indices = _with_module(indices)
    *axes, most = indices.shape
    lists = _count_lists(axes, most, "indices")
    return {
        "block_offsets": _offsets(xp, lists, most),
        "block_indices": xp.ascontiguousarray(indices.reshape(-1).astype(xp.int32, copy=False)),
    }


def from_scores(scores: Any, most: int) -> dict[str, Any]:
    """Return lists of the ``most`` blocks with the largest scores (..., blocks of keys).

    Blocks with a score of -inf are never taken; of equal scores any are.
    """
    xp, scores = _with_module(scores)
    blocks = scores.shape[-1]
    if most < 1:
        raise refusal("most", str(most), "at least 1 block")
    if most >= blocks:
        return from_mask(scores != -xp.inf)
    taken = xp.argpartition(-scores, most - 1, axis=-1)[..., :most]
    hidden = xp.take_along_axis(scores, taken, axis=-1) == -xp.inf
    return from_indices(xp.where(hidden, NO_BLOCK, taken))


def _count_lists(axes: list[int], most: int, name: str) -> int:
    """Return the number of lists, where the entries of all can be counted in int32."""
    lists = math.prod(axes)
    if lists * most > INT32_MAX:
        raise refusal(name, f"{lists * most} entries", f"at most {INT32_MAX}")
    return lists


def _offsets(xp: Any, lists: int, most: int) -> Any:
    """Return 0, most, 2 * most, ...: in one launch on a GPU."""
    if not most:
        return xp.zeros(lists + 1, dtype=xp.int32)
    return xp.arange(0, lists * most + 1, most, dtype=xp.int32)


@lru_cache(maxsize=1)
def _list_mask(cupy: Any) -> Any:
    """Return the launch that writes offsets and numbers of a mask; CuPy keeps it compiled."""
    return cupy.ElementwiseKernel(
        "T seen, int32 most",
        "raw int32 offsets, int32 number",
        f"""
        const int entry = static_cast<int>(i);
        const int block = entry % most;
        number = seen != T(0) ? block : {NO_BLOCK};
        if (block == 0) offsets[entry / most] = entry;
        if (entry + 1 == _ind.size()) offsets[entry / most + 1] = entry + 1;
        """,
        "fa4gen_list_mask",
        no_return=True,
    )


def _is_numpy(module: Any) -> bool:
    return bool(module.__name__ == "numpy")


def _with_module(array: Any) -> tuple[Any, Any]:
    """Return NumPy or CuPy, and the array as one of its own; of a GPU without a copy."""
    import numpy as np  # only where lists are made

    if isinstance(array, np.ndarray):
        return np, array
    from fa4gen.runtime.device import load_cupy

    cupy = load_cupy()
    return cupy, array if isinstance(array, cupy.ndarray) else cupy.from_dlpack(array)
