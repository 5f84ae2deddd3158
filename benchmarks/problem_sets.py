"""What attention_sets.py and gemm_sets.py share: tuning many problems in one process."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from fa4gen.config.find import find_configs
from fa4gen.config.load import load_config
from fa4gen.sweep.results import ResultsFile
from fa4gen.tune.committed import config_for, find_table
from fa4gen.tune.family import family_called
from fa4gen.tune.search.record import read_record
from fa4gen.tune.search.run import (
    TuneOptions,
    gpu_timer,
    kernels_to_compile,
    named_candidate,
    run_problem,
    tasks_for,
)
from fa4gen.workers import run_tasks

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from fa4gen.config.load import LoadedConfig
    from fa4gen.config.set_file import KernelSetFile
    from fa4gen.tune.candidates import Candidate
    from fa4gen.tune.search.record import TuneRecord


@dataclass(frozen=True)
class Wanted:
    """A problem, the config that it is of, and the file of lines that takes its record."""

    config: str
    problem: str
    file: str


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what both programs take."""
    parser.add_argument("out", type=Path)
    parser.add_argument("--fa3", default="", help="FlashAttention-3's library, for attention")
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--candidates", type=int, default=5)
    parser.add_argument("--refined", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--again", type=int, default=4)
    parser.add_argument("--budget", type=float, default=0.6, help="seconds of each problem")
    parser.add_argument("--draw", type=int, default=0, help="a seed; 0 takes a new one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--table-of", default="", metavar="CHIP", help="also measure what the table of CHIP names"
    )
    parser.add_argument(
        "--compile",
        choices=("first", "only", "not"),
        default="first",
        help="into the cache, before the first kernel is timed",
    )
    parser.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="CONFIG",
        help="also measure this config, at every problem; may be repeated",
    )


def run(wanted: Sequence[Wanted], arguments: argparse.Namespace) -> None:
    """Compile all kernels, then measure until all is done or time is up."""
    end = time.monotonic() + arguments.seconds
    options = TuneOptions(
        candidates=arguments.candidates,
        refined=arguments.refined,
        rounds=arguments.rounds,
        seconds=arguments.budget,
        again=arguments.again,
        fa3=arguments.fa3,
    )
    if arguments.compile != "not":
        _compile(wanted, options, arguments)
    for number, one in enumerate(() if arguments.compile == "only" else wanted):
        if time.monotonic() > end:
            print(f"time is up: {len(wanted) - number} problems are left", flush=True)
            return
        base = _base(one.config)
        problem = family_called(base.config.kernel).parse_problem(one.problem)
        (task,) = tasks_for(base, [problem], options, {})
        record = run_problem(replace(task, also=_also(one, arguments))).result.record
        assert record is not None
        path = arguments.out / f"{one.file}.jsonl"
        with ResultsFile(path, one.config, fresh=False, read=read_record, kind="tuning") as file:
            file.append(record)
        print_record(record)


def _compile(wanted: Sequence[Wanted], options: TuneOptions, arguments: argparse.Namespace) -> None:
    """Compile what will be measured into the cache, where there is a GPU to measure it on."""
    kernels: dict[str, Candidate] = {}
    function = None
    for config in dict.fromkeys(one.config for one in wanted):
        base = _base(config)
        family = family_called(base.config.kernel)
        if gpu_timer(family.name, base.config.arch, options) is None:
            continue
        its = [one for one in wanted if one.config == config]
        problems = [family.parse_problem(one.problem) for one in its]
        found, function = kernels_to_compile(base, problems, options)
        kernels |= {kernel.name: kernel for kernel in found}
        for one in its:
            for path in _also(one, arguments):
                kernels.setdefault(Path(path).stem, named_candidate(path))
    if function is not None:
        begin = time.monotonic()
        for _ in run_tasks(function, list(kernels.values()), jobs=arguments.jobs):
            pass
        print(f"{len(kernels)} kernels in {time.monotonic() - begin:.1f} s", flush=True)


def print_record(record: TuneRecord) -> None:
    """Print one line."""
    us = None if record.chosen is None else record.chosen.us
    ratios = {name: round(its / us, 3) for name, its in record.peers_us.items()} if us else {}
    print(record.base, record.problem, record.winner, us, ratios, flush=True)


@lru_cache
def _base(name: str) -> LoadedConfig:
    return load_config(find_configs([name])[0])


@lru_cache
def _table(name: str, chip: str) -> KernelSetFile | None:
    return find_table(_base(name), chip)


def _also(one: Wanted, arguments: argparse.Namespace) -> tuple[str, ...]:
    chip = arguments.table_of
    table = _table(one.config, chip) if chip else None
    path = None if table is None else config_for(table, one.problem)
    return (*arguments.also, *(() if path is None else (str(path),)))
