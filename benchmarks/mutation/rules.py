"""The mutation rules, as data: each is one kind of mistake in a kernel or a launcher."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mutation.finders import (
    Arguments,
    Calls,
    Choices,
    Expressions,
    FloatReturns,
    Names,
    Statements,
    Subscripts,
    Terms,
    Words,
)
from mutation.text import LOGIC_BOUNDARIES, SUM_BOUNDARIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutation.finders import Edit, Finder
    from mutation.text import CText

ONE_OFF = ("({}) + 1", "({}) - 1")
ROUNDED = "rounded_to_bf16({})"
NEIGHBOURS = (
    *(("key", "value"), ("query", "out"), ("query", "key"), ("batch", "head"), ("batch", "row")),
    *(("head", "row"), ("row", "column"), ("begin", "end"), ("first", "last"), ("full", "empty")),
    *(("a", "b"), ("c", "out"), ("m", "n"), ("m", "k"), ("n", "k"), ("x", "y"), ("even", "odd")),
    *(("page", "row"), ("sequence", "head"), ("step", "stride"), ("ready", "written")),
    *(("max", "sum"), ("rows", "keys"), ("rows", "columns"), ("heads", "rows")),
)
"""Words of names that differ in nothing else."""
_COMPARED = r"(?<!template )(?<=[\w)\]] )"
_WHOLE = r"(?<!constexpr )(?<!\w)(?:u?int(?:8|16|32|64)?(?:_t)?|size_t)"
_ORDERED = r"\b(red|atom|ld|st|fence|(?:mbarrier|barrier\.cluster)\.arrive)"
"""Instructions that have an order and a scope."""
_SYNCHRONISES = (
    r"fence|arrive|wait|commit|sync|release|acquire|expect|free|alloc|produce|consume|step|signal"
)


@dataclass(frozen=True)
class Rule:
    """A kind of mistake and the ways in which it is made."""

    name: str
    finders: tuple[Finder, ...]

    def edits(self, text: CText) -> Iterator[Edit]:
        """Yield every mutation of a file that the rule makes, each once."""
        seen: set[Edit] = set()
        for finder in self.finders:
            for edit in finder.find(text):
                if edit not in seen and text.raw[edit.start : edit.end] != edit.new:
                    seen.add(edit)
                    yield edit


RULES = (
    Rule("min_max_arm", (Calls(r"\b(?:min|max|fminf|fmaxf)\(", ("({0})", "({1})")),)),
    Rule(
        "comparison",
        (
            Words(_COMPARED + r"<(?= )", ("<=",)),
            Words(_COMPARED + r"<=(?= )", ("<",)),
            Words(_COMPARED + r">(?= )", (">=",)),
            Words(_COMPARED + r">=(?= )", (">",)),
            Words(r" == ", (" != ",)),
            Words(r" != ", (" == ",)),
        ),
    ),
    Rule(
        "bound",
        (
            Expressions(_COMPARED + r"(?:<|>=) ", ONE_OFF[1:], (";", ",", "&&", "||", "?", ":")),
            Expressions(_COMPARED + r"(?:<=|>) ", ONE_OFF[:1], (";", ",", "&&", "||", "?", ":")),
        ),
    ),
    Rule(
        "index",
        (
            Subscripts(ONE_OFF),
            Expressions(_WHOLE + r" \w+ = ", ONE_OFF),
            Expressions(_WHOLE + r" \w+\([^;{}]*\)(?: const)? \{\s*return (?!\{)", ONE_OFF),
            Arguments(r"\breturn \{", ONE_OFF),
            Arguments(r"\b(?:tma|load|store)\w*(?:<[^;()]*>)?\(", ONE_OFF, first=1),
            Expressions(r"(?<=[;{})\n])\s*(?:\w+(?:\.|->))*\w+ [-+]?= ", ONE_OFF),
        ),
    ),
    Rule("term", (Terms(("+", "-"), SUM_BOUNDARIES),)),
    Rule("stride", (Names(r"(?i)stride|ld[abc]\b", NEIGHBOURS),)),
    Rule("offset", (Names(r"^k[A-Z]|offset|slot|column", NEIGHBOURS, but=r"(?i)stride"),)),
    Rule("name", (Names(r"^[a-z]", NEIGHBOURS, but=r"stride|offset|slot|column|^k[A-Z]"),)),
    Rule(
        "dropped",
        (
            Statements(
                r"(?:[\w()]+(?:\[\w+\])?(?:\.|->))*\w*(?:" + _SYNCHRONISES + r")\w*(?:<[^;()]*>)?\("
            ),
            Statements(r"asm volatile\(", rf'"[^"]*(?:{_SYNCHRONISES}|red\.|bar\.)'),
            Statements(r"count_up\w*\("),
        ),
    ),
    Rule(
        "reset",
        (
            Statements(
                r"[\w.\[\]>*-]+ = (?:0|0\.f|0u|1|1\.f|false|true|NULL|negative_infinity\(\));"
            ),
            Statements(r"(?:\+\+|--)[\w.>\[\]-]+;|[\w.>\[\]-]+(?:\+\+|--);"),
            Statements(r"(?:[\w\]]+(?:\.|->))+\w+(?:\[\w+\])? = "),
        ),
    ),
    Rule(
        "phase",
        (
            Arguments(r"\bmbarrier_\w*wait\w*(?:<[^;()]*>)?\(", ("({}) ^ 1",), first=1, last=2),
            Statements(r"\w*phases? \^= "),
            Expressions(r"\b\w*(?:phase|parity) = ", ("({}) ^ 1",)),
            Words(r"\{0, 0\}", ("{0, 1}",)),
            Words(r"\{0, 1\}", ("{0, 0}",)),
            Words(r"\b(parity|phase)(?= \^ 1)", (r"1 ^ \1",)),
        ),
    ),
    Rule(
        "mask",
        (
            Terms(("&&",), LOGIC_BOUNDARIES | {"||"}),
            Terms(("||",), LOGIC_BOUNDARIES),
            Arguments(r"\b(?:if|while) \(", ("true", "false")),
            Choices(("true", "false"), LOGIC_BOUNDARIES - {"?"}),
            Words(r" [|&]= ", (" = ",)),
            Expressions(r"\bbool \w+ = ", ("true", "false")),
            Expressions(
                r"\bbool \w+\([^;{}]*\)(?: const)? \{\s*return ", ("true", "false"), (";",)
            ),
        ),
    ),
    Rule(
        "loop",  # its body once at most: an if with an initialiser
        (
            Words(r"\bfor (\([^;(){}]*; [^;{}]*?); [^;{}]*?\)(?= [\w{])", (r"if \1)",)),
            Words(r"\bwhile (?=\()", ("if ",)),
        ),
    ),
    Rule(
        "width",
        (
            Words(r"\b(?<!unsigned )int64(?:_t)? (?=\w+(?: = |;))", ("int ",)),
            Words(r"\bstatic_cast<int64>", ("static_cast<int32>",)),
            Words(r"\((?:int64_t|uint64_t|size_t)\)(?=\w)", ("(int)",)),
        ),
    ),
    Rule(
        "order",
        (
            Words(
                _ORDERED + r"\.(?:release|acquire|acq_rel)\b", (r"\1.relaxed",), in_assembly=True
            ),
            Words(_ORDERED + r"(\.\w+)\.cluster\b", (r"\1\2.cta",), in_assembly=True),
            Words(r"\.gpu(?=\.)", (".cta",), in_assembly=True),
        ),
    ),
    Rule(
        "bf16",
        (
            Expressions(
                r"\b(\w+)(?:\[[^\];]*\]|\.[a-z]\b)* [-+*]?= (?!negative_infinity|[\d.]+f?;|\{)",
                (ROUNDED,),
                floats=True,
            ),
            FloatReturns(ROUNDED),
            Arguments(r"\bstore_\w*\(", (ROUNDED,), first=1, floats=True),
        ),
    ),
)
"""Every rule of kernels."""
RULE_NAMES = tuple(rule.name for rule in RULES)
LAUNCHER_RULES = tuple(
    rule for rule in RULES if rule.name not in ("bf16", "order", "phase", "loop")
)
"""Those that apply to C."""
