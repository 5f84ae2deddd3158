"""Times masks and scores that are expressions against what they are compared with, on a GPU.

    python benchmarks/masks.py OUT.json [--rounds 15] [--flex] [--only documents,alibi]
        [--also documents:num_pv_chunks_in_flight=2,BN=80]...

bf16, 16 heads, depth 128, 16384 rows in all. The kernels of a group take turns, each with the
mean of a few launches between CUDA events in a round, in another order in each: at its power limit
the chip runs slower after a kernel that takes much of it. What counts is the median over rounds of
the ratio to the group's first kernel. Inputs are larger than L2. ``--also`` times the group's last
kernel with other keys. OUT is written after every group.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import yaml

import fa4gen
from fa4gen.config.find import find_configs
from fa4gen.config.load import load_config
from fa4gen.errors import Fa4genError
from fa4gen.tune.candidates import given_keys

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS, HEADS, DEPTH = 16384, 16, 128
DOCUMENTS = (1504, 146, 619, 793, 1144, 1202, 837, 352, 819, 1742, 499, 281, 444, 1905, 361, 965,
             385, 78, 439, 803, 229, 837)  # fmt: skip
"""Rows of each: drawn once, log-normal with a mean of about 1000."""
BLOCK = 128
LAUNCHES = 4
KERNELS = {
    "alibi": ("d128_causal_bf16", "d128_alibi_causal_bf16"),
    "documents": ("d128_ragged_causal_bf16", "d128_documents_listed_bf16"),
    "block_sparse": ("d128_dense_bf16", "d128_block_sparse_bf16"),
    "window": ("d128_window_bf16",),
}
"""Of each group, the first being what others are compared with."""


def inputs(batch: int) -> list[torch.Tensor]:
    """Draw query, key and value."""
    generator = torch.Generator("cuda").manual_seed(19)
    shape = (batch, ROWS // batch, HEADS, DEPTH)
    return [torch.randn(shape, generator=generator, device="cuda").bfloat16() for _ in range(3)]


def config(name: str, keys: str = "") -> dict[str, Any]:
    """Read a shipped config, with other keys."""
    values: dict[str, Any] = given_keys(load_config(find_configs([name])[0]))
    for pair in keys.split(",") if keys else ():
        key, _, value = pair.partition("=")
        values[key] = yaml.safe_load(value)
    return values


def variants(group: str, also: list[str]) -> list[tuple[str, dict[str, Any]]]:
    """Return label and config of the group's last kernel, and of it with other keys."""
    name = KERNELS[group][-1]
    return [(f"{name} {keys}".strip(), config(name, keys)) for keys in ("", *also)]


def compiled(group: str, also: list[str]) -> list[tuple[str, dict[str, Any]]]:
    """Return those of ``variants`` that compile without spills."""
    found = []
    for label, keys in variants(group, also):
        try:
            fa4gen.load(keys)
        except Fa4genError as error:
            print(f"{label}: {str(error).splitlines()[0]}", flush=True)
        else:
            found.append((label, keys))
    return found


def compile_kernels(groups: list[str], also: dict[str, list[str]]) -> None:
    """Compile into the cache, several at a time."""
    wanted = [config(name) for group in groups for name in KERNELS[group][:-1]]
    wanted += [keys for group in groups for _, keys in variants(group, also[group])]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        list(pool.map(compile_one, wanted))


def compile_one(keys: dict[str, Any]) -> None:
    """Compile a kernel, in a process of its own; what cannot be is said when it is wanted."""
    with contextlib.suppress(Fa4genError):
        fa4gen.load(keys)


def listed(keys: dict[str, Any], arrays: list[torch.Tensor], **tensors: torch.Tensor) -> Any:
    """Prepare a kernel with lists of blocks, made for these tensors."""
    kernel: Any = fa4gen.load(keys)
    lists = kernel.list_blocks(arrays[0], arrays[1], **tensors)
    return kernel.prepare(*arrays, **tensors, **lists)


def plain(keys: dict[str, Any], arrays: list[torch.Tensor], **tensors: torch.Tensor) -> Any:
    """Prepare a kernel without lists."""
    kernel: Any = fa4gen.load(keys)
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


def documents(also: list[str], with_flex: bool) -> dict[str, Any]:
    """Packed documents against a ragged batch of the same."""
    arrays = inputs(1)
    lengths = torch.tensor(DOCUMENTS, dtype=torch.int32)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int32), lengths.cumsum(0).int()]).cuda()
    number = torch.repeat_interleave(torch.arange(len(DOCUMENTS)), lengths)
    document = number.int()[None].contiguous().cuda()
    rows = [one[0] for one in arrays]
    offsets_of = {"query_offsets": offsets, "key_offsets": offsets}
    found = {
        "d128_ragged_causal_bf16": plain(config("d128_ragged_causal_bf16"), rows, **offsets_of)
    }
    for label, keys in compiled("documents", also):
        found[label] = listed(keys, arrays, document=document)
    if with_flex:
        numbers = document[0]
        found["flex_attention"] = flex(
            lambda _b, _h, q, k: (q >= k) & (numbers[q] == numbers[k]), None, arrays
        )
    return found


def block_sparse(also: list[str], with_flex: bool) -> dict[str, Any]:
    """Half of the blocks, against the dense kernel."""
    arrays, generator = inputs(1), torch.Generator().manual_seed(7)
    seen = (torch.rand((512, 512), generator=generator) < 0.5).int().cuda()
    found = {"d128_dense_bf16": plain(config("d128_dense_bf16"), arrays)}
    for label, keys in compiled("block_sparse", also):
        found[label] = listed(keys, arrays, seen=seen)
    if with_flex:
        found["flex_attention"] = flex(
            lambda _b, _h, q, k: seen[q // BLOCK, k // BLOCK] != 0, None, arrays
        )
    return found


def alibi(also: list[str], with_flex: bool) -> dict[str, Any]:
    """ALiBi against plain causal, 2 x 8192 rows."""
    arrays = inputs(2)
    slope = (2.0 ** (-8 * torch.arange(1, HEADS + 1) / HEADS)).float().cuda()
    found = {"d128_causal_bf16": plain(config("d128_causal_bf16"), arrays)}
    for label, keys in compiled("alibi", also):
        found[label] = plain(keys, arrays, slope=slope)
    if with_flex:
        found["flex_attention"] = flex(
            lambda _b, _h, q, k: q >= k,
            lambda score, _b, h, q, k: score - slope[h] * (q - k),
            arrays,
        )
    return found


def window(also: list[str], with_flex: bool) -> dict[str, Any]:
    """Time a window of 1024 keys."""
    arrays = inputs(1)
    found = {label: plain(keys, arrays) for label, keys in compiled("window", also)}
    if with_flex:
        found["flex_attention"] = flex(lambda _b, _h, q, k: (q >= k) & (q - k < 1024), None, arrays)
    return found


GROUPS = {"alibi": alibi, "documents": documents, "block_sparse": block_sparse, "window": window}


def time_once(run: Callable[[], Any]) -> float:
    """Return the milliseconds of a launch, of a few in a row after one."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    run()
    begin.record()
    for _ in range(LAUNCHES):
        run()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / LAUNCHES


def measure(kernels: dict[str, Any], rounds: int) -> dict[str, list[float]]:
    """Time each in turn, ``rounds`` times after one that does not count, in drawn orders."""
    times: dict[str, list[float]] = {name: [] for name in kernels}
    order = random.Random(19)
    for number in range(rounds + 1):
        for name in order.sample(list(kernels), len(kernels)):
            took = time_once(kernels[name])
            if number:
                times[name].append(round(took, 5))
    return times


def main() -> None:
    """Measure the groups that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--flex", action="store_true")
    parser.add_argument("--only", default=",".join(GROUPS))
    parser.add_argument("--also", action="append", default=[])
    options = parser.parse_args()
    out: dict[str, Any] = {"gpu": torch.cuda.get_device_name(), "rounds_ms": {}, "of_first": {}}
    groups = options.only.split(",")
    also = {group: [one.partition(":")[2] for one in options.also if one.startswith(f"{group}:")]
            for group in groups}  # fmt: skip
    compile_kernels(groups, also)
    for group in groups:
        began = time.perf_counter()
        kernels = GROUPS[group](also[group], options.flex)
        ready = time.perf_counter()
        times = measure(kernels, options.rounds)
        first = next(iter(times.values()))
        out["rounds_ms"][group], out["of_first"][group] = times, {}
        print(f"{group}: prepared in {ready - began:.1f} s", flush=True)
        for name, row in times.items():
            ratio = statistics.median(a / b for a, b in zip(first, row, strict=True))
            out["of_first"][group][name] = round(ratio, 4)
            print(f"  {statistics.median(row):8.4f} ms  {ratio:6.3f}  {name}", flush=True)
        options.out.write_text(json.dumps(out, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
