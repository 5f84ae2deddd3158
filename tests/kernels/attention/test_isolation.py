"""On a GPU: a sequence gives the same bits alone, among others, and among NaN or infinity.

Not of kernels that split keys: how depends on all sequences, and so the order of sums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.config.find import find_configs, shipped_configs, shipped_name
from fa4gen.verify.build import build_kernel
from fa4gen.verify.gpu import GpuBackend
from tests.kernels.attention.sequences import assert_isolated

if TYPE_CHECKING:
    from fa4gen.verify.memory import AttentionMemory

WORDS = {"ragged", "paged16", "paged64", "lengths"}
NAMES = sorted(
    path.stem
    for path in shipped_configs()
    if shipped_name(path).startswith("attention/sm_90a/")
    and WORDS & {*path.stem.split("_")}
    and "decode" not in path.stem
)
LENGTHS = ((3, 40), (70, 150), (1, 0), (300, 300), (0, 9), (129, 1300), (513, 257), (5, 5))
"""None, one, less than a tile and several; keys that end within a page, a block, and at its end."""
CHOSEN = (1, 3, 5, 6)


def run(kernel: Any, memory: AttentionMemory) -> Any:
    return GpuBackend("sm_90a").load(kernel.plan, kernel.compiled).run(memory)


@pytest.mark.gpu("sm_90a")
@pytest.mark.parametrize("name", NAMES)
def test_a_sequence_gives_the_same_bits_whatever_its_neighbours_hold(name: str) -> None:
    (path,) = find_configs([name])
    kernel = build_kernel(str(path))
    assert kernel.plan is not None, kernel.problems
    assert kernel.compiled is not None, kernel.problems
    lengths = LENGTHS
    if not kernel.plan.query_source.clipped:
        lengths = tuple((300, keys) for _, keys in LENGTHS)
    assert_isolated(kernel, lengths, CHOSEN, run)
