"""What was measured, in one form: benchmarks/results/*.jsonl, a line for each measured problem.

python benchmarks/measured.py FILE... OUT.jsonl [--commit COMMIT] [--chip NAME] [--date DATE]

FILEs are what `fa4gen bench --json`, `fa4gen tune`, a program of this folder, that of examples/moe
or examples/transformer/chain.py wrote. A line has

problem    what was computed
kernel     the kernel that ``times_us`` are of; "" where a line is of several
chip       the GPU
date       YYYY-MM-DD
commit     the commit of fa4gen that the figures came with
times_us   the kernel's times in microseconds, one a round where rounds are known
peers_us   the median of each peer
details    the row as the program wrote it, with figures in other units and other kernels
run, at    what the program wrote about the whole run, in the first line of each run, and where in
           it the rows of that line belong
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

RESULTS = Path("benchmarks/results")
"""From the root of a checkout."""
KEYS = ("problem", "kernel", "chip", "date", "commit", "times_us", "peers_us", "details")
NOT_ROWS = ("residual_costs", "kernels")
"""Lists of objects that are parts of a row, or no figures."""
_MICROSECONDS_OF_MS = 1e3
_FP8 = "fp8"
"""The kernel with the defaults, in rows of `benchmarks/fp8_attention.py` that name all times."""
At = tuple[str | int, ...]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file of results."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of results as the program wrote them."""
    return [line["details"] for line in read_lines(path)]


def document(path: Path) -> dict[str, Any]:
    """Return the document of a run as the program wrote it, with its rows in their places."""
    whole: dict[str, Any] = {}
    for line in read_lines(path):
        if "run" in line:
            whole = copy.deepcopy(line["run"])
        if "at" in line:
            _inside(whole, line["at"]).append(line["details"])
    return whole


def lines_of(
    written: dict[str, Any] | Sequence[dict[str, Any]], *, chip: str, date: str, commit: str
) -> list[dict[str, Any]]:
    """Return the lines for a document, or for the rows of a file with one a line.

    ``chip`` and ``date`` count where what was written does not say them.
    """
    defaults = {"chip": chip, "date": date, "commit": commit}
    if not isinstance(written, dict):
        return [_line(row, {}, defaults) for row in written]
    run = copy.deepcopy(written)
    lines = []
    for at in list(_lists(written)):
        _inside(run, at).clear()
        around = _around(written, at)
        lines += [_line(row, around, defaults) | {"at": list(at)} for row in _inside(written, at)]
    if not lines:
        return [{**_line({}, written, defaults), "run": run}]
    return [lines[0] | {"run": run}, *lines[1:]]


def text_of(lines: Iterable[dict[str, Any]]) -> str:
    """Return the text of a file of results."""
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def _lists(value: Any, at: At = ()) -> Iterator[At]:
    """Yield the places of the innermost lists of objects: the rows of a document."""
    if isinstance(value, dict):
        for key, one in value.items():
            if key not in NOT_ROWS:
                yield from _lists(one, (*at, key))
    elif isinstance(value, list) and value:
        inner = [place for index, one in enumerate(value) for place in _lists(one, (*at, index))]
        if inner:
            yield from inner
        elif all(isinstance(one, dict) for one in value):
            yield at


def _inside(value: Any, at: Sequence[str | int]) -> Any:
    for key in at:
        value = value[key]
    return value


def _around(value: Any, at: At) -> dict[str, Any]:
    """Return the plain values of all objects around a row, the inner ones over the outer."""
    found: dict[str, Any] = {}
    for key in (None, *at):
        value = value if key is None else value[key]
        if isinstance(value, dict):
            found |= {
                name: one for name, one in value.items() if not isinstance(one, dict | list)
            } | {name: value[name] for name in ("gpu",) if name in value}
    return found


def _line(row: dict[str, Any], around: dict[str, Any], defaults: dict[str, str]) -> dict[str, Any]:
    record = row.get("record", row)
    gpu = around.get("gpu", "")
    kernel, times, peers = _times(record, around)
    chip = record.get("chip") or (gpu["name"] if isinstance(gpu, dict) else gpu)
    date = str(record.get("date") or around.get("date") or defaults["date"])[:10]
    return {
        "problem": _problem(record),
        "kernel": kernel,
        "chip": chip or around.get("device") or around.get("chip") or defaults["chip"],
        "date": date,
        "commit": around.get("tree") or defaults["commit"],
        "times_us": [round(us, 3) for us in times],
        "peers_us": {name: round(us, 3) for name, us in peers.items()},
        "details": row,
    }


def _problem(row: dict[str, Any]) -> str:
    for key in ("problem", "word"):
        if row.get(key):
            return str(row[key])
    if {"batch", "heads", "rows"} <= row.keys():
        return f"{row['batch']}x{row['heads']}x{row['rows']}"
    if {"experts", "tokens"} <= row.keys():
        return f"{row['tokens']} tokens"
    names = [key for key, one in row.items() if isinstance(one, str | bool | int)]
    return ", ".join(f"{key} {row[key]}" for key in names)


def _times(
    row: dict[str, Any], around: dict[str, Any]
) -> tuple[str, list[float], dict[str, float]]:
    """Return the kernel of a row, its times and those of its peers, in microseconds."""
    if isinstance(row.get("ours"), dict):  # of `fa4gen bench`
        ours = [ms * _MICROSECONDS_OF_MS for ms in row["ours"].get("round_medians_ms", ())]
        peers = {
            peer: one["median_ms"] * _MICROSECONDS_OF_MS
            for peer, one in row["peers"].items()
            if "median_ms" in one
        }
        return str(around.get("name", "")), ours, peers
    rounds = row.get("rounds_us")
    if isinstance(rounds, dict) and row["kernel"] in rounds:  # of `benchmarks/sparse_blocks.py`
        peers = {name: statistics.median(us) for name, us in rounds.items()}
        return str(row["kernel"]), rounds[row["kernel"]], _without(peers, row["kernel"])
    if "us_a_step" in row:  # of examples/transformer/chain.py
        return str(row["kernel"]), row["us_a_step"], {}
    if {"experts", "microseconds"} <= row.keys():  # of examples/moe/benchmark.py
        return str(row["experts"]), [row["microseconds"]], {}
    winner = row.get("winner")  # of `fa4gen tune`
    for kernel in row.get("kernels", ()) if winner else ():
        if kernel["name"] == winner:
            rounds = kernel.get("rounds_us") or [us for us in [kernel.get("us")] if us]
            return str(winner), rounds, dict(row.get("peers_us", {}))
    named = row.get("times_us")
    if isinstance(named, dict) and _FP8 in named:
        return _FP8, [named[_FP8]], _without(named, _FP8)
    return "", [], {}


def _without(us: Mapping[str, float], kernel: str) -> dict[str, float]:
    return {name: one for name, one in us.items() if name != kernel}


def main() -> int:
    """Write what a program measured in the form of benchmarks/results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="JSON, or JSON Lines")
    parser.add_argument("out", type=Path, metavar="OUT.jsonl")
    for name in ("commit", "chip", "date"):
        parser.add_argument(f"--{name}", default="")
    given = parser.parse_args()
    lines = []
    for file in given.files:
        text = file.read_text(encoding="utf-8")
        is_lines = file.suffix == ".jsonl"
        written = [json.loads(line) for line in text.splitlines()] if is_lines else json.loads(text)
        lines += lines_of(written, chip=given.chip, date=given.date, commit=given.commit)
    given.out.write_text(text_of(lines), encoding="utf-8")
    print(f"{len(lines)} lines")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
