"""Times products of groups of rows on a GPU, and compares them with PyTorch's grouped product.

    python benchmarks/grouped_products.py OUT.jsonl [--dtype bf16|fp8] [--groups offsets|masked]
        [--case NAME ...] [--shape NxK ...] [--tile KEY=VALUE,... ...] [--ctas N ...]
        [--gathered] [--ratios FILE]

Needs PyTorch. Each tile is checked against float64 on rows of some groups; then the tiles take
turns with ``torch._grouped_mm``, for fp8 ``torch._scaled_grouped_mm`` with a scale a row, and with
fa4gen's product of as many rows by one B, L2 cold each time. ``--ctas`` times each tile with at
most that many CTAs, too, ``--gathered`` with rows of A in a random order and an index of them,
where the tile goes with that. ``--ratios`` reads times of DeepGEMM's and PyTorch's grouped products
on such a GPU, and adds the time that DeepGEMM would take here.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import yaml

ROOT = Path(__file__).resolve().parent.parent
for _folder in (ROOT / "benchmarks", ROOT):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))

from grouped_problems import Problem, config_of, draws, tiles_for  # noqa: E402

from fa4gen.callables import compile_config  # noqa: E402
from fa4gen.config.load import load_mapping  # noqa: E402
from fa4gen.designs.build import build_plan  # noqa: E402
from fa4gen.errors import ConfigError  # noqa: E402
from fa4gen.runtime import gemm as runtime  # noqa: E402
from fa4gen.runtime.device import require_device  # noqa: E402
from fa4gen.runtime.gemm_schedule import plan_gemm_schedule  # noqa: E402
from fa4gen.runtime.timing import TimingProtocol, time_in_turn  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from grouped_problems import Tiles

    Runs = dict[str, Callable[[], object]]

SHAPES = ((4096, 7168), (7168, 2048))
"""n and k of the two products of an expert."""
BLOCK = 128
PROTOCOL = TimingProtocol(warmup_s=0.002, budget_s=0.0, min_samples=11)
ROUNDS = 3
MOST_ERROR = 4e-3
"""Of a product relative to float64: an output of bf16 has 1.7e-3."""
CHECKED_ROWS = 256


def compiled(config: Mapping[str, object], name: str) -> Any:
    """Return a kernel of fa4gen's."""
    from fa4gen.callables import as_callable

    words = "".join(letter if letter.isalnum() else "_" for letter in name.lower())
    chosen = compile_config(load_mapping(config, f"tile_{words}"))
    return as_callable(chosen.plan, chosen.kernel.cubin)


class Operands:
    """Random operands of a problem, for one kind of groups."""

    def __init__(self, problem: Problem, dtype: str, groups: str) -> None:
        """Draw A and B, with scales for fp8, and the counts on the device."""
        import torch

        self.torch, self.problem, self.dtype, self.groups = torch, problem, dtype, groups
        torch.manual_seed(0)
        device, n, k = "cuda", problem.n, problem.k
        self.a = self._values(problem.rows, k)
        self.b = torch.randn(len(problem.counts), n, k, device=device, dtype=torch.bfloat16)
        offsets = torch.tensor(problem.offsets, device=device, dtype=torch.int32)
        self.ends = offsets[1:].contiguous()
        self.rows = {"row_offsets": offsets}
        if groups == "masked":
            counts = torch.tensor(problem.counts, device=device, dtype=torch.int32)
            self.rows = {"row_counts": counts}
        self.scales: dict[str, Any] = {}
        self.exact_a, self.exact_b = self.a, self.b
        if dtype == "fp8":
            self._quantize()
        self.passed_a = self._matrices(self.a)
        order = torch.randperm(problem.rows, device="cuda")
        self.row_index = order.int()
        self.shuffled_a = self.a[order.argsort()] if dtype == "bf16" else self.a
        shape = (*self.passed_a.shape[:-1], n)
        self.out = torch.empty(shape, device=device, dtype=torch.bfloat16)

    def _values(self, rows: int, k: int) -> Any:
        """Return numbers of another size in each block of k."""
        torch = self.torch
        drawn = torch.randn(rows, k, device="cuda", dtype=torch.bfloat16)
        sizes = torch.exp(0.7 * torch.randn(rows, k // BLOCK, 1, device="cuda"))
        return (drawn.view(rows, -1, BLOCK) * sizes.to(torch.bfloat16)).view(rows, k)

    def _quantize(self) -> None:
        torch, (groups, n, k) = self.torch, self.b.shape
        fp8 = torch.float8_e4m3fn
        blocks = self.a.float().view(-1, k // BLOCK, BLOCK)
        scale_a = blocks.abs().amax(-1).clamp(1e-6) / 448
        self.a = (blocks / scale_a[..., None]).to(fp8).view(-1, k)
        self.exact_a = (self.a.float().view(blocks.shape) * scale_a[..., None]).view(-1, k)
        found = torch.empty_like(self.b, dtype=fp8)
        scale_b = torch.empty(groups, n // BLOCK, k // BLOCK, device="cuda")
        for group in range(groups):
            one = self.b[group].float().view(n // BLOCK, BLOCK, k // BLOCK, BLOCK)
            scale_b[group] = one.abs().amax((1, 3)).clamp(1e-6) / 448
            each = scale_b[group][:, None, :, None]
            found[group] = (one / each).to(fp8).view(n, k)
        self.b, self.scale_b_by_rows = found, scale_b
        self.scales = {"scale_a": self._matrices(scale_a), "scale_b": scale_b.mT}

    def _matrices(self, by_rows: Any) -> Any:
        """Return rows as a call takes them: as they are, or in a matrix for each group."""
        if self.groups == "offsets":
            return by_rows
        torch, counts = self.torch, self.problem.counts
        one_byte = by_rows.element_size() == 1
        rows = by_rows.view(torch.uint8) if one_byte else by_rows
        found = rows.new_zeros((len(counts), max(counts), rows.shape[-1]))
        for group, count in enumerate(counts):
            first = self.problem.offsets[group]
            found[group, :count] = rows[first : first + count]
        return found.view(by_rows.dtype) if one_byte else found

    def launch(self, kernel: Any, most_ctas: int | None = None) -> Any:
        """Return a prepared call, of at most some CTAs."""
        with fewer_ctas(most_ctas):
            return self._prepared(kernel)

    def _prepared(self, kernel: Any) -> Any:
        if kernel.plan.gathers_rows:
            given = {**self.rows, "row_index": self.row_index}
            return kernel.prepare(self.shuffled_a, self.b.mT, **given, out=self.out)
        return kernel.prepare(self.passed_a, self.b.mT, **self.scales, **self.rows, out=self.out)

    def error(self) -> float:
        """Return the largest relative error of a group's first rows, of some groups."""
        counts = self.problem.counts
        picked = {0, len(counts) - 1, counts.index(max(counts)), counts.index(min(counts))}
        worst = 0.0
        for group in picked:
            rows = min(counts[group], CHECKED_ROWS)
            if not rows:
                continue
            first = self.problem.offsets[group]
            b = self.exact_b[group].double()
            if self.dtype == "fp8":
                each = self.scale_b_by_rows[group].double()
                each = each.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)
                b = self.b[group].double() * each
            exact = self.exact_a[first : first + rows].double() @ b.T
            masked = self.groups == "masked"
            got = self.out[group, :rows] if masked else self.out[first : first + rows]
            worst = max(worst, float((got.double() - exact).norm() / exact.norm()))
        return worst

    def peers(self) -> Runs:
        """Return PyTorch's grouped products of these operands."""
        torch, b = self.torch, self.exact_b
        a = self.exact_a.to(torch.bfloat16)
        ends, out = self.ends, torch.bfloat16
        found: Runs = {
            "torch_bf16": lambda: torch._grouped_mm(
                a, b.transpose(-2, -1), offs=ends, out_dtype=out
            )
        }
        if self.dtype == "fp8":
            scale_a = a.float().abs().amax(-1).clamp(1e-6) / 448
            scale_b = b.float().abs().amax(-1).clamp(1e-6) / 448
            fp8_a = (a.float() / scale_a[:, None]).to(torch.float8_e4m3fn)
            fp8_b = (b.float() / scale_b[..., None]).to(torch.float8_e4m3fn)
            for fast in (True, False):
                found["torch_row_fp8" + "_fast" * fast] = partial(
                    torch._scaled_grouped_mm, fp8_a, fp8_b.mT, scale_a, scale_b, offs=ends,
                    out_dtype=out, use_fast_accum=fast,
                )  # fmt: skip
        return {name: run for name, run in found.items() if runs(name, run)}

    def dense(self) -> Runs:
        """Return fa4gen's product of all rows by the first B, which reads one B alone."""
        kernel = compiled(config_of(self.dtype, None, {}), "dense")
        out = self.torch.empty(self.problem.rows, self.problem.n, device="cuda",
                               dtype=self.torch.bfloat16)  # fmt: skip
        scales = {}
        if self.dtype == "fp8":
            blocks = self.problem.k // BLOCK
            scale_a = self.torch.ones(self.problem.rows, blocks, device="cuda")
            scales = {"scale_a": scale_a, "scale_b": self.scale_b_by_rows[0].T}
        return {"one B": kernel.prepare(self.a, self.b[0].T, **scales, out=out)}


@contextmanager
def fewer_ctas(most: int | None) -> Iterator[None]:
    """Make launches that are prepared inside have at most ``most`` CTAs."""

    def schedule(plan: Any, size: Any, multiprocessors: int) -> Any:
        return plan_gemm_schedule(plan, size, min(most or multiprocessors, multiprocessors))

    with patch.object(runtime, "plan_gemm_schedule", schedule):
        yield


def with_gathered(tiles: Tiles) -> Tiles:
    """Return the tiles, and each that goes with gathered rows once more with them."""
    found = dict(tiles)
    for name, tile in tiles.items():
        try:
            gathered = {**tile, "rows": "gathered"}
            build_plan(load_mapping(config_of("bf16", "offsets", gathered), "gathered").config)
        except ConfigError as error:
            print(f"{name}, gathered left out: {error.problems[0].message}")
        else:
            found[f"{name}, gathered"] = gathered
    return found


def runs(name: str, run: Callable[[], object]) -> bool:
    """Return whether a peer runs here; print why not."""
    try:
        run()
    except Exception as error:  # whatever a version of PyTorch refuses
        print(f"{name} left out: {str(error).splitlines()[0]}")
        return False
    return True


def measured(
    problem: Problem, dtype: str, groups: str, tiles: Tiles, ctas: Sequence[int] = ()
) -> dict[str, Any]:
    """Return a line of results of one problem."""
    operands = Operands(problem, dtype, groups)
    launches: Runs = {}
    for tile_name, tile in tiles.items():
        for most in (None, *ctas):
            kernel = compiled(config_of(dtype, groups, tile), f"{groups}_{tile_name}")
            launch = operands.launch(kernel, most)
            operands.out.fill_(math.nan)
            launch()
            error = operands.error()
            name = tile_name if most is None else f"{tile_name}, {most} CTAs"
            if not error <= MOST_ERROR:
                raise SystemExit(f"{problem.name}, {name}: an error of {error:.3g}")
            launches[name] = launch
    others = {**operands.peers(), **operands.dense()}
    taken = time_in_turn({**launches, **others}, PROTOCOL, rounds=ROUNDS)
    found = {
        name: round(1e3 * statistics.median(one.median_ms for one in timings), 3)
        for name, timings in taken.items()
    }
    contiguous = [name for name in launches if not name.endswith("gathered")]
    best = min(contiguous, key=found.__getitem__)
    size = 1 if dtype == "fp8" else 2
    used = sum(1 for count in problem.counts if count)
    moved = (used * problem.n * problem.k + problem.rows * problem.k) * size
    moved += 2 * problem.rows * problem.n
    return {
        "problem": f"{problem.name}, {problem.n}x{problem.k}",
        "kernel": best,
        "chip": require_device("sm_90a").name,
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "times_us": [found[best]],
        "peers_us": {name: found[name] for name in others},
        "details": {
            "dtype": dtype,
            "groups": groups,
            "rows": problem.rows,
            "n": problem.n,
            "k": problem.k,
            "tiles_us": {name: found[name] for name in launches},
            "tflops": round(2e-6 * problem.rows * problem.n * problem.k / found[best], 1),
            "gbytes_s": round(1e-3 * moved / found[best]),
        },
    }


def commit() -> str:
    """Return the commit of the checkout, "" outside of one."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def other_ratios(path: Path | None) -> dict[tuple[str, int, int], Mapping[str, Any]]:
    """Return lines of times by groups, n and k; none without a file."""
    if path is None:
        return {}
    return {(line["groups"], line["n"], line["k"]): line for line in _grouped(json_of(path))}


def json_of(path: Path) -> Any:
    """Return the contents of a file of JSON, or of lines of it."""
    text = path.read_text(encoding="utf-8")
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def _grouped(data: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(data, dict):
        if data.get("part") == "grouped" and "torch_bf16_us" in data:
            yield data
        for value in data.values():
            yield from _grouped(value)
    elif isinstance(data, list):
        for value in data:
            yield from _grouped(value)


def estimated(line: Mapping[str, Any], other: Mapping[str, Any], dtype: str, groups: str) -> float:
    """Return what the other library would take here, by PyTorch's times here and there."""
    name = f"deepgemm_{'masked_' * (groups == 'masked')}{dtype}_us"
    if name not in other:
        return math.nan
    here = line["peers_us"]
    peer = next((one for one in ("torch_row_fp8_fast", "torch_bf16") if one in here), "")
    if f"{peer}_us" not in other:
        return math.nan
    return float(other[name]) * float(here[peer]) / float(other[f"{peer}_us"])


def main() -> None:
    """Measure, and write a line of JSON a problem."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--dtype", choices=("bf16", "fp8"), default="bf16")
    parser.add_argument("--groups", choices=("offsets", "masked"), default="offsets")
    parser.add_argument("--case", action="append", default=[], help="a name, such as 32x256")
    parser.add_argument("--shape", action="append", default=[], help="NxK; repeatable")
    parser.add_argument("--tile", action="append", default=[], help="KEY=VALUE,...; repeatable")
    parser.add_argument("--ctas", action="append", default=[], type=int, help="repeatable")
    parser.add_argument("--gathered", action="store_true", help="rows by an index, too: bf16")
    parser.add_argument("--ratios", type=Path, help="times of another library and of PyTorch's")
    options = parser.parse_args()
    if options.gathered and (options.dtype, options.groups) != ("bf16", "offsets"):
        parser.error("--gathered goes with --dtype bf16 and --groups offsets alone")
    cases = draws()
    names = options.case or list(cases)
    shapes = [tuple(map(int, text.split("x"))) for text in options.shape] or SHAPES
    given = {
        text: yaml.safe_load(text.replace("=", ": ").replace(",", "\n")) for text in options.tile
    }
    others = other_ratios(options.ratios)
    with options.out.open("a", encoding="utf-8") as file:
        for name in names:
            for n, k in shapes:
                problem = Problem(name, cases[name], n, k)
                tiles = given or tiles_for(problem, options.dtype)
                tiles = with_gathered(tiles) if options.gathered else tiles
                line = measured(problem, options.dtype, options.groups, tiles, options.ctas)
                other = others.get((name, n, k), {})
                deepgemm = estimated(line, other, options.dtype, options.groups)
                if deepgemm > 0:
                    line["details"]["deepgemm_estimated_us"] = round(deepgemm, 2)
                file.write(json.dumps(line) + "\n")
                file.flush()
                print(shown(line, deepgemm), flush=True)


def shown(line: Mapping[str, Any], deepgemm: float) -> str:
    """Return a line of text for a line of results."""
    time, peers = line["times_us"][0], line["peers_us"]
    ratios = [f"{name} {us / time:.3f}" for name, us in peers.items()]
    if deepgemm > 0:
        ratios.append(f"DeepGEMM (estimated) {deepgemm / time:.3f}")
    details = line["details"]
    speed = f"{details['tflops']} TFLOP/s, {details['gbytes_s']} GB/s"
    return f"{line['problem']:>28} {line['kernel']:24} {time:9.2f} us, {speed}; {', '.join(ratios)}"


if __name__ == "__main__":
    main()
