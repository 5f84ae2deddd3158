"""Tunes matrix products for sets of problems in one process, and prints each as it comes.

    python benchmarks/gemm_sets.py OUT --set drawn --set residual [--seconds 100] [--rounds 5]

OUT gets a file of lines for each set, as `fa4gen tune` writes them. Kernels are compiled before
the first is timed; without a GPU the model chooses. What is drawn is printed with its seed: rows of
A and B begin at odd multiples of 16 bytes in about half of the shapes. The set `padded` is the
drawn one with k rounded up to a line of L2, which shows what odd rows cost.
"""

from __future__ import annotations

import argparse
import json
import random

from problem_sets import Wanted, add_options, run

LAYERS = ((6144, 4096), (4096, 14336), (28672, 4096), (4608, 3584), (3584, 18944), (37888, 3584))
MANY, FEW = (128, 256, 512, 1024, 4096), (1, 16, 32, 64)
NAMED = ("1000x3000x5000", "200x5000x3000", "4104x4104x4104", "2048x2048x2048", "4096x4096x4096")
LARGE = ("8192x8192x8192", "4096x4096x4096", "4096x28672x4096", "16384x4096x4096")
LINE_ELEMENTS = 64
"""Of bf16: k in multiples of it begins every row with a line of L2."""


def draw(seed: int, count: int = 20) -> list[str]:
    """Return problems of 128 to 4608 rows; n and k are any multiples of 8."""
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        m = int(2 ** rng.uniform(7, 12.17))
        n = 8 * int(2 ** rng.uniform(6.5, 10.2))
        k = 8 * int(2 ** rng.uniform(7, 9.8))
        found.append(f"{m}x{n}x{k}")
    return found


def padded(word: str) -> str:
    """Return the problem with k rounded up to whole lines."""
    m, n, k = map(int, word.split("x"))
    return f"{m}x{n}x{-(-k // LINE_ELEMENTS) * LINE_ELEMENTS}"


def problems_of(name: str, drawn: list[str]) -> tuple[str, list[str]]:
    """Return the config and the problems of a set."""
    many = [f"{m}x{n}x{k}" for n, k in LAYERS for m in MANY]
    few = [f"{m}x{n}x{k}" for n, k in LAYERS for m in FEW]
    sets = {
        "layers": ("gemm_bf16_sm90", many),
        "residual": ("gemm_bf16_residual_sm90", many),
        "few": ("gemm_bf16_sm90", few),
        "drawn": ("gemm_bf16_sm90", [*NAMED, *drawn]),
        "padded": ("gemm_bf16_sm90", [padded(word) for word in (*NAMED[:3], *drawn)]),
        "fp8": ("gemm_fp8_sm90", [*LARGE, *(f"64x{n}x{k}" for n, k in LAYERS)]),
        "fp8_large": ("gemm_fp8_sm90", list(LARGE)),
    }
    return sets[name]


def main() -> None:
    """Draw, and measure until all is done or time is up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    add_options(parser)
    parser.add_argument("--set", action="append", required=True, dest="sets")
    arguments = parser.parse_args()
    seed = arguments.draw or random.SystemRandom().getrandbits(32)
    drawn = draw(seed)
    arguments.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"seed": seed, "drawn": drawn})
    (arguments.out / "drawn_gemm.json").write_text(text, encoding="utf-8")
    print(text, flush=True)
    wanted = []
    for name in arguments.sets:
        config, words = problems_of(name, drawn)
        wanted += [Wanted(config, word, name) for word in words]
    run(wanted, arguments)


if __name__ == "__main__":
    main()
