"""What a compiler makes of random configs: of each, the candidates are walked and one is taken.

python benchmarks/random_configs.py [--count 400] [--seed 0] [--first 0] [--only DESIGN] [-j N]
                                    [--having KEY ...] [--cache DIR] [--json FILE] [--plan-only]
                                    [--again FILE]

Configs are drawn from the JSON Schema, a design of a kernel after the other: keys and values that
are added to the schema are drawn without a change here. A key is kept where schema and plan accept
the config with it, so that accepted configs have many keys. Config number i depends on the seed and
on i alone; ``--having`` names keys that each config has, where what they do is in question. Each
config is rendered and compiled by NVRTC as every command does it; ``--json`` appends a line:

clean    a candidate compiles clean
refused  none does, and the refusal offers changes that were compiled; or the plan refuses a config
         of ``--again``
stuck    none does, and nothing is offered
crash    of the plan, the templates or the toolchain: a bug of fa4gen's

``--again`` takes the configs of such a file in place of drawn ones: after a change of a kernel or a
limit. The exit status is 1 where one is stuck or crashes.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
import traceback
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fa4gen.config.load import config_schema, load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.designs.common.refusal import faults_of
from fa4gen.designs.registry import DESIGNS, Design, design_for
from fa4gen.errors import ConfigError
from fa4gen.render.environment import open_templates
from fa4gen.render.render import render
from fa4gen.toolchain.cache import Cache
from fa4gen.toolchain.choose import choose_many
from fa4gen.toolchain.compile import find_compiler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fa4gen.config.load import LoadedConfig
    from fa4gen.toolchain.choose import Chosen

Keys = dict[str, Any]
WIDE = 4096
"""A range of whole numbers with more values is drawn by magnitude."""
ATTEMPTS = 2000
"""To find keys with which a design accepts a config at all."""
TRIES = 3
"""Values drawn for a key before it is left out."""
PORTION = 16
"""Configs whose kernels are compiled by the same processes."""
BAD = ("stuck", "crash")


# ---- drawing


def draw_value(schema: Mapping[str, Any], rng: random.Random, key: str = "") -> Any:
    """Return a value that the JSON Schema node ``schema``, of the key ``key``, allows.

    ValueError for free text of a key that TEXTS has no row for, and for kinds of nodes that configs
    have not had so far.
    """
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return draw_value(config_schema()["$defs"][name], rng, key)
    for branches in ("anyOf", "oneOf"):
        if branches in schema:
            return draw_value(_branch(schema[branches], rng), rng, key)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return rng.choice(schema["enum"])
    match schema.get("type"):
        case "boolean":
            return rng.random() < 0.5
        case "null":
            return None
        case "integer" | "number":
            return _draw_number(schema, rng)
        case "object" if "properties" in schema:
            return {
                name: draw_value(part, rng, name)
                for name, part in schema["properties"].items()
                if name in schema.get("required", ()) or rng.random() < 0.5
            }
        case "array":
            return [draw_value(schema["items"], rng) for _ in range(rng.randint(1, 2))]
        case "object":  # of free names: draw_tensors has those that go with other keys
            return {}
        case "string" if key in TEXTS:
            return TEXTS[key](rng)
    raise ValueError(f"{key}: how to draw a value of {dict(schema)}? Add a row to TEXTS or a case.")


def _branch(branches: list[Keys], rng: random.Random) -> Keys:
    """Return one of ``branches``; seldom one that is nothing but auto or null."""
    telling = [node for node in branches if "const" not in node and node.get("type") != "null"]
    return rng.choice(telling if telling and rng.random() < 0.85 else branches)


def _draw_number(schema: Mapping[str, Any], rng: random.Random) -> float:
    low: float = schema["minimum"]
    high: float = schema["maximum"]
    if rng.random() < 0.1:
        return rng.choice((low, high))
    step: float = schema.get("multipleOf", 1 if schema["type"] == "integer" else 0)
    if step and high - low < WIDE * step:
        return rng.randint(math.ceil(low / step), int(high // step)) * step
    if step:
        return min(high, max(low, int(2 ** rng.uniform(0, math.log2(high))) // step * step))
    return float(f"{rng.uniform(low, high):.3g}") if rng.random() < 0.5 else rng.uniform(low, high)


def draw_activation(rng: random.Random, depth: int = 0) -> str:
    """Return an expression over x."""
    from fa4gen.epilogues.activation import LANGUAGE, parse_activation

    def part(depth: int) -> str:
        kind = rng.random()
        if depth > 2 or kind < 0.25:
            return "x" if rng.random() < 0.7 else f"{rng.uniform(0.01, 10):.3g}"
        if kind < 0.65:
            name = rng.choice(LANGUAGE.functions)
            try:
                parse_activation(text := f"{name}({part(depth + 1)}, x)")
            except ValueError:
                text = f"{name}({part(depth + 1)})"
            return text
        return f"({part(depth + 1)} {rng.choice('+-*')} {part(depth + 1)})"

    while True:
        text = part(depth)
        try:
            return parse_activation(text).text
        except ValueError:
            continue


def draw_condition(rng: random.Random) -> str:
    """Return a mask's condition on query and key."""
    few, many = rng.choice((1, 2, 64, 100)), int(2 ** rng.uniform(0, 20))
    terms = (
        *("key <= query", f"query - key < {many}", f"key < {many}", f"abs(query - key) <= {many}"),
        *(f"key // {many} == query // {many}", f"key % {few} == 0"),
    )
    return f" {rng.choice(('and', 'or'))} ".join(rng.sample(terms, rng.randint(1, 3)))


def draw_score(rng: random.Random) -> str:
    """Return what logits become, of indices alone."""
    few = f"{rng.uniform(0.001, 2):.3g}"
    terms = (
        f"- {few} * (query - key)",
        f"+ {few} * (key_head + 1)",
        f"* {few}",
        f"+ min(key, {few})",
    )
    return f"score {rng.choice(terms)}"


def draw_tensors(rng: random.Random) -> Keys:
    """Return keys that go together: tensors, and the score or mask that reads them."""
    heads, rows = (
        {"dtype": "fp32", "shape": shape} for shape in (["query_heads"], ["batch", "rows"])
    )
    return rng.choice(
        (
            {"parameters": {"slope": heads}, "score": "score - slope[head] * abs(query - key)"},
            {"parameters": {"bias": rows}, "score": "score + bias[batch, query]"},
            {
                "parameters": {"document": {"dtype": "int32", "shape": ["batch", "rows"]}},
                "mask": "document[batch, query] == document[batch, key] and key <= query",
            },
        )
    )


TEXTS: Mapping[str, Callable[[random.Random], str]] = {
    "activation": draw_activation,
    "mask": draw_condition,
    "score": draw_score,
}
"""How free text is drawn, by key."""


class PlanCrashError(Exception):
    """Schema or plan raised what they must not; the argument are the keys."""


def fitting(design: Design, keys: Keys) -> bool:
    """Whether schema and plan accept ``keys`` as a config of ``design``; PlanCrashError."""
    try:
        config = load_mapping(keys, keys["name"]).config
        if design_for(config) is not design:
            return False
        if faults_of(config):  # suggested fixes are not needed here, and slow to find
            return False
        build_plan(config)
    except ConfigError:
        return False
    except Exception as error:
        raise PlanCrashError(keys) from error
    return True


def draw_config(
    design: Design,
    arch: str,
    rng: random.Random,
    name: str,
    having: Sequence[str] = (),
) -> Keys:
    """Return a random config of ``design`` for ``arch`` that schema and plan accept.

    It has the keys ``having``, of those that there are.
    """
    model = next(one for archs, one in design.configs.items() if arch in archs).load()
    schema = config_schema()["$defs"][model.__name__]
    fixed = {"kernel": design.family.name, "name": name, "arch": arch}
    wanted = (key for key in schema["properties"] if key in having)
    required = [
        key
        for key in {**dict.fromkeys(schema["required"]), **dict.fromkeys(wanted)}
        if key not in fixed
    ]
    optional = [key for key in schema["properties"] if key not in (*fixed, *required)]

    def drawn(names: list[str]) -> Keys:
        return {key: draw_value(schema["properties"][key], rng, key) for key in names}

    for attempt in range(ATTEMPTS):
        few = rng.sample(optional, min(len(optional), attempt % 4))
        keys = {**fixed, **drawn(required), **drawn(few)}
        if fitting(design, keys):
            break
    else:
        raise ValueError(f"{design.name}: {ATTEMPTS} configs were drawn, and none is accepted")
    rest = [key for key in optional if key not in keys]
    for key in rng.sample(rest, rng.randint(0, len(rest))):
        for _ in range(TRIES):
            more = {**keys, **(draw_tensors(rng) if key == "parameters" else drawn([key]))}
            if fitting(design, more):
                keys = more
                break
    return keys


def places(only: str = "*") -> list[tuple[Design, str]]:
    """Return each design with each of its architectures; ``only``: a glob of design names."""
    return [
        (design, arch) for design in DESIGNS for arch in design.archs if fnmatch(design.name, only)
    ]


def draw_numbered(seed: int, number: int, only: str = "*", having: Sequence[str] = ()) -> Keys:
    """Return config number ``number`` of ``seed``: one that is accepted, or crashes."""
    design, arch = places(only)[number % len(places(only))]
    rng = random.Random(f"{seed}/{design.name}/{arch}/{number}")
    try:
        return draw_config(design, arch, rng, f"random_{seed}_{number}", having)
    except PlanCrashError as error:
        keys: Keys = error.args[0]
        return keys


# ---- trying


@dataclass(frozen=True)
class Record:
    """The result of one config: a line of ``--json``."""

    config: Keys
    design: str
    verdict: str
    """clean, rendered (with --plan-only), refused, stuck, crash."""
    findings: tuple[str, ...] = ()
    set: Mapping[str, object] = field(default_factory=dict)
    """What the candidate that was taken sets."""
    candidates: int = 0
    """That were compiled up to it."""
    registers: int = 0


def tried(
    configs: Sequence[Keys], chosen: Callable[[Sequence[LoadedConfig]], Sequence[Chosen]] | None
) -> list[Record]:
    """Render ``configs`` and, with ``chosen``, compile their candidates."""
    done: dict[int, Record] = {}
    loaded: dict[int, LoadedConfig] = {}
    templates = open_templates()
    for number, keys in enumerate(configs):
        design = ""
        try:
            one = load_mapping(keys, keys["name"])
            design = design_for(one.config).name
            render(build_plan(one.config), one, templates)
            loaded[number] = one
            done[number] = Record(keys, design, "rendered")
        except ConfigError as error:
            done[number] = Record(keys, design, "refused", tuple(map(str, error.problems)))
        except Exception:
            done[number] = Record(keys, design, "crash", (traceback.format_exc(),))
    if chosen:
        for number, found in zip(loaded, chosen(list(loaded.values())), strict=True):
            done[number] = _judged(done[number], found)
    return [done[number] for number in range(len(configs))]


def _judged(record: Record, found: Chosen) -> Record:
    outcome = found.outcome
    findings = tuple(map(str, outcome.problems))
    verdict = "clean"
    if findings:
        offers = outcome.problems[0].remedy.startswith("Set ")
        verdict = "crash" if outcome.is_final else "refused" if offers else "stuck"
    return replace(
        record,
        verdict=verdict,
        findings=findings,
        set=found.candidate.changes,
        candidates=len(found.left) + 1,
        registers=outcome.kernel.resources.registers if outcome.kernel else 0,
    )


def records(
    configs: Iterator[Keys], *, jobs: int = 1, cache: Cache | None = None, compiled: bool = True
) -> Iterator[Record]:
    """Yield the record of each config; ``jobs`` are compiled at a time."""

    def choose(loaded: Sequence[LoadedConfig]) -> Sequence[Chosen]:
        return choose_many(loaded, find_compiler("nvrtc"), cache=cache, jobs=jobs)

    while portion := list(islice(configs, PORTION if jobs > 1 else 1)):
        yield from tried(portion, choose if compiled else None)


def drawn_configs(arguments: argparse.Namespace) -> Iterator[Keys]:
    """Yield the configs that the command line asks for."""
    if arguments.again:
        for line in arguments.again.read_text().splitlines():
            yield json.loads(line)["config"]
        return
    for number in range(arguments.first, arguments.first + arguments.count):
        yield draw_numbered(arguments.seed, number, arguments.only, arguments.having)


def main() -> int:
    """Draw, try and count; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first config")
    parser.add_argument(
        "--having", nargs="+", default=(), metavar="KEY", help="keys to draw always"
    )
    parser.add_argument("--only", default="*", help="designs whose name matches this glob")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--cache", type=Path, help="folder of compiled kernels")
    parser.add_argument("--json", type=Path, help="append a line for each config to this file")
    parser.add_argument("--plan-only", action="store_true", help="render, but do not compile")
    parser.add_argument("--again", type=Path, help="take the configs of this file of --json")
    arguments = parser.parse_args()
    cache = Cache(arguments.cache) if arguments.cache else Cache.default()
    counts: Counter[str] = Counter()
    compiled: Counter[int] = Counter()
    start = time.perf_counter()
    for record in records(
        drawn_configs(arguments),
        jobs=arguments.jobs,
        cache=cache,
        compiled=not arguments.plan_only,
    ):
        counts[record.verdict] += 1
        compiled[record.candidates] += record.verdict == "clean"
        if arguments.json:
            with arguments.json.open("a") as file:
                file.write(json.dumps(asdict(record)) + "\n")
        if record.verdict in BAD:
            print(f"{record.verdict}: {record.design} {json.dumps(record.config)}")
            print("\n".join(record.findings), flush=True)
    words = ", ".join(f"{verdict}: {count}" for verdict, count in sorted(counts.items()))
    print(f"{sum(counts.values())} configs in {time.perf_counter() - start:.0f} s: {words}")
    if compiled.total():
        mean = sum(n * times for n, times in compiled.items()) / compiled.total()
        print(f"{compiled[1]} by the first candidate; candidates: mean {mean:.2f}, {max(compiled)}")
    return 1 if set(counts) & set(BAD) else 0


if __name__ == "__main__":
    sys.exit(main())
