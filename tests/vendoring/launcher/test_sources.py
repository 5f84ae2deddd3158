"""The launcher's text: warnings of four compilers, widths, licence lines."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from fa4gen.errors import MissingCapabilityError
from fa4gen.render.text_check import first_breach
from fa4gen.vendoring.host_build import compile_c, find_c_compiler
from tests.vendoring.launcher.shipped import WARNINGS, shipped_plans, write_launcher

DIALECTS = (
    ("gcc", "-std=c99"),
    ("clang", "-std=c99"),
    ("g++", "-x", "c++", "-std=c++17"),
    ("clang++", "-x", "c++", "-std=c++17"),
)


@pytest.mark.parametrize("command", DIALECTS, ids=lambda command: command[0])
def test_it_compiles_without_a_warning(launcher_folder, command) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]} on this machine")
    cubins = sorted((launcher_folder / "cubins").glob("*.c"))[:2]
    sources = [*sorted((launcher_folder / "src").glob("*.c")), *cubins]
    made = subprocess.run(
        [*command, *WARNINGS, "-fsyntax-only", *map(str, sources)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (made.returncode, made.stderr) == (0, "")


WINDOWS_HEADERS = {
    "string.h": """
        void *memcpy(void *, const void *, size_t);
        void *memmove(void *, const void *, size_t);
        void *memset(void *, int, size_t);
        int strcmp(const char *, const char *);
        size_t strlen(const char *);
        int memcmp(const void *, const void *, size_t);
    """,
    "windows.h": """
        typedef struct HINSTANCE__ *HMODULE;
        typedef long long(__stdcall *FARPROC)(void);
        HMODULE __stdcall LoadLibraryExA(const char *, void *, unsigned long);
        int __stdcall FreeLibrary(HMODULE);
        int __stdcall SwitchToThread(void);
        FARPROC __stdcall GetProcAddress(HMODULE, const char *);
    """,
    "intrin.h": """
        __int64 _InterlockedCompareExchange64(volatile __int64 *, __int64, __int64);
        __int64 _InterlockedExchange64(volatile __int64 *, __int64);
        __int64 _InterlockedOr64(volatile __int64 *, __int64);
    """,
}
"""As much of Windows as the launcher uses, so that any clang can read what MSVC would."""


@pytest.mark.parametrize("dialect", ["-xc", "-xc++"])
def test_it_compiles_for_windows(launcher_folder, tmp_path, dialect) -> None:
    if shutil.which("clang") is None:
        pytest.skip("no clang on this machine")
    for name, text in WINDOWS_HEADERS.items():
        body = '#include <stddef.h>\n#ifdef __cplusplus\nextern "C" {\n#endif\n' + text
        (tmp_path / name).write_text(body + "\n#ifdef __cplusplus\n}\n#endif\n")
    standard = "-std=c99" if dialect == "-xc" else "-std=c++17"
    made = subprocess.run(
        ["clang", "--target=x86_64-pc-windows-msvc", "-U__clang__", "-ffreestanding", dialect,
         standard, "-fms-extensions", "-Wall", "-Wextra", "-Werror", "-Wconversion",
         "-Wno-pragma-once-outside-header", f"-isystem{tmp_path}", "-fsyntax-only",
         *map(str, sorted((launcher_folder / "src").glob("*.c")))],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (made.returncode, made.stderr) == (0, "")


WINDOWS_STUB = """
#include <stdio.h>
#include <dlfcn.h>
#include <sched.h>
#define __stdcall
typedef void *HMODULE;
typedef void *FARPROC;
static inline HMODULE LoadLibraryExA(const char *name, void *file, unsigned long flags) {
  printf("%s %d %#lx\\n", name, file != NULL, flags);
  return NULL;
}
static inline int FreeLibrary(HMODULE library) { return library == NULL; }
static inline FARPROC GetProcAddress(HMODULE library, const char *name) {
  return dlsym(library, name);
}
static inline int SwitchToThread(void) { return sched_yield(); }
"""
WINDOWS_MAIN = """
#include "acme.h"
int main(void) { return acme_load(acme_kernel_at(0)) != ACME_NO_DRIVER; }
"""


def test_windows_looks_for_the_driver_in_the_systems_folder_alone(tmp_path) -> None:
    try:
        compiler = find_c_compiler()
    except MissingCapabilityError as error:
        pytest.skip(str(error))
    name, plan = next(iter(shipped_plans().items()))
    folder = write_launcher(tmp_path / "folder", {name: plan})
    (tmp_path / "windows.h").write_text(WINDOWS_STUB)
    (tmp_path / "main.c").write_text(WINDOWS_MAIN)
    sources = [*sorted(folder.glob("*/*.c")), tmp_path / "main.c"]
    flags = ["-std=c99", "-D_WIN32", f"-I{tmp_path}", f"-I{folder / 'include'}"]
    compile_c(compiler, flags, sources, tmp_path / "program")
    done = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True)
    assert done.stdout == "nvcuda.dll 0 0x800\n"


def test_struct_tags_have_the_prefix(launcher_folder) -> None:
    for path in sorted(launcher_folder.glob("src/*.[ch]")):
        tags = re.findall(r"\b(?:struct|union|enum) (\w+) \{", path.read_text())
        assert tags
        assert not [tag for tag in tags if not tag.startswith("acme_")]


def test_the_text_keeps_the_rules_of_generated_files(launcher_folder) -> None:
    for path in sorted(launcher_folder.glob("*/*.[ch]")):
        text = path.read_text()
        assert first_breach(text) is None, path
        assert text.startswith("/* SPDX-License-Identifier: Apache-2.0"), path
        for line in text.splitlines():
            assert len(line) <= 100 or any(plan.name in line for plan in shipped_plans().values())


def test_nothing_is_allocated_and_no_name_is_without_the_prefix(launcher_folder, launcher) -> None:
    """A program with two vendored folders links both."""
    library = launcher.library
    listed = subprocess.run(["nm", "-g", str(library)], capture_output=True, text=True, check=True)
    names = [line.split()[-2:] for line in listed.stdout.splitlines()]
    defined = {name for kind, name in names if kind in "TDBRV"}
    assert {name for name in defined if not name.startswith("acme_")} <= {
        "_init", "_fini", "__wrap_dlopen",
    }  # fmt: skip
    wanted = {name.split("@")[0] for kind, name in names if kind == "U"}
    assert not wanted & {"malloc", "calloc", "realloc", "free", "pthread_mutex_lock"}


def reasons_of_macros(rows: str) -> dict[str, set[str]]:
    """Return the reasons of each macro that makes several rows of one argument."""
    found: dict[str, set[str]] = {}
    for name, body in re.findall(r"#define (\w+)\(argument, [^)]*\)((?:.*\\\n)*.*)", rows):
        used = (found[other] for other in found if f"{other}(argument" in body)
        found[name] = set(re.findall(r"ROW\(argument, (\w+)", body)).union(*used)
    del found["ROW"]
    return found


def test_every_status_that_the_sources_return_has_words(launcher_folder, launcher) -> None:
    """Each reason beside each argument that it is written beside, and those set apart."""
    text = (launcher_folder / "src/launcher.c").read_text()
    returned, rows = text.split("/* ---- Statuses in words")
    pairs = re.findall(
        r"(?:REFUSED|STATUS)\((?:ACME_ARG_)?([A-Z_]+),\s*(?:ACME_)?([A-Z_]+)\)", returned
    )
    assert len(pairs) > 40
    words = set(re.findall(r"^    ROW\((\w+), (\w+),", rows, re.MULTILINE))
    for name, reasons in reasons_of_macros(rows).items():
        of_name = re.findall(rf"^    {name}\((\w+),", rows, re.MULTILINE)
        words |= {(argument, reason) for argument in of_name for reason in reasons}
    for pair in pairs:
        assert pair in words
