"""A rendered kernel as a vendored folder has it: the same kernel, shorter.

``__device__ __forceinline__`` is a macro, P_DEVICE. Constants are enumerators: NVRTC, which does
not see the host's code, gives every variable of a namespace or a class a place in the machine code,
with a symbol and a pointer: a tenth of an image, which nothing reads. Instructions stay as they
are.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
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
    _enumerate_constants(lines, variables)
    return "\n".join(lines)


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


def _enumerate_constants(lines: list[str], variables: frozenset[str]) -> None:
    """Make enumerators of the constants of namespaces and classes, not of those in functions."""
    in_class = False
    for number, line in enumerate(lines):
        if line[:1] not in (" ", "#", "/", ""):
            in_class = line.startswith(("struct ", "class ")) and not line.endswith(";")
        match = _CONSTANT.match(line)
        if match is None or match[3] in variables or len(match[1]) != 2 * in_class:
            continue
        lines[number] = f"{match[1]}enum : {match[2]} {{ {line[match.end() :]}"
        last = next(i for i in range(number, len(lines)) if _code(lines[i]).endswith(";"))
        code = _code(lines[last])
        lines[last] = f"{code[:-1]} }};{lines[last][len(code) :]}"


def _code(line: str) -> str:
    return _COMMENT.sub("", line)
