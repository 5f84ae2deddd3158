"""Arguments that each adapter in Python refuses before the launcher is asked, in the same words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

from tests.vendoring.adapters.calls_of_kinds import CALLS, IN_PLACE, REFUSED, Spec
from tests.vendoring.adapters.folders import FakeArray, import_file, write_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Caller = Callable[[str, Mapping[str, Spec | None]], object]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("refusals"), tuple(CALLS))


def by_python(folder: Path) -> Caller:
    acme = import_file(folder / "adapters/python/acme.py", "acme_that_refuses")

    def make(spec: Spec | None) -> FakeArray | None:
        dtype = spec and getattr(ml_dtypes, spec.dtype, spec.dtype)
        return spec and FakeArray(np.zeros(spec.shape, dtype))

    return lambda name, arrays: getattr(acme, name)(**{k: make(v) for k, v in arrays.items()})


def by_torch(folder: Path) -> Caller:
    torch = pytest.importorskip("torch", minversion="2.9", reason="no PyTorch 2.9 or newer")
    from torch._subclasses import FakeTensorMode

    acme = import_file(folder / "adapters/torch/acme_torch.py", "acme_torch_that_refuses")

    def make(spec: Spec | None) -> Any:
        return spec and torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device="cuda")

    def call(name: str, arrays: Mapping[str, Spec | None]) -> object:
        with FakeTensorMode():
            return getattr(acme, name)(**{k: make(v) for k, v in arrays.items()})

    return call


def by_jax(folder: Path) -> Caller:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    acme = import_file(folder / "adapters/jax/acme_jax.py", "acme_jax_that_refuses")

    def call(name: str, arrays: Mapping[str, Spec | None]) -> object:
        given = {k: v and jax.ShapeDtypeStruct(v.shape, v.dtype) for k, v in arrays.items()}
        return jax.eval_shape(getattr(acme, name), **given)

    return call


@pytest.fixture(scope="module", params=[by_python, by_torch, by_jax])
def call(request: pytest.FixtureRequest, folder: Path) -> Caller:
    made: Caller = request.param(folder)
    return made


@pytest.mark.parametrize(("name", "array", "wrong", "expected"), REFUSED)
def test_the_argument_is_named(
    call: Caller, name: str, array: str, wrong: Spec | None, expected: str
) -> None:
    if call.__qualname__.startswith("by_jax") and name in IN_PLACE:
        pytest.skip("arrays of JAX do not change")
    with pytest.raises((ValueError, RuntimeError), match=f"{array}: expected {expected}"):
        call(name, {**CALLS[name].arrays, array: wrong})
