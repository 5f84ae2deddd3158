"""Tunes attention for sets of problems in one process, and prints each as it comes.

    python benchmarks/attention_sets.py OUT [--fa3 LIB] [--seconds 100] [--drawn 30]
        [--table-of CHIP] [--problem d192_dense_bf16 16x64/16x385x1071] [--not-fixed]
        [--least-group 2]

Depth 64 to 256, dense and causal, 512 to 16k rows, then problems that are drawn when it runs, with
fewer key heads and other numbers of keys. --problem adds one, ahead of these; --not-fixed leaves
out what is not drawn; --least-group draws problems with so many query heads to a key head. OUT gets
a file of lines for each config, as `fa4gen tune` writes them, and what was drawn. Kernels are
compiled before the first is timed; without a GPU the model chooses.
"""

from __future__ import annotations

import argparse
import json
import random

from problem_sets import Wanted, add_options, run

DEPTHS = (64, 96, 128, 192, 256)
MASKS = ("dense", "causal")
ROWS = (512, 1024, 2048, 4096, 8192, 16384)
TOKENS, COLUMNS = 16384, 2048
LEAST_FLOP, MOST_FLOP = 2e10, 1.5e12


def draw(rng: random.Random, least_group: int = 1) -> tuple[str, str]:
    """Return a config and a problem for it, with so many query heads to a key head at least."""
    while True:
        depth, mask = rng.choice(DEPTHS), rng.choice(MASKS)
        key_heads, group = rng.choice((1, 2, 4, 8, 16)), rng.choice((1, 2, 4, 8))
        rows = int(2 ** rng.uniform(6.5, 13.5))
        keys = rows if rng.random() < 0.5 else int(rows * 2 ** rng.uniform(0, 4))
        batch, heads = int(2 ** rng.uniform(0, 5)), key_heads * group
        flop = 4 * batch * heads * rows * keys * depth
        fits = keys <= ROWS[-1] and heads <= 64 and group >= least_group
        if fits and LEAST_FLOP <= flop <= MOST_FLOP:
            return f"d{depth}_{mask}_bf16", f"{batch}x{heads}/{key_heads}x{rows}x{keys}"


def main() -> None:
    """Draw, and measure until all is done or time is up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    add_options(parser)
    parser.add_argument("--drawn", type=int, default=30)
    parser.add_argument("--not-fixed", action="store_true")
    parser.add_argument("--least-group", type=int, default=1, choices=(1, 2, 4, 8))
    parser.add_argument(
        "--problem", nargs=2, action="append", default=[], metavar=("CONFIG", "PROBLEM")
    )
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    seed = arguments.draw or random.SystemRandom().getrandbits(32)
    rng = random.Random(seed)
    drawn = [draw(rng, arguments.least_group) for _ in range(arguments.drawn)]
    text = json.dumps({"seed": seed, "least_group": arguments.least_group, "drawn": drawn})
    (arguments.out / "drawn.json").write_text(text, encoding="utf-8")
    fixed = [
        (f"d{depth}_{mask}_bf16", f"{max(1, TOKENS // rows)}x{COLUMNS // depth}x{rows}")
        for rows in (() if arguments.not_fixed else ROWS)
        for depth in DEPTHS
        for mask in MASKS
    ]
    problems = [*map(tuple, arguments.problem), *fixed, *drawn]
    run([Wanted(name, word, name) for name, word in problems], arguments)


if __name__ == "__main__":
    main()
