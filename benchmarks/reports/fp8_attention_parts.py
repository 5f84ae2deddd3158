"""The tables and the picture of attention in fp8; ``docs/update.py`` puts them in the documents."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fp8_errors_picture import errors_of, errors_picture
from measured import read_lines
from tables import table

RESULTS = Path("benchmarks/results/fp8_attention_h200.jsonl")
"""From the root."""
MODEL = Path("benchmarks/results/fp8_attention_model.jsonl")
"""What the model of the sums gives, of `benchmarks/fp8_attention.py model`."""
PICTURE = Path("docs/pictures/fp8_attention_errors.svg")
MEASURED = re.compile(r"256 rows of (\d+) keys, heads 8/1, depth 128, dense, values of mean 1")
PROMOTIONS = {"never": "promote_every never", "every 16 blocks": "promote_every 16"}
KERNELS = ("never", "every 16 blocks", "every 8 blocks", "bf16")


def speed(root: Path) -> str:
    """Return TFLOP/s of each problem that was timed."""
    return _figures(root, "tflops", "{:.0f}")


def errors(root: Path) -> str:
    """Return the relative errors of values that have a mean."""
    return _figures(root, "errors", "{:.4f}")


def model(root: Path) -> str:
    """Return the errors of the model by promotion and keys, of values that have a mean."""
    found = errors_of(read_lines(root / MODEL), model=True)
    keys = sorted({n for points in found.values() for n in points})
    rows = [
        (f"`{name.split()[-1]}`", *(f"{points[n]:.3f}" for n in keys))
        for name, points in found.items()
    ]
    return table(("`promote_every`", *(f"{n} keys" for n in keys)), rows, right=len(keys))


def pictures(root: Path) -> dict[str, str]:
    """Return the picture of these errors, with those measured on an H200, by path."""
    lines = [*read_lines(root / MODEL), *_measured(root)]
    return {PICTURE.as_posix(): errors_picture(lines)}


def _measured(root: Path) -> list[dict[str, Any]]:
    """Return measured errors in the words of the model."""
    lines = []
    for line in read_lines(root / RESULTS):
        if match := MEASURED.fullmatch(line["problem"]):
            errors = line["details"]["errors"]
            named = {word: errors[name] for name, word in PROMOTIONS.items() if name in errors}
            problem = f"{match[1]} keys, values from N(1, 1)"
            lines.append({"problem": problem, "chip": line["chip"], "errors": named})
    return lines


def _figures(root: Path, name: str, form: str) -> str:
    rows = [
        (line["problem"], *(form.format(found[one]) if one in found else "" for one in KERNELS))
        for line in read_lines(root / RESULTS)
        if bool(line["times_us"]) == (name == "tflops") and (found := line["details"][name])
    ]
    return table(("batch x rows", *KERNELS), rows, right=len(KERNELS))
