"""Vendored folders with adapters for the tests, without a kernel being compiled."""

from __future__ import annotations

import importlib.util
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from fa4gen.render.environment import open_templates
from fa4gen.vendoring.folder_files import ADAPTER_ROOTS, template_values
from fa4gen.vendoring.model import Request
from tests.vendoring.launcher.shipped import PREFIX, facts_of, shipped_plans, write_launcher

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from fa4gen.designs.common.plans import Plan
    from fa4gen.runtime.tensor_view import TensorView

KERNELS = (
    "d128_causal_bf16",
    "d64_dense_small_bf16",
    "depth512_dense_fp8",
    "gemm_bf16_residual_sm90",
    "gemm_bf16_bias_gelu_sm90",
    "gemm_bf16_column_bias_sm90",
    "gemm_bf16_mn_major_sm90",
    "gemm_fp8_sm90",
)
"""With and without lse, with descales; without C, with a matrix, a row and a column."""


def adapter_files(
    names: tuple[str, ...],
    plans: dict[str, Plan] | None = None,
    adapters: tuple[str, ...] = tuple(ADAPTER_ROOTS),
) -> dict[str, str]:
    """The text of all adapters of a folder with these kernels, shipped ones if not given."""
    plans = plans or shipped_plans()
    facts = tuple(facts_of(name, plans[name]) for name in names)
    values = template_values(Request(PREFIX, adapters), facts)
    environment = open_templates().environment()
    return {
        path.format(prefix=PREFIX): environment.get_template(template).render(values)
        for adapter in adapters
        for path, template in ADAPTER_ROOTS[adapter]
    }


def write_folder(
    folder: Path,
    names: tuple[str, ...] = KERNELS,
    adapters: tuple[str, ...] = tuple(ADAPTER_ROOTS),
) -> Path:
    """Write the launcher and adapters; its cubins have no instructions."""
    plans = shipped_plans()
    write_launcher(folder, {name: plans[name] for name in names})
    for path, text in adapter_files(names, adapters=adapters).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


def import_file(path: Path, name: str = "") -> ModuleType:
    """Import a Python file as a module of its own."""
    spec = importlib.util.spec_from_file_location(name or path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class FakeArray:
    """Memory that passes for a GPU's by __cuda_array_interface__."""

    def __init__(self, array: np.ndarray, device: int = 0) -> None:
        """Use NumPy's memory."""
        self.array = array
        self.shape = array.shape
        self.dtype = array.dtype
        self.device = SimpleNamespace(id=device)
        self._place = array.ctypes.data, array.strides

    @classmethod
    def of(cls, view: TensorView, device: int) -> FakeArray:
        """Return an array of an address at which nothing needs to be."""
        made = cls(np.empty(0, getattr(ml_dtypes, view.dtype, view.dtype)), device)
        made.shape = view.shape
        made._place = view.pointer, view.strides
        return made

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        pointer, strides = self._place
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (pointer, False),
            "strides": strides,
            "version": 3,
        }
