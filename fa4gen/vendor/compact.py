"""A rendered kernel as a vendored folder has it: the same kernel, shorter.

``__device__ __forceinline__`` is a macro, P_DEVICE. Constants are enumerators: NVRTC, which does
not see the host's code, gives every variable of a namespace or a class a place in the machine code,
with a symbol and a pointer: a tenth of an image, which nothing reads. Instructions stay as they
are.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fa4gen.render.manifest import sha256

if TYPE_CHECKING:
    from fa4gen.render.render import RenderedKernel

FUNCTION = "__device__ __forceinline__"
_CONSTANT = re.compile(r"( *)(?:static )?constexpr (u?int\d+|bool) (?=(\w+) =)")
_ASM_CONSTANT = re.compile(r'"n"\((\w+)\)')
_COMMENT = re.compile(r" *//.*$")
_ONCE = "#pragma once\n"


def compact(rendered: RenderedKernel, prefix: str) -> RenderedKernel:
    """Return the kernel as a folder with this prefix has it, with its hashes in the manifest."""
    texts = [text for name, text in rendered.files.items() if not name.endswith(".json")]
    operands = frozenset(name for text in texts for name in _ASM_CONSTANT.findall(text))
    files = {
        name: text if name.endswith(".json") else compact_text(text, prefix, operands)
        for name, text in rendered.files.items()
    }
    device, manifest = f"{rendered.name}_device.cuh", f"{rendered.name}.json"
    macro = f"#define {macro_of(prefix)} {FUNCTION}\n"
    files[device] = files[device].replace(_ONCE, f"{_ONCE}\n{macro}", 1)
    said = json.loads(files[manifest])
    said["files"] = {name: sha256(files[name]) for name in said["files"]}
    files[manifest] = json.dumps(said)
    return replace(rendered, files=files)


def macro_of(prefix: str) -> str:
    """Return the name of the macro that functions begin with."""
    return f"{prefix.upper()}_DEVICE"


def compact_text(text: str, prefix: str, variables: frozenset[str] = frozenset()) -> str:
    """Return the lines of a kernel, or of a header of it, in their order.

    Constants of the names ``variables`` stay: an operand of asm is no enumerator.
    """
    lines = text.split("\n")
    _name_functions(lines, macro_of(prefix))
    return "\n".join(_enumerated(lines, variables))


def _name_functions(lines: list[str], macro: str) -> None:
    """Put the macro in, and move the lines below that are aligned with a bracket."""
    shift = len(FUNCTION) - len(macro)
    brackets: list[int] = []
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if brackets and indent == brackets[-1] + 1:
            lines[number] = line[shift:] if shift > 0 else " " * -shift + line
        if brackets or FUNCTION in line:
            brackets = _open_brackets(line, brackets)
        lines[number] = lines[number].replace(FUNCTION, macro)


def _open_brackets(line: str, before: list[int]) -> list[int]:
    """Return the columns of the parentheses that are open at the end of the line."""
    found = list(before)
    for column, character in enumerate(_code(line)):
        if character == "(":
            found.append(column)
        elif character == ")":
            found.pop()
    return found


@dataclass(frozen=True)
class _Constant:
    """A constant's type and lines: without type, semicolon and what is before the name."""

    kind: str
    indent: str
    lines: tuple[str, ...]


def _enumerated(lines: list[str], variables: frozenset[str]) -> list[str]:
    """Return lines with enumerators for the constants of namespaces and classes.

    Those that follow one another and have one type are of one enumeration.
    """
    done: list[str] = []
    run: list[_Constant] = []
    in_class = False
    number = 0
    while number < len(lines):
        line = lines[number]
        if line[:1] not in (" ", "#", "/", ""):
            in_class = line.startswith(("struct ", "class ")) and not line.endswith(";")
        match = _CONSTANT.match(line)
        if match and match[3] not in variables and len(match[1]) == 2 * in_class:
            last = next(i for i in range(number, len(lines)) if _code(lines[i]).endswith(";"))
            own = (line[match.end() :], *lines[number + 1 : last + 1])
            if run and (run[-1].kind, run[-1].indent) != (match[2], match[1]):
                done += _enumeration(run)
                run = []
            run.append(_Constant(match[2], match[1], own))
            number = last + 1
            continue
        done += _enumeration(run)
        run = []
        done.append(line)
        number += 1
    return done + _enumeration(run)


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
        rows += [f"{indent}  {first}", *more]
        code = _code(rows[-1])
        rows[-1] = f"{code[:-1]},{rows[-1][len(code) :]}"
    return [*rows, f"{indent}}};"]


def _code(line: str) -> str:
    return _COMMENT.sub("", line)
