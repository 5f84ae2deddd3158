"""The programs in docs/guide/vendored-adapters.md: the adapters have their functions."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.vendoring.adapters.folders import adapter_files

DOCUMENT = Path(__file__).parents[3] / "docs/guide/vendored-adapters.md"
SHOWN = re.findall(r"^```py\n(.*?)^```$", DOCUMENT.read_text(encoding="utf-8"), re.M | re.S)
PROGRAMS = [program for program in SHOWN if "get_local_kernel" not in program]
"""Those of adapters; the other one loads what Hugging Face's loader takes."""
FILES = {
    "acme": "adapters/python/acme.py",
    "acme_torch": "adapters/torch/acme_torch.py",
    "acme_jax": "adapters/jax/acme_jax.py",
}


def parameters(text: str, function: str) -> set[str]:
    (node,) = [
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name == function
    ]
    return {word.arg for word in [*node.args.args, *node.args.kwonlyargs]}


def test_each_adapter_is_shown() -> None:
    assert len(PROGRAMS) == 4


@pytest.mark.parametrize("program", PROGRAMS)
def test_its_calls_are_those_of_the_files(program) -> None:
    files = adapter_files(("d128_causal_bf16",))
    calls = [
        node
        for node in ast.walk(ast.parse(program))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "d128_causal_bf16"
    ]
    assert len(calls) == 1
    (call,) = calls
    module = call.func.value.id  # type: ignore[attr-defined]
    if module in FILES:
        known = parameters(files[FILES[module]], "d128_causal_bf16")
        assert {word.arg for word in call.keywords} <= known
        assert [arg.id for arg in call.args] == ["query", "key", "value"]  # type: ignore[attr-defined]
    else:
        source = files["adapters/tvm_ffi/acme_tvm_ffi.cc"]
        (text,) = re.findall(r"void run_d128_causal_bf16\((.*?)\) \{", source, re.S)
        assert len(call.args) == text.count(",") + 1
