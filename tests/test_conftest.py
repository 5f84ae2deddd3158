"""Runs of the tests: what they draw."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py")
TESTS = """
import json, secrets
from pathlib import Path

from hypothesis import given, strategies as st

{first}
DRAWN = []

@given(st.integers(0, 10**9))
def test_draw(value):
    DRAWN.append(value)

def test_show(first_seed):
    Path("drawn.json").write_text(json.dumps([DRAWN, first_seed, secrets.randbelow(10**9)]))
"""
OF_ITS_OWN = "NUMBERS = [" + ", ".join(str(1000 + 37 * n) for n in range(300)) + "]\n"
"""Hypothesis would draw from these where they are imported."""


@pytest.fixture
def drawn(tmp_path):
    """A function that runs tests in a folder of their own and returns what they drew."""
    (tmp_path / "conftest.py").write_text(CONFTEST.read_text())
    (tmp_path / "numbers_of_its_own.py").write_text(OF_ITS_OWN)

    def drawn(*options: str, first: str = "") -> list[object]:
        (tmp_path / "test_them.py").write_text(TESTS.format(first=first))
        command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", "."]
        quiet = ["-p", "no:cacheprovider", "-p", "no:xdist", *options, "test_them.py"]
        done = subprocess.run(
            [*command, *quiet], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found: list[object] = json.loads((tmp_path / "drawn.json").read_text())
        return found

    return drawn


def test_each_run_draws_the_same(drawn) -> None:
    first = drawn()
    assert first[1] == 0
    assert len(first[0]) == 100
    again = ("--many-seeds", "--hypothesis-profile=same")
    assert drawn(*again, first="import numbers_of_its_own") == first


def test_fresh_draws(drawn) -> None:
    runs = drawn("--hypothesis-profile=fresh"), drawn("--many-seeds")
    assert all(one != other for one, other in zip(*runs, strict=True))
