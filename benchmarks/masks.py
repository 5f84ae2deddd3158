"""Times masks and scores that are expressions against what they are compared with, on a GPU.

    python benchmarks/masks.py OUT.json [--rounds 15] [--flex] [--only documents,alibi]

bf16, 16 heads, depth 128, 16384 rows in all. The kernels of a group take turns in another order in
each round: at its power limit the chip runs slower after a kernel that takes much of it. What
counts is the median over rounds of the ratio to the group's first kernel. OUT is written after
every group.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

import fa4gen
from fa4gen.runtime.timing import TimingProtocol, time_in_turn

if TYPE_CHECKING:
    from collections.abc import Callable

    Runs = dict[str, Callable[[], object]]

ROWS, HEADS, DEPTH = 16384, 16, 128
DOCUMENTS = (1504, 146, 619, 793, 1144, 1202, 837, 352, 819, 1742, 499, 281, 444, 1905, 361, 965,
             385, 78, 439, 803, 229, 837)  # fmt: skip
"""Rows of each: drawn once, log-normal with a mean of about 1000."""
BLOCK = 128
PROTOCOL = TimingProtocol(warmup_s=0.002, budget_s=0.002, min_samples=4)
FLEX = "flex_attention"


def inputs(batch: int) -> list[torch.Tensor]:
    """Draw query, key and value."""
    generator = torch.Generator("cuda").manual_seed(19)
    shape = (batch, ROWS // batch, HEADS, DEPTH)
    return [torch.randn(shape, generator=generator, device="cuda").bfloat16() for _ in range(3)]


def listed(name: str, arrays: list[torch.Tensor], **tensors: torch.Tensor) -> Any:
    """Prepare a shipped kernel with lists of blocks, made for these tensors."""
    kernel: Any = fa4gen.load(name)
    lists = kernel.list_blocks(arrays[0], arrays[1], **tensors)
    return kernel.prepare(*arrays, **tensors, **lists)


def plain(name: str, arrays: list[torch.Tensor], **tensors: torch.Tensor) -> Any:
    """Prepare a shipped kernel without lists."""
    kernel: Any = fa4gen.load(name)
    return kernel.prepare(*arrays, **tensors)


def flex(mask: Any, score: Any, arrays: list[torch.Tensor]) -> Callable[[], Any]:
    """Compile flex_attention for a mask and a score function."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    # Like the kernels, rows before heads in memory.
    query, key, value = (one.transpose(1, 2) for one in arrays)
    rows = query.shape[2]
    block_mask = create_block_mask(mask, None, None, rows, rows)
    compiled = torch.compile(flex_attention, dynamic=False)

    def run() -> Any:
        return compiled(query, key, value, score_mod=score, block_mask=block_mask)

    with torch.no_grad():
        run()
    return run


def documents(with_flex: bool) -> Runs:
    """Packed documents against a ragged batch of the same."""
    arrays = inputs(1)
    lengths = torch.tensor(DOCUMENTS, dtype=torch.int32)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int32), lengths.cumsum(0).int()]).cuda()
    number = torch.repeat_interleave(torch.arange(len(DOCUMENTS)), lengths).int().cuda()
    ragged, its = "d128_ragged_causal_bf16", "d128_documents_listed_bf16"
    rows = [one[0] for one in arrays]
    found: Runs = {
        ragged: plain(ragged, rows, query_offsets=offsets, key_offsets=offsets),
        its: listed(its, arrays, document=number[None].contiguous()),
    }
    if with_flex:
        found[FLEX] = flex(lambda _b, _h, q, k: (q >= k) & (number[q] == number[k]), None, arrays)
    return found


def block_sparse(with_flex: bool) -> Runs:
    """Half of the blocks, against the dense kernel."""
    arrays, generator = inputs(1), torch.Generator().manual_seed(7)
    seen = (torch.rand((512, 512), generator=generator) < 0.5).int().cuda()
    dense, its = "d128_dense_bf16", "d128_block_sparse_bf16"
    found: Runs = {dense: plain(dense, arrays), its: listed(its, arrays, seen=seen)}
    if with_flex:
        found[FLEX] = flex(lambda _b, _h, q, k: seen[q // BLOCK, k // BLOCK] != 0, None, arrays)
    return found


def alibi(with_flex: bool) -> Runs:
    """ALiBi against plain causal, 2 x 8192 rows."""
    arrays = inputs(2)
    slope = (2.0 ** (-8 * torch.arange(1, HEADS + 1) / HEADS)).float().cuda()
    causal, its = "d128_causal_bf16", "d128_alibi_causal_bf16"
    found: Runs = {causal: plain(causal, arrays), its: plain(its, arrays, slope=slope)}
    if with_flex:
        found[FLEX] = flex(
            lambda _b, _h, q, k: q >= k,
            lambda score, _b, h, q, k: score - slope[h] * (q - k),
            arrays,
        )
    return found


def window(with_flex: bool) -> Runs:
    """Time a window of 1024 keys."""
    arrays = inputs(1)
    found: Runs = {"d128_window_bf16": plain("d128_window_bf16", arrays)}
    if with_flex:
        found[FLEX] = flex(lambda _b, _h, q, k: (q >= k) & (q - k < 1024), None, arrays)
    return found


GROUPS = {"alibi": alibi, "documents": documents, "block_sparse": block_sparse, "window": window}


def main() -> None:
    """Measure the groups that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--flex", action="store_true")
    parser.add_argument("--only", default=",".join(GROUPS))
    options = parser.parse_args()
    out: dict[str, Any] = {"gpu": torch.cuda.get_device_name(), "rounds_ms": {}, "of_first": {}}
    stream = torch.cuda.current_stream().cuda_stream
    for group in options.only.split(","):
        kernels = GROUPS[group](options.flex)
        timings = time_in_turn(kernels, PROTOCOL, rounds=options.rounds, stream=stream)
        times = {name: [one.median_ms for one in taken] for name, taken in timings.items()}
        first = next(iter(times.values()))
        out["rounds_ms"][group], out["of_first"][group] = times, {}
        for name, row in times.items():
            ratio = statistics.median(a / b for a, b in zip(first, row, strict=True))
            out["of_first"][group][name] = round(ratio, 4)
            print(f"{group}: {statistics.median(row):8.4f} ms  {ratio:6.3f}  {name}", flush=True)
        options.out.write_text(json.dumps(out, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
