"""The files of all adapters for all shipped kernels: one text each, which can be read and built."""

from __future__ import annotations

import ast

import pytest

from fa4gen.vendor.folder import ADAPTER_ROOTS
from tests.vendor.adapters.folders import adapter_files
from tests.vendor.launcher.shipped import shipped_plans


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return adapter_files(tuple(shipped_plans()))


def test_each_adapter_has_its_files(files) -> None:
    assert set(ADAPTER_ROOTS) == {"python", "torch", "jax", "tvm-ffi"}
    assert sum(path.endswith("example.py") for path in files) == 4


def test_python_files_have_a_function_for_each_kernel(files) -> None:
    for path in ("python/acme.py", "torch/acme_torch.py", "jax/acme_jax.py"):
        tree = ast.parse(files[f"adapters/{path}"])
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert set(shipped_plans()) <= functions


def test_text_is_clean(files) -> None:
    for path, text in files.items():
        lines = text.split("\n")
        assert "SPDX-License-Identifier: Apache-2.0" in lines[0], path
        assert text.endswith("\n"), path
        assert not text.endswith("\n\n"), path
        assert not [line for line in lines if line != line.rstrip()], path
        assert "{%" not in text, path
        assert "\n\n\n\n" not in text, path
        if not path.endswith(".py"):
            assert "\n\n\n" not in text, path


@pytest.mark.parametrize("family", ["attention", "gemm"])
def test_nothing_of_the_generator_is_imported(family) -> None:
    names = tuple(name for name, plan in shipped_plans().items() if plan.kernel == family)[:1]
    for path, text in adapter_files(names).items():
        if path.endswith(".py"):
            for node in ast.walk(ast.parse(text)):
                names_there = [a.name for a in node.names] if isinstance(node, ast.Import) else []
                module = node.module if isinstance(node, ast.ImportFrom) else ""
                assert not any("fa4gen" in (name or "") for name in [*names_there, module]), path
