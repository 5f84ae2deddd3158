"""Writes the parts of the documents that follow from the code: run it as python docs/update.py.

Such a part stands between <!-- begin NAME --> and <!-- end NAME -->:

* ``keys`` in docs/configuration.md, from the config schema,
* ``commands`` in README.md, from the command line,
* ``figures`` and ``depth 512`` in README.md, from docs/bench_h200.json and
  docs/bench_h200_depth512.json as `fa4gen bench` wrote them,
* ``gemm figures`` there, from docs/bench_h200_gemm.json once that is there,
* ``classes`` in docs/emulator_mutations.md, from tests/emulator/classes and mutations,
* ``abi`` and ``launcher figures`` in docs/vendoring.md, from the template of the launcher's header
  and from what `fa4gen bench --vendored` wrote.

tests/test_docs.py fails when one of them is not current.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).resolve().parent.parent
FIGURES = Path("docs/bench_h200.json")
"""From the root; no figures are shown while it is not there."""
DEPTH512_FIGURES = Path("docs/bench_h200_depth512.json")
GEMM_FIGURES = Path("docs/bench_h200_gemm.json")
PEER_NAMES = {
    "fa3": "FlashAttention-3",
    "fa2": "FlashAttention-2",
    "cudnn": "cuDNN",
    "efficient": "memory-efficient attention",
    "cublas": "cuBLAS",
    "cublas in place": "cuBLAS in place",
}
_NUMBERS = {"integer": "whole number", "number": "number"}


def key_table() -> str:
    """Return the tables of config keys: what may stand there, the default, the meaning.

    For each kernel family first the keys that are the same for every architecture, then those of
    each.
    """
    from fa4gen.config.editor_schema import editor_schema, models

    schema = editor_schema()
    families: dict[str, list[dict[str, _KeyRow]]] = {}
    for model in models(schema):
        rows = _key_rows(model, schema)
        families.setdefault(rows["kernel"].values, []).append(rows)
    return "\n\n".join(
        part for name, tables in families.items() for part in _family_tables(name, tables)
    )


def _family_tables(name: str, tables: list[dict[str, _KeyRow]]) -> list[str]:
    """Return headings and tables of one family; ``tables`` has the rows of each architecture."""
    title = f"### `kernel: {name.strip('`')}`"
    archs = [rows["arch"].values for rows in tables]
    for rows in tables:  # one key, of which each architecture has its own values
        rows["arch"] = rows["arch"]._replace(values=", ".join(archs))
    common = [row for row in tables[0].values() if all(row in rows.values() for rows in tables)]
    parts = [f"{title}, every architecture", _table(_KeyRow._fields, common)]
    for arch, rows in zip(archs, tables, strict=True):
        own = [row for row in rows.values() if row not in common]
        parts += [f"{title} for {arch}", _table(_KeyRow._fields, own)]
    return parts


class _KeyRow(NamedTuple):
    key: str
    values: str
    default: str
    meaning: str


def _key_rows(model: dict[str, Any], schema: dict[str, Any]) -> dict[str, _KeyRow]:
    return {
        name: _KeyRow(
            f"`{name}`",
            _values(node, schema),
            "required" if name in model["required"] else _default(node),
            node.get("description", ""),
        )
        for name, node in model["properties"].items()
    }


def command_table() -> str:
    """Return the table of commands."""
    from fa4gen.cli.main import COMMANDS

    return _table(
        ("command", "what it does"),
        [(f"`fa4gen {name}`", command.short_help) for name, command in COMMANDS.items()],
    )


def bug_classes_table() -> str:
    """Return the table of known bug classes and of what the emulator reports of each."""
    if "tests" not in sys.modules:  # which the tests make importable themselves
        sys.path.append(str(ROOT))
    table: Any = importlib.import_module("tests.emulator.classes.table")
    return f"{table.summary()}\n\n{_table(table.HEADER, table.rows())}"


def _vendoring_parts() -> Any:
    """Return the module beside this one, which makes the parts of docs/vendoring.md."""
    if str(ROOT / "docs") not in sys.path:
        sys.path.append(str(ROOT / "docs"))
    return importlib.import_module("vendoring_parts")


def figures_section(path: Path = ROOT / FIGURES) -> str:
    """Return the section with the measured speeds; empty while there are none."""
    if not path.is_file():
        return ""
    data = json.loads(path.read_text())
    peers = ", ".join(_peers(data))
    versions = ", ".join(f"{name} {version}" for name, version in data["versions"].items())
    picture = path.with_suffix(".png")
    drawn = f", [a picture](docs/{picture.name}) shows all kernels" if picture.is_file() else ""
    return "\n".join(
        [
            "## Figures",
            "",
            f"{_machine(data)}. TFLOP/s, and in brackets the ratio to the fastest peer ({peers}) "
            "in the same run. Forward, "
            f"{_protocol(data)}, in which all kernels of a size take turns, then the median of the "
            "rounds.",
            "",
            _figures_table(data),
            "",
            f"With {versions}. [{FIGURES}]({FIGURES}) has every peer, round and "
            f"spread{drawn}. To measure again: "
            "`fa4gen bench CONFIG... --fa3 LIBRARY --json FILE.json --plot FILE.png`, with "
            "PyTorch installed for the peers cuDNN and FlashAttention-2.",
        ]
    )


def depth512_section(path: Path = ROOT / DEPTH512_FIGURES) -> str:
    """Return the table of depth 512, where other peers run; empty while there are no figures."""
    if not path.is_file():
        return ""
    data = json.loads(path.read_text())
    return "\n".join(
        [
            "At depth 512 FlashAttention-3, FlashAttention-2 and cuDNN have no kernel; the peer is "
            f"the only one of PyTorch that runs ({', '.join(_peers(data))}). "
            f"{_machine(data)}, {_protocol(data)}; "
            f"[{DEPTH512_FIGURES.name}]({DEPTH512_FIGURES}):",
            "",
            _figures_table(data),
        ]
    )


def gemm_section(path: Path = ROOT / GEMM_FIGURES) -> str:
    """Return the section with the speeds of matrix products; empty while there are none."""
    if not path.is_file():
        return ""
    data = json.loads(path.read_text())
    versions = ", ".join(f"{name} {version}" for name, version in data["versions"].items())
    beta = data["protocol"]["beta"]
    parts = [
        f"{_machine(data)}. TFLOP/s (2mnk over the time), and in brackets the ratio to cuBLAS "
        "through PyTorch in the same run: `torch.mm(a, b, out=out)` without a residual, "
        f"`torch.addmm(c, a, b, beta={beta['matrix']}, out=out)` with a matrix and "
        f"beta={beta['row']:g} with a row; an activation is a second kernel there. In place is "
        "`torch.addmm` into C itself, which is then gone. Random data, cold L2. Times are from "
        f"CUDA events: the median of each of {data['protocol']['rounds']} rounds, in which all "
        "kernels of a size take turns, then the median of the rounds.",
        _gemm_table(data),
    ]
    if data.get("residual_costs"):
        parts += ["What the residual costs, in time:", _residual_table(data)]
    name = path.name
    parts.append(
        f"With {versions}. [docs/{name}](docs/{name}) has every peer, round and spread. To measure "
        "again: `fa4gen bench configs/gemm/sm_90a --json FILE.json`, with PyTorch installed."
    )
    return "\n\n".join(parts)


def _gemm_table(data: dict[str, Any]) -> str:
    """One row for a config: speeds, the ratio to cuBLAS, the means over the sizes."""
    configs = [config for config in data["configs"] if config["sizes"]]
    sizes = list(dict.fromkeys(_extents(size) for config in configs for size in config["sizes"]))
    in_place = any("cublas in place" in _means(config) for config in configs)
    means = ("cublas", "cublas in place") if in_place else ("cublas",)
    rows = []
    for config in configs:
        by_size = {_extents(size): size for size in config["sizes"]}
        cells = [_gemm_cell(by_size.get(extents)) for extents in sizes]
        own = _means(config)
        cells += [f"{own[peer]:.3f}" if peer in own else "-" for peer in means]
        rows.append((f"`{config['name']}`", *cells))
    words = [_extents_word(extents) for extents in sizes]
    header = ("config", *words, *(f"mean to {PEER_NAMES[peer]}" for peer in means))
    return _table(header, rows, right=len(header) - 1)


def _gemm_cell(size: dict[str, Any] | None) -> str:
    if size is None:
        return "-"
    ratio = _without_activation(size["ratios"]).get("cublas")
    compared = f" ({ratio:.2f})" if ratio is not None else ""
    return f"{size['ours']['tflops']:.0f}{compared}"


def _means(config: dict[str, Any]) -> dict[str, float]:
    return _without_activation(config["geometric_means"])


def _without_activation(by_peer: dict[str, float]) -> dict[str, float]:
    """Call "cublas + relu" just "cublas"."""
    return {name.partition(" + ")[0]: value for name, value in by_peer.items()}


def _residual_table(data: dict[str, Any]) -> str:
    costs = data["residual_costs"]
    words = list(dict.fromkeys(word for cost in costs for word in cost["sizes"]))
    named = {size["word"]: size for config in data["configs"] for size in config["sizes"]}
    rows = [
        (
            f"`{cost['config']}`",
            f"`{cost['without']}`",
            *(
                f"{100 * cost['sizes'][word]:+.1f} %" if word in cost["sizes"] else "-"
                for word in words
            ),
        )
        for cost in costs
    ]
    header = ("config", "over", *(_extents_word(_extents(named[word])) for word in words))
    return _table(header, rows, right=len(words))


def _extents(size: dict[str, Any]) -> tuple[int, int, int, int]:
    return size.get("batch", 1), size["m"], size["n"], size["k"]


def _extents_word(extents: tuple[int, int, int, int]) -> str:
    batch, m, n, k = extents
    word = f"{m}³" if m == n == k else f"{m} x {n} x {k}"
    return f"{batch} of {word}" if batch > 1 else word


def _peers(data: dict[str, Any]) -> list[str]:
    measured = [size for config in data["configs"] for size in config["sizes"]]
    found = dict.fromkeys(PEER_NAMES.get(peer, peer) for size in measured for peer in size["peers"])
    return list(found)


def _machine(data: dict[str, Any]) -> str:
    gpu = data["gpu"]
    driver = f", driver {gpu['driver']}" if "driver" in gpu else ""
    return f"{gpu['name']}{driver}, {data['date'][:10]}"


def _protocol(data: dict[str, Any]) -> str:
    protocol = data["protocol"]
    return (
        f"batch * rows = {protocol['tokens']}, heads * depth = {protocol['columns']}, random "
        "data; a causal mask counts half. Times are from CUDA events: the median of each of "
        f"{protocol['rounds']} rounds"
    )


def _figures_table(data: dict[str, Any]) -> str:
    configs = [config for config in data["configs"] if config["sizes"]]
    sizes = list(dict.fromkeys(size["rows"] for config in configs for size in config["sizes"]))
    rows = [_figures_row(config, sizes) for config in configs]
    words = [f"{size // 1024}k" if size % 1024 == 0 else str(size) for size in sizes]
    header = ("config", *(f"{word} rows" for word in words), "geometric mean")
    return _table(header, rows, right=len(sizes) + 1)


def _figures_row(config: dict[str, Any], sizes: list[int]) -> tuple[str, ...]:
    by_rows = {size["rows"]: size for size in config["sizes"]}
    cells = []
    for rows in sizes:
        size = by_rows.get(rows)
        if size is None:
            cells.append("-")
            continue
        ratio = size["ratios"].get("best")
        compared = f" ({ratio:.2f})" if ratio is not None else ""
        cells.append(f"{size['ours']['tflops']:.0f}{compared}")
    mean = config["geometric_means"].get("best")
    return (f"`{config['name']}`", *cells, f"{mean:.3f}" if mean is not None else "-")


def _default(node: dict[str, Any]) -> str:
    if "default" not in node:
        return "the file's stem"
    value = node["default"]
    return "none given" if value is None else f"`{_yaml(value)}`"


def _yaml(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _values(node: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return what may stand at a key, in words, the alternatives in the schema's order."""
    if "$ref" in node:
        return _values(schema["$defs"][node["$ref"].rpartition("/")[2]], schema)
    if "anyOf" in node:
        words = [_values(item, schema) for item in node["anyOf"] if item.get("type") != "null"]
        return " or ".join(words)
    if "const" in node:
        return f"`{_yaml(node['const'])}`"
    if "enum" in node:
        return ", ".join(f"`{_yaml(value)}`" for value in node["enum"])
    if "properties" in node:
        inner = (f"{key}: {_values(item, schema)}" for key, item in node["properties"].items())
        return "{" + ", ".join(inner) + "}"
    if node["type"] == "boolean":
        return "`true`, `false`"
    if node["type"] == "string":
        return f"text that matches `{node['pattern']}`" if "pattern" in node else "text"
    return _number_range(node)


def _number_range(node: dict[str, Any]) -> str:
    step = node.get("multipleOf")
    kind = f"multiple of {step}" if step else _NUMBERS[node["type"]]
    above, low = node.get("exclusiveMinimum"), node.get("minimum")
    below, high = node.get("exclusiveMaximum"), node.get("maximum")
    if low is not None and high is not None:
        return f"{kind} from {low} to {high}"
    limits = {"above": above, "from": low, "below": below, "up to": high}
    return kind + "".join(f" {word} {at}" for word, at in limits.items() if at is not None)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], right: int = 0) -> str:
    """Return a Markdown table, its last ``right`` columns aligned to the right."""
    rule = ["---"] * (len(header) - right) + ["---:"] * right
    lines = [header, rule, *([" ".join(cell.split()) for cell in row] for row in rows)]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )


PARTS: tuple[tuple[str, str, Callable[[], str]], ...] = (
    ("docs/configuration.md", "keys", key_table),
    ("README.md", "commands", command_table),
    ("README.md", "figures", figures_section),
    ("README.md", "depth 512", depth512_section),
    *([("README.md", "gemm figures", gemm_section)] if (ROOT / GEMM_FIGURES).is_file() else []),
    ("docs/emulator_mutations.md", "classes", bug_classes_table),
    ("docs/vendoring.md", "abi", lambda: _vendoring_parts().abi_section()),
    ("docs/vendoring.md", "launcher figures", lambda: _vendoring_parts().launcher_section(ROOT)),
)
"""File, name of the part, what it should be."""


def replaced(text: str, name: str, content: str) -> str:
    """Return ``text`` with ``content`` as its part ``name``; ValueError when it has none."""
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise ValueError(f"expected one part between {begin.strip()} and {end}")
    return pattern.sub(lambda _: begin + (content + "\n" if content else "") + end, text)


def current_texts() -> dict[str, str]:
    """Return what each document with such parts should hold, by its path from the root."""
    texts: dict[str, str] = {}
    for file, name, make in PARTS:
        text = texts.get(file) or (ROOT / file).read_text(encoding="utf-8")
        texts[file] = replaced(text, name, make())
    return texts


def main() -> int:
    """Bring the documents up to date and say which changed."""
    for file, text in current_texts().items():
        path = ROOT / file
        if path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"updated {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
