"""Fits the cost model of attention to measured times, and prints what is left over.

    python benchmarks/fit_attention_model.py                 # residuals of the constants
    python benchmarks/fit_attention_model.py --fit           # search for better ones, print them
    python benchmarks/fit_attention_model.py --folds 5       # judge each fifth by a fit to the rest

What `fa4gen tune` measured is in the fit, too. No GPU is needed: plans are made of the configs that
the figures name.
"""

from __future__ import annotations

from measured import document
from model_fit import RESULTS, Measured, Model, report

from fa4gen.tune.model.attention import AttentionProblem, AttentionTile, predict_attention

FIGURES = RESULTS / "attention_fit_h200.jsonl"
TUNED = tuple(
    RESULTS / f"tuned_{name}_h200.jsonl"
    for name in ("attention", "random_attention", "random_attention_second_seed")
)
EXTENTS = ("batch", "heads", "key_heads", "rows", "keys")
MODEL = Model(
    "attention",
    predict_attention,
    AttentionTile.of,
    AttentionProblem,
    {
        "ghz": (1.4, 1.9),
        "overlap": (2.0, 8.0),
        "droop": (1e-6, 0.4),
        "droop_us": (20.0, 600.0),
        "launch": (2.0, 6.0),
        "hiding": (0.5, 3.0),
        "softmax": (0.05, 0.12),
        "exposed": (0.2, 1.2),
        "overlapped_tile": (0.3, 1.1),
        "memory": (3.0, 4.2),
    },
)


def read_records() -> list[Measured]:
    """Return the problems of FIGURES with their kernels."""
    found = []
    for record in document(FIGURES)["figures"]:
        problem = AttentionProblem(**{name: record[name] for name in EXTENTS})
        kernels = record["kernels"]
        tiles = tuple(MODEL.tile(kernel["config"]) for kernel in kernels)
        config = kernels[0]["config"]
        word = "x".join(str(record[name]) for name in EXTENTS)
        word += f" depth {config['depth']} {config['mask']}"
        times = tuple(kernel["us"] for kernel in kernels)
        found.append(Measured("earlier runs", word, problem, tiles, times))
    return found


if __name__ == "__main__":
    report(MODEL, [*read_records(), *(one for path in TUNED for one in MODEL.tuned(path))])
