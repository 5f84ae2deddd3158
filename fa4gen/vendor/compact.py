"""A rendered kernel as a vendored folder has it: the same kernel, shorter.

``__device__ __forceinline__`` is a macro, P_FN. Constants are enumerators: NVRTC, which does
not see the host's code, gives every variable of a namespace or a class a place in the machine code,
with a symbol and a pointer: a tenth of an image, which nothing reads. The tables of barriers and of
tensor memory are in the header of barriers alone. Integers are u32, i32 and so on. Instructions
stay as they are.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fa4gen.render.manifest import sha256
from fa4gen.render.wrap import MAX_COLUMNS
from fa4gen.vendor.documented import documented
from fa4gen.vendor.indent import tabbed
from fa4gen.vendor.operands import definitions, short_lists

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fa4gen.render.render import RenderedKernel

FUNCTION = "__device__ __forceinline__"
_CONSTANT = re.compile(r"( *)(?:static )?constexpr (u?int\d+|bool) (?=(\w+) =)")
_ASM_CONSTANT = re.compile(r'"n"\((?:\w+::)*(\w+)\)')
_COMPARED = re.compile(
    r"(?<!\+)(?<![-+*/%] )\b((?:\w+::)*(\w+))"
    r"(?= (?:==|!=|<=|>=|<|>) (?:\w+::)*(\w+)\b(?! [-+*/%]))"
)
_BETWEEN = re.compile(r" *(?://(?! ----).*)?")
"""What may stand between constants of one enumeration."""
_COMMENT = re.compile(r" *//.*$")
_RULER = re.compile(r"^(// ---- .*) ----$|^(\}  // namespace) .*$", re.MULTILINE)
_CONFIG = "// Config sha256 "
"""The manifest has it; what follows up to the end of the head is about files that are rendered."""
_ONCE = "#pragma once\n"
_TABLES = ("// Barriers: slots", "// Tensor memory, by columns:")
_CUT_HEAD = re.compile(r"static (?:inline )?[\w *]+\(.*,$").fullmatch
"""The first line of several of a function's head."""
_PIECES = re.compile(r"[^,]*,|[^,]+$")
_ELSE = "#else  // a pass of the build for another target: the kernel is there, and traps"
_INTEGER = re.compile(r"\b(u?)int(16|32|64)\b")


def compact(rendered: RenderedKernel, prefix: str) -> RenderedKernel:
    """Return the kernel as a folder with this prefix has it, with its hashes in the manifest."""
    texts = [text for name, text in rendered.files.items() if not name.endswith(".json")]
    operands = frozenset(name for text in texts for name in _ASM_CONSTANT.findall(text))
    files = {
        name: text if name.endswith(".json") else compact_text(text, prefix, operands)
        for name, text in rendered.files.items()
    }
    names = frozenset(name for text in files.values() for name in _enumerators(text))
    files = {
        name: text if name.endswith(".json") else _compared_as_numbers(text, names)
        for name, text in files.items()
    }
    device, manifest = f"{rendered.name}_device.cuh", f"{rendered.name}.json"
    files = {
        name: text if name == manifest else tabbed(short_lists(_short_types(text), prefix.upper()))
        for name, text in files.items()
    }
    macros = f"#define {macro_of(prefix)} {FUNCTION}\n"
    if lists := definitions("".join(files.values()), prefix.upper()):
        macros += f"\n{tabbed(lists)}"
    files[device] = files[device].replace(_ONCE, f"{_ONCE}\n{macros}", 1)
    said = json.loads(files[manifest])
    said["files"] = {name: sha256(files[name]) for name in said["files"]}
    files[manifest] = json.dumps(said)
    return replace(rendered, files=files)


def _enumerators(text: str) -> list[str]:
    """Return the names of the enumerators of enumerations without a name."""
    text = "\n".join(map(_code, text.split("\n")))
    bodies = re.findall(r"^ *enum : \w+ \{(.*?)\};", text, re.MULTILINE | re.DOTALL)
    return [name for body in bodies for name in re.findall(r"\b(\w+) = ", body)]


def macro_of(prefix: str) -> str:
    """Return the name of the macro that functions begin with."""
    return f"{prefix.upper()}_FN"


def compact_text(text: str, prefix: str, variables: frozenset[str] = frozenset()) -> str:
    """Return the text of a kernel, or of a header of it.

    Constants of the names ``variables`` stay: an operand of asm is no enumerator.
    """
    text = _RULER.sub(lambda match: match[1] or match[2], text)
    lines = documented(_functions(_without_tables(text.split("\n")), macro_of(prefix)))
    return "\n".join(_enumerated(_traps(lines), variables))


def _compared_as_numbers(text: str, names: frozenset[str]) -> str:
    """Put a sign before an enumerator that is compared with one: host compilers warn of two types.

    ``names`` are those of all enumerators.
    """

    def signed(match: re.Match[str]) -> str:
        both = match[2] in names and match[3] in names
        return f"+{match[1]}" if both else match[1]

    return _COMPARED.sub(signed, text)


def _short_types(text: str) -> str:
    """Call the integers u16, u32, u64, i32 and i64."""
    return _INTEGER.sub(lambda match: f"{match[1] or 'i'}{match[2]}", text)


def _without_tables(lines: list[str]) -> list[str]:
    """Leave the head's tables of barriers and tensor memory to the header of barriers."""
    done: list[str] = []
    in_table = in_config = False
    words = "Barriers and tensor memory" if _TABLES[1] in lines else "Barriers"
    header = next((line.split('"')[1] for line in lines if line.startswith('#include "')), "")
    for line in lines:
        if line.startswith(_CONFIG) and done and done[-1] == "//":
            done.pop()
        in_config = line.startswith("//") and (in_config or line.startswith(_CONFIG))
        if in_config:
            continue
        if line.startswith(_TABLES):
            in_table = True
            if line.startswith(_TABLES[0]):
                done += [f"// {words}: {header}", "//"]
        in_table = in_table and line.startswith("// ")
        if not in_table and not (line == "//" and done and done[-1] == "//"):
            done.append(line)
    return done


def _functions(lines: list[str], macro: str) -> list[str]:
    """Put the macro in, and fill the lines of the parameters again."""
    done: list[str] = []
    for head in _heads(lines, lambda line: FUNCTION in line):
        rows = [row.replace(FUNCTION, macro) for row in head]
        done += _filled(rows) if rows != head else head
    return done


def filled_heads(text: str) -> str:
    """Return C with as many parameters of each static function on a line as there is room for."""
    done: list[str] = []
    for head in _heads(text.split("\n"), _CUT_HEAD):
        done += _filled(head) if len(head) > 1 else head
    return "\n".join(done)


def _heads(lines: list[str], begins: Callable[[str], object]) -> Iterator[list[str]]:
    """Yield the lines of each head, and each other line."""
    number = 0
    while number < len(lines):
        head = [lines[number]]
        number += 1
        while begins(head[0]) and _open_bracket(head) >= 0 and number < len(lines):
            head.append(lines[number])
            number += 1
        yield head


def _open_bracket(rows: list[str]) -> int:
    """Return the column of the first parenthesis that is open at the end, -1 without one."""
    found: list[int] = []
    for row in rows:
        for column, character in enumerate(_code(row)):
            if character == "(":
                found.append(column)
            elif character == ")" and found:
                found.pop()
    return found[0] if found else -1


def _filled(rows: list[str]) -> list[str]:
    """Return the head of a function with as many parameters on a line as there is room for."""
    column = _open_bracket(rows[:1]) + 1
    if column == 0:
        return rows
    joined = " ".join([rows[0], *(row.strip() for row in rows[1:])]).replace("( ", "(")
    done: list[str] = []
    line, parameter, depth = joined[:column], "", 1
    for piece in _PIECES.findall(joined[column:]):
        parameter += piece
        depth += sum(map(piece.count, "(<{")) - sum(map(piece.count, ")>}"))
        if depth > 1:
            continue
        if line.strip() and len(line + parameter.rstrip()) > MAX_COLUMNS:
            done.append(line.rstrip())
            line, parameter = " " * column, parameter.lstrip()
        line, parameter = line + parameter, ""
    return [*done, line + parameter]


def _traps(lines: list[str]) -> list[str]:
    """Give the kernels that only trap, in a build for another target, no parameters.

    Such a kernel reads none, and none are passed: a launch passes as many as it has.
    """
    if _ELSE not in lines:
        return lines
    begin = lines.index(_ELSE)
    done, is_parameter = lines[:begin], False
    for line in lines[begin:]:
        if line.startswith('extern "C"'):
            done.append(f"{line}) {{")
            is_parameter = True
        elif is_parameter:
            is_parameter = not line.endswith(") {")
        elif not line.startswith(("namespace ", "}  // namespace")):
            done.append(line)
    return [line for line, above in zip(done, ["", *done], strict=False) if line or above]


@dataclass(frozen=True)
class _Constant:
    """A constant's type and lines: without type, semicolon and what is before the name."""

    kind: str
    indent: str
    lines: tuple[str, ...]
    above: tuple[str, ...]
    """Comments and blank lines after the constant before."""


def _enumerated(lines: list[str], variables: frozenset[str]) -> list[str]:
    """Return lines with enumerators for the constants of namespaces and classes.

    Those that follow one another and have one type are of one enumeration, comments between them
    or not.
    """
    done: list[str] = []
    run: list[_Constant] = []
    between: list[str] = []
    in_class = False
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if line[:1] not in (" ", "#", "/", ""):
            in_class = line.startswith(("struct ", "class ")) and not line.endswith(";")
        match = _CONSTANT.match(line)
        if match and match[3] not in variables and len(match[1]) == 2 * in_class:
            ends = (i for i in range(number - 1, len(lines)) if _code(lines[i]).endswith(";"))
            last = next(ends, number - 1)
            own = (line[match.end() :], *lines[number : last + 1])
            if run and (run[-1].kind, run[-1].indent) != (match[2], match[1]):
                done += [*_enumeration(run), *between]
                run, between = [], []
            run.append(_Constant(match[2], match[1], own, tuple(between)))
            between = []
            number = last + 1
        elif run and _BETWEEN.fullmatch(line):
            between.append(line)
        else:
            done += [*_enumeration(run), *between, line]
            run, between = [], []
    return [*done, *_enumeration(run), *between]


def _enumeration(run: list[_Constant]) -> list[str]:
    """Return the lines of an enumeration: one line for a constant alone."""
    if not run:
        return []
    indent, kind = run[0].indent, run[0].kind
    if len(run) == 1:
        first, *more = run[0].lines
        rows = [f"{indent}enum : {kind} {{ {first}", *more]
        code = _code(rows[-1])
        return [*rows[:-1], f"{code[:-1]} }};{rows[-1][len(code) :]}"]
    rows = [f"{indent}enum : {kind} {{"]
    for constant in run:
        first, *more = constant.lines
        rows += [f"{indent}  {row.lstrip()}".rstrip() for row in constant.above]
        rows += [f"{indent}  {first}", *more]
        code = _code(rows[-1])
        rows[-1] = f"{code[:-1]},{rows[-1][len(code) :]}"
    return [*rows, f"{indent}}};"]


def _code(line: str) -> str:
    return _COMMENT.sub("", line)
