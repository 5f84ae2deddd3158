"""Writes sets of problems, fixed ones and ones that are drawn, for ``fa4gen tune --shapes``.

    python benchmarks/problem_sets.py OUT [--seed SEED]
    fa4gen tune CONFIG --shapes OUT/SET/CONFIG.yaml --results OUT/SET --out OUT/SET

OUT/SET/CONFIG.yaml has the problems of a set that are of one config. What is drawn follows from the
seed, which is printed: matrix products, about half of them with rows that begin at odd multiples of
16 bytes, and attention with fewer key heads and other numbers of keys. The set ``padded`` is the
drawn products with k rounded up to a line of L2, which shows what odd rows cost.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LAYERS = ((6144, 4096), (4096, 14336), (28672, 4096), (4608, 3584), (3584, 18944), (37888, 3584))
"""n and k."""
MANY, FEW = (128, 256, 512, 1024, 4096), (1, 16, 32, 64)
NAMED = ("1000x3000x5000", "200x5000x3000", "4104x4104x4104", "2048x2048x2048", "4096x4096x4096")
LARGE = ("8192x8192x8192", "4096x4096x4096", "4096x28672x4096", "16384x4096x4096")
LINE_ELEMENTS = 64
"""Of bf16: k in multiples of it begins every row with a line of L2."""
DEPTHS = (64, 96, 128, 192, 256)
MASKS = ("dense", "causal")
ROWS = (512, 1024, 2048, 4096, 8192, 16384)
TOKENS, COLUMNS = 16384, 2048
LEAST_FLOP, MOST_FLOP = 2e10, 1.5e12
Problems = list[tuple[str, str]]
"""Configs, each with a problem."""


def draw_products(seed: int, count: int = 20) -> list[str]:
    """Return problems of 128 to 4608 rows; n and k are any multiples of 8."""
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        m = int(2 ** rng.uniform(7, 12.17))
        n = 8 * int(2 ** rng.uniform(6.5, 10.2))
        k = 8 * int(2 ** rng.uniform(7, 9.8))
        found.append(f"{m}x{n}x{k}")
    return found


def draw_attention(seed: int, count: int = 30) -> Problems:
    """Return configs and problems of 90 to 11,600 rows."""
    rng = random.Random(seed)
    found: Problems = []
    while len(found) < count:
        depth, mask = rng.choice(DEPTHS), rng.choice(MASKS)
        key_heads, group = rng.choice((1, 2, 4, 8, 16)), rng.choice((1, 2, 4, 8))
        rows = int(2 ** rng.uniform(6.5, 13.5))
        keys = rows if rng.random() < 0.5 else int(rows * 2 ** rng.uniform(0, 4))
        batch, heads = int(2 ** rng.uniform(0, 5)), key_heads * group
        flop = 4 * batch * heads * rows * keys * depth
        if keys <= ROWS[-1] and heads <= 64 and LEAST_FLOP <= flop <= MOST_FLOP:
            found.append((f"d{depth}_{mask}_bf16", f"{batch}x{heads}/{key_heads}x{rows}x{keys}"))
    return found


def padded(word: str) -> str:
    """Return the problem with k rounded up to whole lines."""
    m, n, k = map(int, word.split("x"))
    return f"{m}x{n}x{-(-k // LINE_ELEMENTS) * LINE_ELEMENTS}"


def sets_of(seed: int) -> dict[str, Problems]:
    """Return the problems of every set."""
    many = [f"{m}x{n}x{k}" for n, k in LAYERS for m in MANY]
    few = [f"{m}x{n}x{k}" for n, k in LAYERS for m in FEW]
    drawn = draw_products(seed)

    def products(config: str, words: Iterable[str]) -> Problems:
        return [(config, word) for word in words]

    return {
        "layers": products("gemm_bf16_sm90", many),
        "residual": products("gemm_bf16_residual_sm90", many),
        "few": products("gemm_bf16_sm90", few),
        "drawn": products("gemm_bf16_sm90", [*NAMED, *drawn]),
        "padded": products("gemm_bf16_sm90", map(padded, [*NAMED[:3], *drawn])),
        "fp8": products("gemm_fp8_sm90", [*LARGE, *(f"64x{n}x{k}" for n, k in LAYERS)]),
        "attention": [
            (f"d{depth}_{mask}_bf16", f"{max(1, TOKENS // rows)}x{COLUMNS // depth}x{rows}")
            for rows in ROWS
            for depth in DEPTHS
            for mask in MASKS
        ],
        "drawn_attention": draw_attention(seed),
    }


def main() -> None:
    """Draw, and write the files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    arguments = parser.parse_args()
    for name, problems in sets_of(arguments.seed).items():
        by_config: dict[str, list[str]] = defaultdict(list)
        for config, word in problems:
            by_config[config].append(word)
        folder = arguments.out / name
        folder.mkdir(parents=True, exist_ok=True)
        for config, words in by_config.items():
            text = "".join(f"- {word}\n" for word in words)
            (folder / f"{config}.yaml").write_text(text, encoding="utf-8")
    print(f"seed {arguments.seed}")


if __name__ == "__main__":
    main()
