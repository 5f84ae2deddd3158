"""Tunes attention for sets of problems in one process, and prints each as it comes.

    python benchmarks/attention_sets.py OUT [--fa3 LIB] [--cudart LIB] [--seconds 100] [--drawn 30]

Depth 64 to 256, dense and causal, 512 to 16k rows, then problems that are drawn when it runs, with
fewer key heads and other numbers of keys. OUT gets a file of lines for each config, as `fa4gen
tune` writes them, and what was drawn. Kernels are compiled before the first is timed; without a GPU
the model chooses.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fa4gen.config.find import find_configs
from fa4gen.config.load import load_config
from fa4gen.sweep.results import ResultsFile
from fa4gen.tune.family import PeerOptions, family_called
from fa4gen.tune.search.record import TuneRecord, read_record
from fa4gen.tune.search.run import (
    TuneOptions,
    gpu_timer,
    kernels_to_compile,
    run_problem,
    tasks_for,
)
from fa4gen.workers import run_tasks

if TYPE_CHECKING:
    from fa4gen.tune.candidates import Candidate

DEPTHS = (64, 96, 128, 192, 256)
MASKS = ("dense", "causal")
ROWS = (512, 1024, 2048, 4096, 8192, 16384)
TOKENS, COLUMNS = 16384, 2048
LEAST_FLOP, MOST_FLOP = 2e10, 1.5e12
ATTENTION = family_called("attention")


def draw(rng: random.Random) -> tuple[str, str]:
    """Return a config and a problem for it."""
    while True:
        depth, mask = rng.choice(DEPTHS), rng.choice(MASKS)
        key_heads, group = rng.choice((1, 2, 4, 8, 16)), rng.choice((1, 2, 4, 8))
        rows = int(2 ** rng.uniform(6.5, 13.5))
        keys = rows if rng.random() < 0.5 else int(rows * 2 ** rng.uniform(0, 4))
        batch, heads = int(2 ** rng.uniform(0, 5)), key_heads * group
        flop = 4 * batch * heads * rows * keys * depth
        if keys <= ROWS[-1] and heads <= 64 and LEAST_FLOP <= flop <= MOST_FLOP:
            return f"d{depth}_{mask}_bf16", f"{batch}x{heads}/{key_heads}x{rows}x{keys}"


def print_record(record: TuneRecord) -> None:
    """Print one line."""
    chosen = record.chosen
    us = None if chosen is None else chosen.us
    ratio = f"{min(record.peers_us.values()) / us:.3f}" if us and record.peers_us else ""
    print(record.base, record.problem, record.winner, us, dict(record.peers_us), ratio, flush=True)


def main() -> None:
    """Measure until all is done or time is up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("out", type=Path)
    parser.add_argument("--fa3", default="")
    parser.add_argument("--cudart", default="")
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--drawn", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds
    arguments.out.mkdir(parents=True, exist_ok=True)
    names = [f"d{depth}_{mask}_bf16" for depth in DEPTHS for mask in MASKS]
    seed = random.SystemRandom().getrandbits(32)
    rng = random.Random(seed)
    drawn = [draw(rng) for _ in range(arguments.drawn)]
    text = json.dumps({"seed": seed, "drawn": drawn})
    (arguments.out / "drawn.json").write_text(text, encoding="utf-8")
    problems = [
        (f"d{depth}_{mask}_bf16", f"{max(1, TOKENS // rows)}x{COLUMNS // depth}x{rows}")
        for rows in ROWS
        for depth in DEPTHS
        for mask in MASKS
    ] + drawn
    options = TuneOptions(
        candidates=5,
        refined=1,
        rounds=4,
        seconds=0.5,
        again=4,
        peers=PeerOptions(wanted=True, fa3=arguments.fa3, cudart=arguments.cudart),
    )
    bases = {name: load_config(find_configs([name])[0]) for name in names}
    wanted: dict[str, Candidate] = {}
    for name, base in bases.items():
        its = [ATTENTION.parse_problem(word) for config, word in problems if config == name]
        kernels, function = kernels_to_compile(base, its, options)
        wanted |= {kernel.name: kernel for kernel in kernels}
    print(f"{len(wanted)} kernels", flush=True)
    if gpu_timer(ATTENTION.name, "sm_90a", options) is not None:
        for _ in run_tasks(function, list(wanted.values()), jobs=arguments.jobs):
            pass
    for name, word in problems:
        if time.monotonic() > end:
            print(f"time is up at {name} {word}")
            return
        (task,) = tasks_for(bases[name], [ATTENTION.parse_problem(word)], options, {})
        record = run_problem(task).result.record
        assert record is not None
        path = arguments.out / f"{name}.jsonl"
        with ResultsFile(path, name, fresh=False, read=read_record, kind="tuning") as file:
            file.append(record)
        print_record(record)


if __name__ == "__main__":
    main()
