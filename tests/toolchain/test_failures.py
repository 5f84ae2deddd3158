from __future__ import annotations

from fa4gen.toolchain.failures import Diagnostic, compile_error, read_errors
from fa4gen.toolchain.model import Unit

UNIT = Unit("k", "", {}, "sm_90a")


def test_errors_of_the_front_end() -> None:
    log = """\
sizes.h(2): error: expected a ";"
  int y y;
        ^

k.cu(3): warning #177-D: variable "unused" was declared but never referenced
  int unused;
      ^

k.cu(7): catastrophic error: cannot open source file "no.h"
  #include "no.h"
                 ^

2 errors detected in the compilation of "k.cu".
"""
    assert read_errors(log) == [
        Diagnostic('expected a ";"', "sizes.h", 2, 7),
        Diagnostic('cannot open source file "no.h"', "k.cu", 7, 16),
    ]


def test_an_error_that_goes_on_behind_its_first_line() -> None:
    log = """\
k.cu(5): error: no instance of function template "f" matches the argument list
            argument types are: (int)
    f(1);
    ^
"""
    (error,) = read_errors(log)
    assert error.message.endswith("argument list argument types are: (int)")
    assert (error.line, error.column) == (5, 3)


def test_errors_of_ptxas() -> None:
    log = """\
ptxas application ptx input, line 24; error   : Unknown modifier '.op'
ptxas k.ptx, line 25; error   : Not a name of any known instruction: 'bogus'
ptxas fatal   : Ptx assembly aborted due to errors
"""
    assert read_errors(log) == [
        Diagnostic("Unknown modifier '.op'", ptx_line=24),
        Diagnostic("Not a name of any known instruction: 'bogus'", ptx_line=25),
    ]
    assert [p.file for p in compile_error(UNIT, log).problems] == ["k.cu", "k.cu"]


def test_ptxas_without_a_line() -> None:
    log = "ptxas error   : Entry function 'k' uses too much shared data (0x40000 bytes)\n"
    assert read_errors(log)[0].message.startswith("ptxas: Entry function 'k' uses too much shared")


def test_errors_of_the_host_preprocessor() -> None:
    log = "k.cu:1:10: fatal error: bar.h: No such file or directory\n    1 | #include\n"
    assert read_errors(log) == [Diagnostic("bar.h: No such file or directory", "k.cu", 1, 10)]


def test_a_failure_that_says_nothing_known() -> None:
    (problem,) = compile_error(UNIT, "first\nnvcc fatal   : it broke\n\n").problems
    assert problem.message == "the compiler failed: nvcc fatal   : it broke"
    assert compile_error(UNIT, "").problems[0].message == "the compiler failed: no message"
