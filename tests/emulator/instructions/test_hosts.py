"""Results never depend on the host: not on its vector unit, nor on the place in a row.

NumPy has several versions of many functions. Which one works on an element depends on the CPU, on
the length of the row, on its stride, and on the place in it; and they do not always give the same.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy._core import _multiarray_umath

from tests.emulator.instructions import rows
from tests.emulator.instructions.digest import digest, updates
from tests.emulator.instructions.forms import (
    LITERALS,
    Form,
    all_forms,
    forms,
    forms_of,
    opcodes,
    translators,
)
from tests.emulator.lanes import refused

TESTS = Path(__file__).parents[2]
LENGTHS = {1: 10, 2: 6, 7: 6, 32: 4, 128: 3}  # and how many rows of each


def test_every_translator_is_among_them() -> None:
    literal = {form.text.split(".")[0] for form in LITERALS}
    missing = [
        opcode
        for opcode, translate in translators()
        if not forms(opcode, translate) and opcode not in literal
    ]
    assert not missing
    assert not [str(form) for form in all_forms() if refused(form.line)]


@pytest.mark.parametrize("opcode", opcodes())
def test_same_bits_anywhere(opcode: str) -> None:
    """Whatever the length of the row, its stride, the place in it, and the mask."""
    rng = np.random.default_rng(5)
    starts = {n: rng.integers(0, rows.LANES - n + 1, count) for n, count in LENGTHS.items()}
    mask = rng.integers(0, 3, rows.LANES) == 0
    for form in forms_of(opcode):
        runner = rows.Runner(form)
        expected = runner.over(slice(None))

        def same(found: np.ndarray, wanted: np.ndarray, what: str, form: Form = form) -> None:
            assert found.tobytes() == wanted.tobytes(), f"{form}: {what}"

        for length, firsts in starts.items():
            for first in firsts.tolist():
                part = slice(first, first + length)
                same(runner.over(part), expected[part], f"{length} lanes from {first}")
        same(runner.over(slice(None), mask), expected[mask], "some lanes of the row")
        same(runner.over(slice(None, None, -1)), expected[::-1], "backwards")
        for stride in (2, 3):
            try:
                found = runner.over(slice(None), stride=stride)
            except ValueError:  # some read a register as its halves, which takes whole rows
                continue
            same(found, expected, f"registers of stride {stride}")


@pytest.mark.parametrize("name", updates())
def test_updates_of_memory_anywhere(name: str) -> None:
    """Atomic operations and reductions, whatever the length, the stride and the place."""
    function, *operands = updates()[name]
    with np.errstate(all="ignore"):
        expected = function(*operands)
        for length, count in LENGTHS.items():
            for first in range(0, count * 89, 89):
                part = slice(first, first + length)
                found = function(*(operand[part] for operand in operands))
                assert found.tobytes() == expected[part].tobytes(), (length, first)
        wide = [np.repeat(operand, 3)[::3] for operand in operands]
        assert np.ascontiguousarray(function(*wide)).tobytes() == expected.tobytes()


def _elsewhere(**environment: str) -> dict[str, str]:
    """The digest as another process of this host works it out."""
    script = (
        "import json, sys, types\n"
        "path, tests = json.loads(sys.argv[1])\n"
        "sys.path[:] = path\n"
        "sys.modules['tests'] = package = types.ModuleType('tests')\n"
        "package.__path__ = [tests]\n"
        "from tests.emulator.instructions.digest import digest\n"
        "print(json.dumps(digest()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, json.dumps([sys.path, str(TESTS)])],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


def _versions() -> list[str]:
    """Return the CPU features that NumPy has versions of functions for, from the least on."""
    features = _multiarray_umath.__cpu_features__
    return [name for name in _multiarray_umath.__cpu_dispatch__ if features.get(name)]


@pytest.fixture(scope="module")
def here() -> dict[str, str]:
    return digest()


@pytest.mark.parametrize(
    ("kept", "core"),
    [(0, "Prescott"), (1, "Haswell"), *(pytest.param(n, "", marks=pytest.mark.seeds)
                                        for n in range(2, 6))],
)  # fmt: skip
def test_same_bits_on_lesser_hosts(kept: int, core: str, here: dict[str, str]) -> None:
    """As many versions as a lesser CPU has: NumPy's dispatch is switched off for the others.

    OpenBLAS takes the kernels of ``core``, where it is NumPy's library and knows them.
    """
    versions = _versions()
    if kept >= len(versions):
        pytest.skip(f"NumPy has {len(versions)} versions for this CPU besides the least")
    disabled = {"NPY_DISABLE_CPU_FEATURES": " ".join(versions[kept:])}
    found = _elsewhere(**disabled, OPENBLAS_CORETYPE=core)
    assert [form for form in here if found[form] != here[form]] == []
