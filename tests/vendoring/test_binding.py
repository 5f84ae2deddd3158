"""The binding's structs and numbers are those that the C compiler sees in the header."""

from __future__ import annotations

import ctypes
import json
import subprocess

import pytest

from fa4gen.designs.registry import FAMILIES
from fa4gen.epilogues import RESIDUALS
from fa4gen.errors import MissingCapabilityError
from fa4gen.masks import MASKS
from fa4gen.render.environment import open_templates
from fa4gen.scores import SCORES
from fa4gen.vendoring import binding
from fa4gen.vendoring.family import families_in_folder
from fa4gen.vendoring.host_build import compile_c, find_c_compiler
from tests.vendoring.statuses import ARGUMENTS, DRIVER_ERROR, REASONS, describe_status


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Return the output of a C program that includes the header of an empty folder."""
    try:
        compiler = find_c_compiler()
    except MissingCapabilityError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("probe")
    header = open_templates().environment().get_template("vendored/launcher.h.j2")
    (folder / "abc.h").write_text(
        header.render(
            prefix="abc",
            PREFIX="ABC",
            kernels=(),
            families=families_in_folder(FAMILIES),
            regions=(),
            masks=MASKS,
            scores=SCORES,
            residuals=RESIDUALS,
            generator="test",
        )
    )
    lines = ['#include "abc.h"', "#include <stdio.h>", "int main(void) {", 'printf("{");']
    for name, struct in binding.STRUCTS.items():
        lines.append(f'printf("\\"{name}\\": [%zu", sizeof(abc_{name}));')
        lines += [
            f'printf(", %zu, %zu", offsetof(abc_{name}, {field}), '
            f"sizeof(((abc_{name} *)0)->{field}));"
            for field, _ in struct._fields_
        ]
        lines.append('printf("], ");')
    numbers = [f"ABC_{name}" for name in REASONS]
    numbers += [f"ABC_ARG_{name}" for name in ARGUMENTS]
    numbers += ["ABC_DRIVER_ERROR", "ABC_WORKSPACE_ALIGNMENT", "ABC_ABI_VERSION"]
    lines += [f'printf("\\"{name}\\": %d, ", (int){name});' for name in numbers]
    lines += ['printf("\\"end\\": 0}");', "return 0;", "}"]
    (folder / "probe.c").write_text("\n".join(lines))
    compile_c(compiler, ["-std=c99"], [folder / "probe.c"], folder / "probe")
    return json.loads(subprocess.run([folder / "probe"], capture_output=True, check=True).stdout)


@pytest.mark.parametrize("name", binding.STRUCTS)
def test_a_struct_is_that_of_the_header(seen, name) -> None:
    struct = binding.STRUCTS[name]
    fields = [getattr(struct, field) for field, _ in struct._fields_]
    expected = [n for field in fields for n in (field.offset, field.size)]

    assert seen[name] == [ctypes.sizeof(struct), *expected]


def test_numbers_are_those_of_the_header(seen) -> None:
    for number, name in enumerate(REASONS):
        assert seen[f"ABC_{name}"] == number
    for number, name in enumerate(ARGUMENTS):
        assert seen[f"ABC_ARG_{name}"] == number
    assert seen["ABC_DRIVER_ERROR"] == DRIVER_ERROR
    assert seen["ABC_WORKSPACE_ALIGNMENT"] == binding.WORKSPACE_ALIGNMENT
    assert seen["ABC_ABI_VERSION"] == 1, "of the structs in binding.py"


def test_a_status_is_taken_apart() -> None:
    assert describe_status(0) == ("OK", "NONE")
    assert describe_status(4 + 256 * 3) == ("BAD_STRIDE", "VALUE")
    assert describe_status(DRIVER_ERROR + 719) == ("DRIVER_ERROR", "719")
