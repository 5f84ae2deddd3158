"""Mutants: every single change of a kernel's files that a rule makes, and which of them to try."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fa4gen.config.find import find_configs
from fa4gen.config.load import load_config
from fa4gen.designs.build import build_plan
from fa4gen.designs.registry import design_for
from fa4gen.render.render import render
from mutation.rules import RULES
from mutation.text import CText
from tests.kernels.source_mutation import TEMPLATES, Kernel, function_of

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mutation.finders import Edit
    from mutation.rules import Rule

ROUNDS_TO = "rounded_to_bf16("
ROUNDING = """
__device__ __forceinline__ float rounded_to_bf16(float x) {
  const uint32 bits = __float_as_uint(x);
  return __uint_as_float((bits + 0x7fffu + (bits >> 16 & 1)) & 0xffff0000u);
}
"""
_BEFORE_ROUNDING = "using uint32 = unsigned int;\n"


@dataclass(frozen=True)
class Mutant:
    """One change of one file of a kernel or a vendored folder."""

    subject: str
    """The config file."""
    design: str
    kernel: str
    rule: str
    file: str
    line: int
    function: str
    number: int
    """Among the same changes of the same function, from 1 on."""
    before: str
    """The lines changed, blanks joined."""
    after: str
    edit: Edit

    @property
    def key(self) -> str:
        """A name that stays the same while the kernel's text does."""
        parts = (self.kernel, self.file, self.rule, self.function, self.before, self.after)
        text = "\n".join((*parts, str(self.number)))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def change(self) -> tuple[str, str, str]:
        """What is equal for the same change of another kernel."""
        return self.rule, self.before, self.after

    def __str__(self) -> str:
        place = f"{self.kernel}, {self.file}:{self.line} in {self.function}"
        return f"{place}, {self.rule}:\n  - {self.before}\n  + {self.after}"


def mutants_of(
    text: CText, rules: Sequence[Rule], *, subject: str, design: str, kernel: str, file: str
) -> Iterator[Mutant]:
    """Yield every mutant of a file."""
    lines = text.raw.splitlines()
    counts: dict[tuple[str, ...], int] = {}
    for rule in rules:
        for edit in rule.edits(text):
            line = text.raw.count("\n", 0, edit.start) + 1
            before, after = _lines(text, edit)
            function = function_of(lines, line) or _c_function(lines, line)
            what = (rule.name, function, before, after)
            counts[what] = counts.get(what, 0) + 1
            yield Mutant(
                subject, design, kernel, rule.name, file, line, function, counts[what],
                before, after, edit,
            )  # fmt: skip


def _lines(text: CText, edit: Edit) -> tuple[str, str]:
    """Return the lines that an edit touches, before and after it, without comments."""
    start = text.raw.rfind("\n", 0, edit.start) + 1
    end = text.raw.find("\n", edit.end)
    before, after = text.assembly[start:end], text.assembly[start : edit.start] + edit.new
    return _joined(before), _joined(after + text.assembly[edit.end : end])


def _joined(text: str) -> str:
    return " ".join(text.split())


def _c_function(lines: Sequence[str], number: int) -> str:
    for line in reversed(lines[:number]):
        if found := re.match(r"[a-z][\w \*]*?(\w+)\(", line):
            return found[1]
    return ""


# ---- kernels


@cache
def kernel_of(config: str) -> Kernel:
    """Return the rendered kernel of a config file."""
    loaded = load_config(config)
    plan = build_plan(loaded.config)
    return Kernel.of(plan, render(plan, loaded, TEMPLATES))


def find_mutants(config: str) -> list[Mutant]:
    """Return every mutant of a config's kernel: of its source and its device header."""
    kernel = kernel_of(config)
    design = design_for(load_config(config).config).name
    files = {".cu": kernel.source, "_device.cuh": kernel.device}
    return [
        mutant
        for end, text in files.items()
        for mutant in mutants_of(
            CText(text),
            RULES,
            subject=config,
            design=design,
            kernel=kernel.plan.name,
            file=kernel.plan.name + end,
        )
    ]


def mutated(mutant: Mutant) -> Kernel:
    """Return the kernel with the mutant's change."""
    kernel = kernel_of(mutant.subject)
    source, device = kernel.source, kernel.device
    if mutant.file.endswith(".cu"):
        source = mutant.edit.of(source)
    else:
        device = mutant.edit.of(device)
    if ROUNDS_TO in mutant.after:
        device = device.replace(_BEFORE_ROUNDING, _BEFORE_ROUNDING + ROUNDING, 1)
    return Kernel(kernel.plan, source, kernel.header, device)


# ---- choosing


def configs_of(patterns: Sequence[str], root: Path) -> dict[str, list[str]]:
    """Return a checkout's shipped configs, by design: those with names that match a glob."""
    found: dict[str, list[str]] = {}
    folders = [root / "configs" / name for name in ("attention", "gemm", "sweeps")]
    for path in sorted(find_configs(folders), key=lambda path: path.stem):
        if not patterns or any(path.match(pattern) or path.stem == pattern for pattern in patterns):
            design = design_for(load_config(path).config).name
            found.setdefault(design, []).append(str(path))
    return found


def different(configs: Sequence[str], count: int, rng: random.Random) -> list[str]:
    """Return ``count`` configs with many features between them, by the words of their names."""
    left, chosen, seen = list(configs), list[str](), set[str]()
    rng.shuffle(left)
    while left and len(chosen) < count:
        best = max(left, key=lambda config: len(_features(config) - seen))
        left.remove(best)
        chosen.append(best)
        seen |= _features(best)
    return chosen


def _features(config: str) -> set[str]:
    return set(Path(config).stem.split("_"))


def in_order(mutants: Iterable[Mutant], rng: random.Random) -> list[Mutant]:
    """Return the mutants of a design in the order to try them: rules and kernels take turns.

    The same change of several kernels is there once.
    """
    by_rule: dict[str, dict[str, list[Mutant]]] = {}
    for mutant in mutants:
        by_rule.setdefault(mutant.rule, {}).setdefault(mutant.kernel, []).append(mutant)
    queues = []
    for rule in sorted(by_rule):
        kernels = [by_rule[rule][kernel] for kernel in sorted(by_rule[rule])]
        for kernel in kernels:
            rng.shuffle(kernel)
        rng.shuffle(kernels)
        queues.append(_turns(kernels))
    rng.shuffle(queues)
    order, seen = [], set[Any]()
    for mutant in _turns(queues):
        if mutant.change not in seen:
            seen.add(mutant.change)
            order.append(mutant)
    return order


def _turns(queues: Sequence[Sequence[Mutant]]) -> list[Mutant]:
    """Return the first of each queue, then the second of each, and so on."""
    longest = max(map(len, queues), default=0)
    return [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]


def shares(count: int, names: Sequence[str]) -> Mapping[str, int]:
    """Divide ``count`` among ``names``, the first ones one more."""
    return {
        name: count // len(names) + (number < count % len(names))
        for number, name in enumerate(names)
    }
