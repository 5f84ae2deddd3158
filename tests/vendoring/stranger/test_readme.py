"""The commands of the folder's README, typed as written; its C compiled as it stands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.vendoring.stranger.tools import C99, CXX17, LIBRARIES, WARNINGS, call, need

if TYPE_CHECKING:
    from pathlib import Path


def blocks(folder: Path, language: str) -> list[str]:
    text = (folder / "README.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_lines_without_cmake(acme: Path, tmp_path: Path) -> None:
    need("cc")
    library, test = (block for block in blocks(acme, "sh") if block.startswith("cc "))
    call("sh", "-ec", library, cwd=acme)
    said = call("sh", "-ec", test.replace("./selftest", "./selftest --quick"), cwd=acme)
    assert "library: passed: 3 kernels" in said

    # and the calls that it shows, against that library
    program = tmp_path / "calls.c"
    attend, multiply = blocks(acme, "c")
    main = """\
int main(void) {
  int status = attend(NULL, NULL, NULL, NULL, 1, 0, 0, 1, 1, NULL);
  int other = multiply(NULL, NULL, NULL, NULL, 0, 0, 0, NULL);
  return *acme_status_text(status) && *acme_status_text(other) ? 0 : 1;
}
"""
    program.write_text(attend + multiply + main)
    include = f"-I{acme / 'include'}"
    for compiler, language in (("gcc", C99), ("g++", CXX17)):
        call(
            *(need(compiler), *WARNINGS, *language, include, program, "-x", "none"),
            *(f"-L{acme}", "-lacme", *LIBRARIES, "-o", "calls"),
            cwd=tmp_path,
        )
        call("./calls", cwd=tmp_path)


def test_the_install_lines(acme: Path, tmp_path: Path) -> None:
    need("cmake")
    (install,) = (block for block in blocks(acme, "sh") if block.startswith("cmake "))
    there = tmp_path / "installed"
    call("sh", "-ec", install.replace("/where/it/goes", str(there)), cwd=acme)
    assert (there / "include" / "acme.h").read_text() == (acme / "include" / "acme.h").read_text()
    assert list(there.glob("lib*/**/libacme.a"))
    said = call("ctest", "--test-dir", "build", "--output-on-failure", cwd=acme)
    assert "100% tests passed" in said
