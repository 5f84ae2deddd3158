"""Machine code of kernels that the user edited."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

import pytest

from fa4gen.vendoring.lock import read_lock
from tests.vendoring.folder.conftest import CONFIG, Vendored

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.compile
SOURCE, CUBIN = f"kernels/acme_{CONFIG}.cu", f"cubins/acme_{CONFIG}.c"


def code_of(folder: Path) -> bytes:
    rows = re.findall(r"^    ((?:\d+,)+)$", (folder / CUBIN).read_text(), re.MULTILINE)
    return bytes(int(byte) for row in rows for byte in row.split(",")[:-1])


def edit(vendored: Vendored) -> None:
    """Let the kernel's first thread stop, which changes the machine code."""
    place = vendored.folder / SOURCE
    text = place.read_text()
    head = text.index(") {\n", text.index('extern "C" __global__')) + len(") {\n")
    place.write_text(text[:head] + "  if (threadIdx.x == 1000) return;\n" + text[head:])


def test_nothing_is_compiled_where_nothing_was_edited(vendored: Vendored) -> None:
    before = vendored.files()
    assert vendored.run("recompile", "attn").status == 0
    assert vendored.files() == before


def test_an_edited_kernel_has_its_own_machine_code(vendored: Vendored) -> None:
    before = vendored.files()
    edit(vendored)
    status, out, _ = vendored.run("check", "attn")
    assert status == 3
    (line,) = [line for line in out.splitlines() if line.startswith("stale")]
    assert line.split(maxsplit=2)[1:] == [
        f"attn/{CUBIN}",
        f"compiled from another acme_{CONFIG}.cu",
    ]
    assert "fa4gen vendor recompile attn" in out
    assert vendored.run("recompile", "attn", "--dry-run").status == 0
    assert vendored.files()[CUBIN] == before[CUBIN]
    assert vendored.run("recompile", "attn").status == 0
    files = vendored.files()
    changed = {path for path in files if files[path] != before[path]}
    assert changed == {SOURCE, CUBIN, "fa4gen.lock"}
    assert code_of(vendored.folder).startswith(b"\x7fELF")
    (kernel,) = read_lock(vendored.folder).kernels
    assert kernel.image.sha256 == hashlib.sha256(code_of(vendored.folder)).hexdigest()
    assert kernel.image.sha256.encode() not in before[CUBIN]
    status, out, _ = vendored.run("check", "attn")
    assert status == 3
    assert "current, 1 edited\n" in out  # the kernel, and nothing else
    # An update in which fa4gen has nothing new keeps both.
    assert vendored.run("update", "attn").status == 0
    assert vendored.files() == files


def test_a_source_that_does_not_compile_changes_nothing(vendored: Vendored) -> None:
    place = vendored.folder / SOURCE
    place.write_text(place.read_text() + "not CUDA\n")
    assert "nothing was written" in vendored.refused("recompile", "attn", status=1)


def test_machine_code_that_is_missing_is_compiled(vendored: Vendored) -> None:
    before = vendored.files()
    (vendored.folder / CUBIN).unlink()
    assert vendored.run("recompile", "attn").status == 0
    assert vendored.files() == before


def test_a_source_that_is_missing_is_named(vendored: Vendored) -> None:
    (vendored.folder / SOURCE).unlink()
    error = vendored.refused("recompile", "attn", status=3)
    assert f"attn/{SOURCE}: the file is missing" in error
