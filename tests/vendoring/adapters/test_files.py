"""The files of all adapters for all shipped kernels: one text each, which can be read and built."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from fa4gen.render.environment import open_templates
from fa4gen.vendoring.folder_files import ADAPTER_ROOTS
from fa4gen.vendoring.kernel_facts import launcher_facts
from tests.vendoring.adapters.folders import adapter_files
from tests.vendoring.launcher.shipped import shipped_plans


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return adapter_files(kernels_of_adapters())


def kernels_of_adapters() -> tuple[str, ...]:
    """The shipped kernels but those with atoms of scales or fp4, which are refused."""
    facts = {name: launcher_facts(plan) for name, plan in shipped_plans().items()}
    return tuple(
        name for name, one in facts.items() if not one.has_atoms and one.elements_per_byte == 1
    )


def test_each_adapter_has_its_files(files) -> None:
    assert set(ADAPTER_ROOTS) == {"python", "torch", "jax", "tvm-ffi", "hf-kernels"}
    assert sum(path.endswith("example.py") for path in files) == 4


def test_python_files_have_a_function_for_each_kernel(files) -> None:
    for path in ("python/acme.py", "torch/acme_torch.py", "jax/acme_jax.py"):
        tree = ast.parse(files[f"adapters/{path}"])
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert set(kernels_of_adapters()) <= functions


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


def test_names_that_python_and_the_files_need_themselves_get_an_underscore() -> None:
    names = ["class", "map", "torch", "launch", "new", "load_cpp", "double"]
    plan = shipped_plans()["d64_dense_small_bf16"]
    plans = {name: replace(plan, vendored_as=f"acme_{name}") for name in names}
    texts = adapter_files(tuple(names), plans)
    functions = ["class_", "map_", "torch_", "launch", "new", "load_cpp_", "double"]
    for path in ("python/acme.py", "torch/acme_torch.py", "jax/acme_jax.py"):
        tree = ast.parse(texts[f"adapters/{path}"])
        assert (
            functions == [node.name for node in tree.body if isinstance(node, ast.FunctionDef)][:7]
        )
    for path in ("torch/acme_torch.cpp", "tvm_ffi/acme_tvm_ffi.cc"):
        assert (
            "const Attention kernel_launch = {\n    acme_launch_kernel,"
            in texts[f"adapters/{path}"]
        )


@pytest.mark.parametrize("family", ["attention", "gemm", "merge"])
def test_nothing_of_the_generator_is_imported(family) -> None:
    names = tuple(name for name, plan in shipped_plans().items() if plan.kernel == family)[:1]
    for path, text in adapter_files(names).items():
        if path.endswith(".py"):
            for node in ast.walk(ast.parse(text)):
                names_there = [a.name for a in node.names] if isinstance(node, ast.Import) else []
                module = node.module if isinstance(node, ast.ImportFrom) else ""
                assert not any("fa4gen" in (name or "") for name in [*names_there, module]), path


def test_scratch_memory_of_jax_is_aligned_as_xla_can(files) -> None:
    """XLA refuses more than 16; without a GPU nothing else would show it."""
    text = files["adapters/jax/acme_jax.cc"]
    assert "scratch->Allocate(bytes, ACME_WORKSPACE_ALIGNMENT)" in text
    header = open_templates().source("vendored/launcher.h.j2").text
    assert "#define {{ PREFIX }}_WORKSPACE_ALIGNMENT 16\n" in header
