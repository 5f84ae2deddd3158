"""The tables and the picture of attention in fp8; ``docs/update.py`` puts them in the documents."""

from __future__ import annotations

import re
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fp8_errors_picture import errors_of, errors_picture
from measured import document, read_lines
from tables import table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FOLDER = Path("benchmarks/results")
"""From the root."""
RESULTS = FOLDER / "fp8_attention_h200.jsonl"
DRAWN = FOLDER / "fp8_attention_drawn_h200.jsonl"
ERRORS = FOLDER / "fp8_attention_errors_h200.jsonl"
VARIANTS = FOLDER / "fp8_attention_variants_h200.jsonl"
PROMOTIONS = FOLDER / "fp8_attention_promotions_h200.jsonl"
"""An earlier run: ``promote_every: 8``, and errors at depths 64 and 256."""
PAGES = FOLDER / "fp8_attention_pages_h200.jsonl"
"""Paged prefill, a scale a head and a scale a page, as `fa4gen bench` wrote it."""
MODEL = FOLDER / "fp8_attention_model.jsonl"
"""Errors by the model of the sums, written by `benchmarks/fp8_attention.py model`."""
PICTURE = Path("docs/pictures/fp8_attention_errors.svg")

SHAPE = re.compile(r"\d+x(?P<rows>\d+), heads \d+/\d+, depth (?P<depth>\d+), (?P<mask>\w+)")
DEPTHS = (128, 64, 256)
MASKS = ("dense", "causal")
LONG_ROWS = 2048
"""Rows from which drawn problems have a mean of their own."""
OURS = {
    "fp8": "default",
    "fp8, contiguous keys": "`value_major: keys`",
    "fp8, never promoted": "`never`",
}
PEERS = {"cudnn fp8": "cuDNN", "fa3 fp8": "FlashAttention-3", "bf16": "own bf16"}
FORMS = ("fp8", "fp8, contiguous keys")
"""The kernels in the summary of ratios."""
VARIANT_NAMES = {
    "depth": "default",
    "depth r0": "`rescale_threshold: 0`",
    "depth r1": "`rescale_threshold: 1`",
    "keys": "`value_major: keys`",
    "keys st3": "keys, 3 stages",
    "keys bm128 bn224": "keys, 128 x 224",
    "keys bm128 bn160": "keys, 128 x 160",
}
ERROR_NAMES = {
    "cudnn fp8": "cuDNN",
    "fa3 fp8": "FlashAttention-3",
    **{f"promote_every {every}": f"`{every}`" for every in ("never", 64, "auto", 4, 1)},
}
PAGED = {"lognormal": "lengths lognormal, the longest", "equal": "each of"}
"""Words for the lengths of paged batches, before their rows."""
KERNELS = ("never", "every 16 blocks", "every 8 blocks", "bf16")
"""Kernels of the earlier run."""

Line = dict[str, Any]


def times(line: Line) -> dict[str, float]:
    """Return the microseconds of each kernel of a line by name."""
    return {line["kernel"]: statistics.median(line["times_us"]), **line["peers_us"]}


def ratio(line: Line, ours: str, peer: str) -> float:
    """Return the peer's time over ours: above 1 ours is faster."""
    known = times(line)
    return known[peer] / known[ours]


def summary(root: Path) -> str:
    """Return means and least ratios by depth and mask, of the default and of contiguous keys."""
    lines = read_lines(root / RESULTS)
    rows = []
    for depth in DEPTHS:
        for mask in MASKS:
            some = _of(lines, depth=str(depth), mask=mask)
            for ours in FORMS:
                found = [[ratio(line, ours, peer) for line in some] for peer in PEERS]
                cells = (f"{statistics.geometric_mean(one):.3f} ({min(one):.3f})" for one in found)
                rows.append((str(depth), mask, OURS[ours], *cells))
    return table(("depth", "mask", "values", *PEERS.values()), rows, right=len(PEERS))


def speed(root: Path, depth: int) -> str:
    """Return TFLOP/s and ratios of each problem of a depth, then means and least ratios."""
    lines = _of(read_lines(root / RESULTS), depth=str(depth))
    groups = {mask: _of(lines, mask=mask) for mask in MASKS}
    names = (*OURS, *PEERS)
    rows = [
        (
            line["problem"].replace(f", depth {depth}", ""),
            *(f"{line['details']['tflops'][name]:.0f}" for name in names),
            *_ratios(line),
        )
        for line in lines
    ]
    rows += _means(groups, blank=len(names))
    header = ("batch x rows", *OURS.values(), *PEERS.values(), *_over())
    return table(header, rows, right=len(header) - 1)


def drawn(root: Path) -> str:
    """Return TFLOP/s and ratios of the drawn problems, then means and least ratios."""
    lines = read_lines(root / DRAWN)
    lines.sort(key=lambda line: int(_shape(line)["rows"]))
    rows = [
        (
            line["problem"].replace(", depth 128", ""),
            f"{line['details']['tflops']['fp8']:.0f}",
            *_ratios(line),
        )
        for line in lines
    ]
    long = [line for line in lines if int(_shape(line)["rows"]) >= LONG_ROWS]
    groups = {f"all {len(lines)}": lines, f"{len(long)} of {LONG_ROWS} rows and more": long}
    rows += _means(groups, blank=1)
    return table(("batch x rows", "TFLOP/s", *_over()), rows, right=1 + len(PEERS))


def errors(root: Path, mean: int) -> str:
    """Return relative errors by number of keys, of values with this mean."""
    problem = re.compile(rf"(\d+) keys, values from N\({mean}, 1\)")
    rows = [
        (match[1], *(f"{line['details']['errors'][name]:.4f}" for name in ERROR_NAMES))
        for line in read_lines(root / ERRORS)
        if (match := problem.fullmatch(line["problem"]))
    ]
    return table(("keys", *ERROR_NAMES.values()), rows, right=1 + len(ERROR_NAMES))


def variants(root: Path) -> str:
    """Return TFLOP/s and errors of variants of the kernel; empty where one did not compile."""
    lines = read_lines(root / VARIANTS)
    rows = []
    for name, word in VARIANT_NAMES.items():
        cells = []
        for line in lines:
            found = line["details"]
            if name in found["tflops"]:
                share = ratio(line, name, "depth")
                error = found["errors"][name]
                cells.append(f"{found['tflops'][name]:.0f}, {share:.3f}, {error:.4f}")
            else:
                cells.append("")
        rows.append((word, *cells))
    problems = (line["problem"].replace(", depth 128", "") for line in lines)
    return table(("kernel", *problems), rows, right=len(lines))


def promotions(root: Path) -> str:
    """Return TFLOP/s of the earlier run, by ``promote_every``."""
    return _earlier(root, "tflops", "{:.0f}", ", values of mean 0")


def other_depths(root: Path) -> str:
    """Return relative errors of the earlier run at depths 64 and 256, values with a mean."""
    return _earlier(root, "errors", "{:.4f}", ", values of mean 1")


def pages(root: Path) -> str:
    """Return TFLOP/s of paged prefill by ``kv_scale`` and tile, a column for each batch."""
    rows: list[tuple[str, ...]] = []
    problems: dict[str, str] = {}
    configs = document(root / PAGES)["configs"]
    for config in sorted(configs, key=lambda one: (one["kv_scale"], one["name"])):
        sizes = {size["word"]: size for size in config["sizes"]}
        problems |= {
            word: f"{size['batch']} sequences, {PAGED[word]} {size['rows']}"
            for word, size in sizes.items()
        }
        cells = (f"{sizes[word]['ours']['tflops']:.0f}" for word in problems)
        rows.append((f"`{config['kv_scale']}`", f"{config['BM']} x {config['BN']}", *cells))
    return table(("`kv_scale`", "tile", *problems.values()), rows, right=len(problems))


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
    lines = [*read_lines(root / MODEL), *read_lines(root / ERRORS)]
    return {PICTURE.as_posix(): errors_picture(lines)}


def _shape(line: Line) -> re.Match[str]:
    match = SHAPE.fullmatch(line["problem"])
    assert match is not None, line["problem"]
    return match


def _of(lines: Sequence[Line], **wanted: str) -> list[Line]:
    """Return the lines with these words in their shapes."""
    return [line for line in lines if wanted.items() <= _shape(line).groupdict().items()]


def _over() -> tuple[str, ...]:
    return tuple(f"/ {word}" for word in PEERS.values())


def _ratios(line: Line) -> tuple[str, ...]:
    return tuple(f"{ratio(line, 'fp8', peer):.3f}" for peer in PEERS)


def _means(groups: Mapping[str, Sequence[Line]], *, blank: int) -> list[tuple[str, ...]]:
    """Return two rows a group: geometric means of the ratios, and the least."""
    rows = []
    for name, lines in groups.items():
        found = [[ratio(line, "fp8", peer) for line in lines] for peer in PEERS]
        empty = ("",) * blank
        means = (f"{statistics.geometric_mean(one):.3f}" for one in found)
        rows.append((f"{name}, geometric mean", *empty, *means))
        rows.append((f"{name}, least", *empty, *(f"{min(one):.3f}" for one in found)))
    return rows


def _earlier(root: Path, name: str, form: str, ending: str) -> str:
    rows = [
        (
            line["problem"].removesuffix(ending),
            *(form.format(found[one]) if one in found else "" for one in KERNELS),
        )
        for line in read_lines(root / PROMOTIONS)
        if bool(line["times_us"]) == (name == "tflops") and (found := line["details"][name])
    ]
    return table(("batch x rows", *KERNELS), rows, right=len(KERNELS))
