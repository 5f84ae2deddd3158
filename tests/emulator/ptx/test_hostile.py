"""PTX that is nested, long or huge is refused by line and number, quickly."""

from __future__ import annotations

import time

import numpy as np
import pytest

from fa4gen.emulator import EmulatorError, LaunchError, Program
from fa4gen.emulator.ptx.parser import TARGETS, parse_module
from fa4gen.emulator.ptx.scopes import MODELLED, SPECIALS
from tests.emulator.kernel import kernel, run
from tests.emulator.ptx.hostile import REFUSED, TOO_LARGE, module


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_it_is_refused_by_line(text, message) -> None:
    begin = time.process_time()
    with pytest.raises(EmulatorError) as caught:
        Program(text).check()
    assert message in str(caught.value)
    assert str(caught.value).startswith("line ")
    assert len(str(caught.value)) < 1200
    assert time.process_time() - begin < 20


@pytest.mark.parametrize(("text", "message"), TOO_LARGE)
def test_what_needs_too_much_memory_is_refused_with_the_number(text, message) -> None:
    with pytest.raises(LaunchError) as caught:
        Program(text).launch(args=[np.zeros(1)])
    assert message in str(caught.value)


def test_nesting_below_the_limit_is_accepted() -> None:
    deep = 90
    parse_module(module(body="{" * deep + "}" * deep))
    text = module(body=f"mov.u32 %r1, {'(' * deep}7{')' * deep};")
    assert parse_module(text).functions["k"].instructions[0].operands[1].bits == 7  # type: ignore[union-attr]


def test_labels_of_many_blocks_take_no_time() -> None:
    begin = time.process_time()
    labels = parse_module(module(body="{ L: bra L; }\n" * 20_000)).functions["k"].labels
    assert len(labels) == 20_000
    assert time.process_time() - begin < 20  # quadratic in their number it took hours


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_known_targets_are_accepted(target) -> None:
    program = Program(module().replace("sm_90a", target))
    assert program.sm == int("".join(one for one in target if one.isdigit()))


@pytest.mark.parametrize(
    ("text", "value"),
    [("1 << 63", 1 << 63), ("-(1 << 63)", -(1 << 63)), ("(1 << 63) * 2", 0), ("~0", -1),
     ("18446744073709551615", (1 << 64) - 1), ("18446744073709551615 + 1", 0), ("3 * -(2)", -6)],
)  # fmt: skip
def test_constants_have_64_bits(text, value) -> None:
    found = parse_module(module(body=f"mov.u64 %d1, {text};")).functions["k"].instructions[0]
    assert found.operands[1].bits == value  # type: ignore[union-attr]


def test_every_special_register_that_is_accepted_has_a_value() -> None:
    for name in sorted(SPECIALS):
        wide = name.endswith(("64", "globaltimer", "graph_exec"))
        move = f"mov.u64 %d1, {name};" if wide else f"mov.u32 %r1, {name}; cvt.u64.u32 %d1, %r1;"
        store = f"{move} st.global.u64 [%d0], %d1;"
        if name in MODELLED:
            assert run(kernel(store), np.zeros(1, np.uint64), block=1).verdict.value == "clean"
        else:
            with pytest.raises(EmulatorError, match="has no value here"):
                run(kernel(store), np.zeros(1, np.uint64), block=1)


def test_a_clock_is_stored_as_wide_as_the_store() -> None:
    out = np.zeros(2, np.uint32)
    run(kernel("st.global.u32 [%d0], %clock64; st.global.u32 [%d0+4], 7;"), out, block=1)
    assert out[0] > 0
    assert out[1] == 7
