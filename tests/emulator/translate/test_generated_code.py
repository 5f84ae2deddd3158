"""Foreign text never becomes code: what generated Python may consist of, and a fuzz over tokens."""

from __future__ import annotations

import ast
import builtins
import io
import keyword
import re
import tokenize
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from fa4gen.emulator import EmulatorError, Program
from fa4gen.emulator.launch_file.arrays import prepare
from fa4gen.emulator.launch_file.run import run_launch
from fa4gen.emulator.ptx.scopes import SPECIALS
from fa4gen.emulator.ptx.types import VIEWS
from fa4gen.emulator.translate import generated_code
from fa4gen.emulator.translate.generated_code import (
    FIELDS,
    KEYWORDS,
    METHODS,
    UFUNCS,
    ForbiddenCodeError,
    check_line,
    check_statement,
    make_function,
)
from fa4gen.errors import ConfigError
from tests.emulator.launch_file.reading import parse_launch_file

CANARY = "canary_of_generated_code"
PTX = """
.version 8.8
.target sm_90a
.address_size 64
// a comment
.file 1 "source.cu"
.global .align 4 .b8 table[16] = {1, 2, 3, 4};
.func (.param .b32 back) twice(.param .b32 given)
{
    .reg .b32 %a<3>;
    ld.param.b32 %a0, [given];
    shl.b32 %a1, %a0, 1;
    st.param.b32 [back], %a1;
    ret;
}
.visible .entry main(.param .u64 out, .param .u32 count)
{
    .reg .pred %p<4>;
    .reg .b16 %h<4>;
    .reg .b32 %r<24>;
    .reg .f32 %f<8>;
    .reg .b64 %d<8>;
    .shared .align 16 .b8 tile[256];
    .param .b32 passed;
    .param .b32 result;
    .loc 1 7 3
    ld.param.u64 %d0, [out];
    ld.param.u32 %r0, [count];
    mov.u32 %r1, %tid.x; /* which thread */
    mov.u32 %r2, %ctaid.x;
    mov.u64 %d1, %clock64;
    mov.u32 %r3, tile;
    mad.lo.u32 %r4, %r1, 4, %r3;
    st.shared.u32 [%r4], %r1;
    bar.sync 0;
    ld.shared.u32 %r5, [%r4+0];
    mov.b32 %f0, 0f3F800000;
    add.f32 %f1, %f0, 0d4000000000000000;
    lop3.b32 %r6, %r5, 7, %r1, 0x96;
    setp.ne.u32 %p2, %r1, 99;
    setp.lt.and.u32 %p0|%p1, %r1, 16, %p2;
    st.param.b32 [passed], %r6;
    call (result), twice, (passed);
    ld.param.b32 %r7, [result];
    @%p0 add.u32 %r7, %r7, -(3 << 2);
    mov.u32 %r8, 0;
again:
    add.u32 %r8, %r8, 1;
    setp.lt.u32 %p3, %r8, %r0;
    @%p3 bra again;
    and.b32 %r9, %r1, 1;
targets: .branchtargets even, odd;
    brx.idx %r9, targets;
even:
    add.u32 %r7, %r7, 16;
odd:
    mov.u64 %d2, table;
    ld.global.u8 %h0, [%d2+1];
    cvt.u32.u16 %r10, %h0;
    add.u32 %r7, %r7, %r10;
    cvta.to.global.u64 %d3, %d0;
    mul.wide.u32 %d4, %r1, 4;
    add.u64 %d5, %d3, %d4;
    st.global.u32 [%d5], %r7;
    ret;
}
"""
LAUNCH = """
entry: main
block: 32
arguments:
- {make: zeros, shape: [32], dtype: uint32, name: numbers}
- {scalar: 2, dtype: uint32}
names:
  shared: {first half: [0, 128]}
  roles: {everyone: [0, 32]}
"""
NAMES = (
    "table", "twice", "back", "given", "main", "out", "count", "tile", "passed", "result", "again",
    "targets", "even", "odd", "%a", "%p", "%h", "%r", "%f", "%d",
)  # fmt: skip
"""Names that the program declares and uses; those of registers are prefixes of numbered ones."""
WORDS = (
    "exec", "eval", "__import__", "os", "k0", "k1", "g", "m", "w", "t", "U32", "held", "None",
    "lambda", "import", "print$exit", "__builtins__", "copyto", "def", "return", CANARY,
)  # fmt: skip
CODE = (
    f"{CANARY}()", f"'+{CANARY}()+'", f'"+{CANARY}()+"', f"\n    {CANARY}()\n", f"];{CANARY}();[",
    f"0 if {CANARY}() else 0", f"\\\n{CANARY}()", f"\x0c{CANARY}()", f"{{{CANARY}()}}",
    f"*/ {CANARY}() /*", f"0\r    {CANARY}()", f"\u2028{CANARY}()", f"#{CANARY}()", "\x00",
    f"__import__('builtins').{CANARY}()", f"(lambda: {CANARY}())()", f"%tid.{CANARY}", "k0(g, m)",
)  # fmt: skip
NUMBERS = (
    "0", "-1", "4294967296", "9" * 30, "9" * 5000, "0x" + "f" * 40, "1e999", "1e-999",
    "0f7fc00000",
    "0f7f800000", "0d7ff8000000000000", "nan", "inf", "1_000", "0o17", "1j", "077", "0b2", "1U",
    "-(", "'1'", "1.5", "1<<63", "~0", "\u0663", "\uff11", "0x1p3",
)  # fmt: skip


@dataclass
class Texts:
    """The compiled texts, and whether the canary sang."""

    compiled: set[str] = field(default_factory=set)
    sang: list[str] = field(default_factory=list)


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> Texts:
    """All that is compiled during a test."""
    found = Texts()

    def spy(text: str, name: str, mode: str) -> Any:
        found.compiled.add(text)
        return compile(text, name, mode)

    monkeypatch.setattr(generated_code, "compile", spy, raising=False)
    monkeypatch.setattr(builtins, CANARY, lambda: found.sang.append("!"), raising=False)
    return found


def foreign(text: str) -> set[str]:
    """Names, strings and marks in generated code that do not come from the emitter's own lists."""
    own = UFUNCS | METHODS | FIELDS | KEYWORDS | VIEWS | {*"gmwtu", "held", "run"}
    own |= {"def", "return", "if", "else", "is", "None"}
    marks = {*"()[],.:=%~&|^+-", ">>", "!=", "..."}
    found = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            if token.string not in own and not re.fullmatch(r"k\d+", token.string):
                found.add(token.string)
        elif token.type == tokenize.STRING:
            if ast.literal_eval(token.string) not in SPECIALS | VIEWS | {"unsafe"}:
                found.add(token.string)
        elif token.type == tokenize.NUMBER:
            if not token.string.isdecimal() or not token.string.isascii():
                found.add(token.string)
        elif token.type == tokenize.OP:
            if token.string not in marks:
                found.add(token.string)
        elif token.type in (tokenize.COMMENT, tokenize.ERRORTOKEN):
            found.add(token.string)
    return found


def launched(ptx: str, launch: str = LAUNCH, **changes: Any) -> bool:
    """Whether the emulator ran this, and did not refuse it."""
    try:
        prepared = prepare(parse_launch_file(launch), Path())
        program = Program(ptx)
        list(run_launch(program, prepared))
    except (EmulatorError, ConfigError):
        return False
    return True


def renamed(name: str, word: str) -> str:
    """The program with one of its names replaced everywhere."""
    if name.startswith("%"):
        return re.sub(rf"{name}(?=[\d<])", "%" + word.lstrip("%"), PTX)
    return re.sub(rf"(?<![%.\w]){name}\b(?!\.)", word, PTX)


def test_the_program_runs_and_only_own_words_are_compiled(texts) -> None:
    prepared = prepare(parse_launch_file(LAUNCH), Path())
    (run,) = run_launch(Program(PTX), prepared)
    assert run.passed, str(run.report)
    threads = np.arange(32)
    expected = 2 * ((threads ^ 7) ^ threads) - np.where(threads < 16, 12, 0)
    expected += np.where(threads % 2, 0, 16) + 2
    np.testing.assert_array_equal(run.arrays["numbers"], expected.astype(np.uint32))
    assert len(texts.compiled) > 5
    assert {one for text in texts.compiled for one in foreign(text)} == set()
    assert any("%clock64" in text for text in texts.compiled)


@pytest.mark.parametrize("name", NAMES)
def test_no_name_becomes_code(texts, name) -> None:
    ran = 0
    words = Random(name).sample(WORDS, 6)
    for word in words:
        launch = LAUNCH.replace("entry: main", f"entry: {word}") if name == "main" else LAUNCH
        ran += launched(renamed(name, word), launch.replace("entry: None", "entry: 'None'"))
    assert ran >= len(words) - 2  # they are good names in PTX
    assert {one for text in texts.compiled for one in foreign(text)} == set()
    assert not texts.sang


def tokens_of(ptx: str) -> list[str]:
    """Names, numbers, strings, comments and everything else, blanks included."""
    return re.findall(r"//[^\n]*|/\*.*?\*/|\"[^\"\n]*\"|[%.\w]+|\s+|.", ptx, re.DOTALL)


@pytest.mark.parametrize("seed", range(5))
def test_no_token_becomes_code(texts, seed) -> None:
    """Tokens replaced by, or followed by, Python: refused, or run without a word of it."""
    random = Random(seed)
    ran = 0
    for _ in range(40):
        tokens = tokens_of(PTX)
        for _ in range(random.choice((1, 1, 2))):
            at = random.randrange(len(tokens))
            new = random.choice(random.choice((WORDS, CODE, NUMBERS)))
            kind = tokens[at]
            if kind.startswith(("//", "/*", '"')):
                tokens[at] = kind[:2] + new + kind[2:]
            elif kind[0].isdigit():
                tokens[at] = random.choice((new, random.choice(NUMBERS)))
            else:
                tokens[at] = random.choice(
                    (new, kind + new, f"/* {new} */{kind}", kind + f'"{new}"')
                )
        ran += launched("".join(tokens))
    assert ran
    assert {one for text in texts.compiled for one in foreign(text)} == set()
    assert not texts.sang


@pytest.mark.parametrize("seed", range(3))
def test_no_token_of_a_launch_file_becomes_code(texts, seed) -> None:
    random = Random(seed)
    ran = 0
    for _ in range(25):
        tokens = re.findall(r"[\w]+|\s+|.", LAUNCH)
        at = random.choice([i for i, token in enumerate(tokens) if token[0].isalnum()])
        new = random.choice(random.choice((WORDS, CODE, NUMBERS)))
        tokens[at] = random.choice((new, repr(new), tokens[at] + new, f"!!python/object:{new} 1"))
        ran += launched(PTX, "".join(tokens))
    assert ran
    assert {one for text in texts.compiled for one in foreign(text)} == set()
    assert not texts.sang


@pytest.mark.parametrize(
    "statement",
    [
        "exec('x')", "__import__('os')", "k0(g, m); k1(g, m)", "k0(g, m)  # why", "import os",
        "g.__class__", "k0(g.__class__, m)", "k0(g, m).mro()", "g.state = k0", "k0[0] = exec",
        "U32[0][...] = (lambda: 1)()", "U32[0][...] = [k0 for k0 in g.rows('U32')]", "del g",
        "U32[0][...] = k0 if (m := g) is None else m", "k0(*g)", "k0(**g)",
        "k0(g, where=m, dtype=g)",
        "U32[0][...] = f'{g}'", 'U32[0][...] = "%tid.x"', "U32[0][...] = g.special['a b']",
        "U32[0][...] = 1.5", "U32[0][...] = True", "k0 = g", "g = k0", "global g", "return g",
        "raise k0", "assert k0(g)", "k0", "k0(g,", "k0(g, m)\n    k1(g, m)", "k0(g, m)\\",
        "pass", "yield k0", "await k0(g)", "if k0(g, m):", "while k0(g, m):",
        "k0(g,\tm)", "\u212a0(g, m)", "k0(g, m)\x0c", "k0: g = m", "w += k0", "print(g)",
        "k0(g)(m)", "(k0)(g, m)if g else m", "@k0", "k0(eval)", "k0(canary_of_generated_code)",
    ],
)  # fmt: skip
def test_what_no_instruction_needs_is_refused(statement) -> None:
    with pytest.raises(ForbiddenCodeError, match="generated code"):
        check_line("    " + statement)
    namespace: dict[str, Any] = {}
    with pytest.raises(ForbiddenCodeError):
        make_function((), ["    k0(g, m)", "    " + statement], namespace, "test")
    assert namespace == {}


def test_views_are_from_the_list() -> None:
    with pytest.raises(ForbiddenCodeError, match="view"):
        make_function(["U32; import os"], [], {}, "test")


def test_indentation_is_that_of_a_function_or_a_guard() -> None:
    check_line("    k0(g, m)")
    check_line("        k0(g, m)")
    for indent in ("", " ", "  ", "     ", "            "):
        with pytest.raises(ForbiddenCodeError):
            check_line(indent + "k0(g, m)")


def test_generated_code_has_no_builtins(texts) -> None:
    namespace: dict[str, Any] = {"k0": lambda g, m: None}
    make_function((), ["    k0(g, m)"], namespace, "test")(None, None)
    assert set(namespace["__builtins__"]) == {"__import__"}  # for NumPy's C code
    assert "__import__" not in UFUNCS | METHODS | FIELDS | KEYWORDS


def test_lines_alone_mean_what_they_mean_together(texts) -> None:
    """The lines that are compared one by one make the tree that is compiled."""
    launched(PTX)
    for text in texts.compiled:
        (function,) = ast.parse(text).body
        assert isinstance(function, ast.FunctionDef)
        whole = [
            one
            for statement in function.body
            for one in ([*statement.body] if isinstance(statement, ast.If) else [statement])
        ]
        lines = [line.strip() for line in text.split("\n")[1:] if line != "    if w.any():"]
        assert len(whole) == len(lines)
        for one, line in zip(whole, lines, strict=True):
            if line != "return None":
                assert ast.dump(one) == ast.dump(ast.parse(line).body[0])
                if not re.fullmatch(r"(\w+) = g\.\1", line):
                    check_statement(one)


def test_no_keyword_is_an_own_word() -> None:
    assert not {*UFUNCS, *METHODS, *FIELDS, *KEYWORDS, *VIEWS} & {*keyword.kwlist}
