"""Writes the parts of the documents that follow from the code: run it as python docs/update.py.

Such a part is between <!-- begin NAME --> and <!-- end NAME -->; PARTS says which there are, and
from what they are made: the code itself, or results in benchmarks/results. Pictures in
docs/pictures are drawn from the same results.

It writes fa4gen/shipped_names.py, too, from the names of the shipped configs.
tests/test_docs.py fails when one of them is not current.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.registry import ConfigModel

ROOT = Path(__file__).resolve().parent.parent
for _folder in ("docs", "benchmarks", "benchmarks/reports"):  # where the modules below are
    if str(ROOT / _folder) not in sys.path:
        sys.path.append(str(ROOT / _folder))

import bench_parts  # noqa: E402
import fp8_attention_parts  # noqa: E402
import grouped_parts  # noqa: E402
import model_parts  # noqa: E402
import moe_parts  # noqa: E402
import name_parts  # noqa: E402
import readme_parts  # noqa: E402
import scaled_parts  # noqa: E402
import short_parts  # noqa: E402
import target_parts  # noqa: E402
import tune_parts  # noqa: E402
import vendoring_parts  # noqa: E402
from tables import table  # noqa: E402

FIXED = "fixed"
"""The default of a key that has one value in a design."""
_NUMBERS = {"integer": "whole number", "number": "number"}


def key_table() -> str:
    """Return the tables of config keys: allowed values, default, meaning.

    For each kernel family first the keys that are the same for every design, then those of each.
    """
    from fa4gen.config.json_schema import editor_schema
    from fa4gen.designs.registry import FAMILIES, MODELS

    schema = editor_schema()
    return "\n\n".join(
        part
        for family in FAMILIES.values()
        for part in _family_tables(
            f"### `kernel: {family.name}`",
            {
                _model_words(model): _key_rows(schema["$defs"][model.load().__name__], schema)
                for model in MODELS
                if model.design.family is family
            },
        )
    )


def _model_words(model: ConfigModel) -> str:
    """Return the architectures of a model, and what else asks for its design."""
    depths, packed = model.values("depth") or (), model.values("pack_heads")
    words = [f"`{arch}`" for arch in model.archs]
    words += [f"`depth: {depths[0]}`"] if len(depths) == 1 else []
    return ", ".join([*words, *(["`pack_heads: true`"] if packed == (True,) else [])])


def _family_tables(title: str, tables: dict[str, dict[str, _KeyRow]]) -> list[str]:
    """Return headings and tables of one family; ``tables``: the rows of each design."""
    archs = dict.fromkeys(
        arch for rows in tables.values() for arch in rows["arch"].values.split(", ")
    )
    for rows in tables.values():  # one key, of which each design has its own values
        rows["arch"] = rows["arch"]._replace(values=", ".join(archs))
    first, *others = tables.values()
    common = [row for row in first.values() if all(row in rows.values() for rows in others)]
    parts = [f"{title}, every design", table(_KeyRow._fields, common)]
    for words, rows in tables.items():
        own = [row for row in rows.values() if row not in common]
        if not own:
            continue
        free = [row for row in own if row.default != FIXED]
        parts += [f"{title} for {words}", table(_KeyRow._fields, free)]
        fixed = [_setting(row) for row in own if row.default == FIXED]
        if fixed:
            parts.append(
                f"Fixed, and another value is refused with the reason: {', '.join(fixed)}."
            )
    return parts


def _setting(row: _KeyRow) -> str:
    """Return a fixed key with the value that may be given, if it is not auto alone."""
    values = [value for value in re.findall(r"`([^`]+)`", row.values) if value != "auto"]
    return f"`{row.key.strip('`')}: {values[-1]}`" if values else row.key


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

    return table(
        ("command", "what it does"),
        [(f"`fa4gen {name}`", command.short_help) for name, command in COMMANDS.items()],
    )


def bug_classes_table() -> str:
    """Return the table of known bug classes and of what the emulator reports of each."""
    if "tests" not in sys.modules:  # which the tests make importable themselves
        sys.path.append(str(ROOT))
    classes: Any = importlib.import_module("tests.emulator.classes.table")
    return f"{classes.summary()}\n\n{table(classes.HEADER, classes.rows())}"


def _default(node: dict[str, Any]) -> str:
    if "default" not in node:
        return FIXED if node.get("description", "").startswith("Fixed: ") else "the file's stem"
    value = node["default"]
    return "none given" if value is None else f"`{_yaml(value)}`"


def _yaml(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _values(node: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return the values that a key allows, in words, the alternatives in the schema's order."""
    if "$ref" in node:
        return _values(schema["$defs"][node["$ref"].rpartition("/")[2]], schema)
    alternatives = node.get("anyOf") or node.get("oneOf")
    if alternatives:
        words = [
            item["description"] if item.get("type") == "string" and "description" in item
            else _values(item, schema)
            for item in alternatives
            if item.get("type") != "null"
        ]  # fmt: skip
        return " or ".join(words)
    if "const" in node:
        return f"`{_yaml(node['const'])}`"
    if "enum" in node:
        return ", ".join(f"`{_yaml(value)}`" for value in node["enum"])
    if "properties" in node:
        inner = (f"{key}: {_values(item, schema)}" for key, item in node["properties"].items())
        return "{" + ", ".join(inner) + "}"
    if node["type"] == "object":
        return f"{{name: {_values(node['additionalProperties'], schema)}, ...}}"
    if node["type"] == "array":
        return f"[{_values(node['items'], schema)}, ...]"
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


PARTS: tuple[tuple[str, str, Callable[[], str]], ...] = (
    ("README.md", "role", lambda: readme_parts.role_section(ROOT)),
    ("docs/reference/configuration.md", "keys", key_table),
    ("docs/reference/commands.md", "commands", command_table),
    ("docs/guide/targets.md", "targets", target_parts.targets_table),
    ("docs/measurements/benchmarks.md", "attention", lambda: bench_parts.attention(ROOT)),
    ("docs/measurements/benchmarks.md", "depth 512", lambda: bench_parts.depth512(ROOT)),
    ("docs/measurements/benchmarks.md", "ffpa", lambda: bench_parts.ffpa(ROOT)),
    ("docs/measurements/benchmarks.md", "gemm", lambda: bench_parts.gemm(ROOT)),
    (
        "docs/measurements/scaled-products.md",
        "scaled products",
        lambda: scaled_parts.products(ROOT),
    ),
    (
        "docs/measurements/scaled-products.md",
        "scaled products, drawn",
        lambda: scaled_parts.products(ROOT, scaled_parts.DRAWN),
    ),
    *(
        (
            "docs/measurements/grouped-products.md",
            f"{dtype} {groups}",
            partial(grouped_parts.grouped, ROOT, dtype, groups),
        )
        for dtype, groups in (("bf16", "offsets"), ("fp8", "offsets"), ("fp8", "masked"))
    ),
    ("docs/measurements/grouped-products.md", "gathered", lambda: grouped_parts.gathered(ROOT)),
    ("docs/measurements/grouped-products.md", "gradients", lambda: grouped_parts.gradients(ROOT)),
    ("examples/moe/README.md", "layers", lambda: moe_parts.layers(ROOT)),
    (
        "docs/guide/fp8-attention.md",
        "model",
        lambda: fp8_attention_parts.model(ROOT),
    ),
    *(
        (
            "docs/measurements/fp8-attention.md",
            f"depth {depth}",
            partial(fp8_attention_parts.speed, ROOT, depth),
        )
        for depth in fp8_attention_parts.DEPTHS
    ),
    *(
        (
            "docs/measurements/fp8-attention.md",
            f"errors of mean {mean}",
            partial(fp8_attention_parts.errors, ROOT, mean),
        )
        for mean in (0, 1)
    ),
    *(
        ("docs/measurements/fp8-attention.md", make.__name__.replace("_", " "), partial(make, ROOT))
        for make in (
            fp8_attention_parts.summary,
            fp8_attention_parts.drawn,
            fp8_attention_parts.variants,
            fp8_attention_parts.promotions,
            fp8_attention_parts.other_depths,
            fp8_attention_parts.pages,
        )
    ),
    (
        "docs/measurements/tuned-products.md",
        "tuned products",
        lambda: tune_parts.product_summary(ROOT),
    ),
    (
        "docs/measurements/tuned-attention.md",
        "tuned attention",
        lambda: tune_parts.attention_table(ROOT),
    ),
    (
        "docs/measurements/tuned-attention.md",
        "random attention",
        lambda: tune_parts.random_attention_table(ROOT),
    ),
    (
        "docs/measurements/tuned-attention.md",
        "random attention, tiles of several heads",
        lambda: tune_parts.random_attention_table(ROOT, tune_parts.RANDOM_ATTENTION_TILE_HEADS),
    ),
    ("docs/how-it-works/cost-model.md", "agreement", model_parts.agreement_table),
    ("docs/guide/merging.md", "measured", lambda: short_parts.merge(ROOT)),
    ("docs/guide/sparse-blocks.md", "measured", lambda: short_parts.sparse(ROOT)),
    ("docs/guide/dependent-launches.md", "measured", lambda: short_parts.dependent(ROOT)),
    ("examples/transformer/README.md", "steps", lambda: short_parts.steps(ROOT)),
    (
        "docs/reference/masks-and-scores.md",
        "max_logits",
        lambda: short_parts.max_logits(ROOT),
    ),
    ("docs/measurements/h100.md", "sets of an H100", lambda: tune_parts.h100_table(ROOT)),
    ("docs/measurements/bug-classes.md", "classes", bug_classes_table),
    ("docs/reference/c-interface.md", "interface", vendoring_parts.interface_section),
    (
        "docs/measurements/launching.md",
        "launcher figures",
        lambda: vendoring_parts.launcher_section(ROOT),
    ),
)
"""File, name of the part, what it should be."""


LINK = re.compile(r'(\]\(|src=")(?![a-z]+:|#)([^)"#\s]+)')


def moved(content: str, file: str) -> str:
    """Return ``content``, whose links are written as from docs/, with links as from ``file``."""
    folder = (ROOT / file).parent

    def link(match: re.Match[str]) -> str:
        target = os.path.relpath(ROOT / "docs" / match[2], folder)
        return match[1] + target.replace(os.sep, "/")

    return LINK.sub(link, content) if folder != ROOT else content


def replaced(text: str, name: str, content: str) -> str:
    """Return ``text`` with ``content`` as its part ``name``; ValueError when it has none."""
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise ValueError(f"expected one part between {begin.strip()} and {end}")
    return pattern.sub(lambda _: begin + (content + "\n" if content else "") + end, text)


def current_texts() -> dict[str, str]:
    """Return what documents with such parts, and pictures, should be, by path from the root."""
    texts: dict[str, str] = {}
    for file, name, make in PARTS:
        text = texts.get(file) or (ROOT / file).read_text(encoding="utf-8")
        texts[file] = replaced(text, name, moved(make(), file))
    pictures = bench_parts.pictures(ROOT) | fp8_attention_parts.pictures(ROOT)
    return texts | pictures | {name_parts.MODULE: name_parts.module_text()}


def main() -> int:
    """Bring the documents up to date and say which changed."""
    for file, text in current_texts().items():
        path = ROOT / file
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"updated {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
