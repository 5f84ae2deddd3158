"""The C interface for docs/reference, and figures of the launcher for docs/measurements.

``docs/update.py`` puts them there.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from measured import document
from tables import link, table

FILES = (
    Path("benchmarks/results/launcher_attention_h200.jsonl"),
    Path("benchmarks/results/launcher_products_h200.jsonl"),
)
"""From the root."""
HEADER = (
    *("config", "kernel time, ratio", "`fa4gen.load`", "prepared", "C", "prepared"),
    "driver alone",
)
VENDORED = "vendored"
STATUS = re.compile(r"(ACME_\w+) = (\d+),?\s+/\* (.*?) \*/")
FUNCTION = re.compile(r"^ACME_API ([^;]+;)", re.MULTILINE)


def interface_section() -> str:
    """Return the statuses and functions of the launcher's header, those of all families.

    Functions are those that follow the statuses, up to the ones of single kernels.
    """
    from fa4gen.designs.registry import FAMILIES
    from fa4gen.epilogues import RESIDUALS
    from fa4gen.masks import MASKS
    from fa4gen.render.environment import open_templates
    from fa4gen.scores import SCORES
    from fa4gen.vendoring.family import families_in_folder

    names = {
        "prefix": "acme",
        "PREFIX": "ACME",
        "kernels": (),
        "families": families_in_folder(FAMILIES),
        "regions": (),
        "masks": MASKS,
        "scores": SCORES,
        "residuals": RESIDUALS,
        "generator": "fa4gen",
    }
    text = open_templates().environment().get_template("vendored/launcher.h.j2").render(names)
    begin, end = text.index("/* A status is 0"), text.index("/* ---- One function a kernel")
    header = text[begin:end]
    reasons = header.partition("enum acme_reason {")[2].partition("};")[0]
    rows = [(number, f"`{name}`", words) for name, number, words in STATUS.findall(reasons)]
    functions = [" ".join(words.split()) for words in FUNCTION.findall(header)]
    return "\n".join([table(("reason", "name", "meaning"), rows), "", "```c", *functions, "```"])


def launcher_section(root: Path) -> str:
    """Return the text."""
    documents = [document(root / file) for file in FILES]
    gpu, date = documents[0]["gpu"], documents[0]["date"][:10]
    rows = [_row(config) for document in documents for config in document["configs"]]
    links = " and ".join(link(file) for file in FILES)
    return "\n".join(
        [
            f"{gpu['name']}, driver {gpu['driver']}, {date}. Kernel time: the median time through "
            "`fa4gen.load` over that through the C launcher, geometric mean of "
            f"{_sizes(documents)}. The other columns are microseconds that one launch takes in "
            "the calling thread, on a problem of one tile; the last is `cuLaunchKernel` with "
            "the same parameters, a lower bound for every launcher.",
            "",
            table(HEADER, rows, right=len(HEADER) - 1),
            "",
            f"From {links}; to measure again: `fa4gen bench CONFIG... --vendored --no-peers --json "
            "FILE.json`.",
        ]
    )


def _row(config: dict[str, Any]) -> tuple[str, ...]:
    host = config["host_us"]
    cells = [f"{config['geometric_means'][VENDORED]:.3f}"]
    names = ("python", "python_prepared", "vendored", "vendored_prepared", "driver")
    cells += [f"{host[name]:.2f}" for name in names]
    return (f"`{config['name']}`", *cells)


def _sizes(documents: list[dict[str, Any]]) -> str:
    count = len(documents[0]["configs"][0]["sizes"])
    return f"{count} sizes" if count > 1 else "one size"
