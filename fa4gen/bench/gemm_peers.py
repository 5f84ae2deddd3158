"""cuBLAS, timed against our matrix products, through PyTorch.

* ``cublas``: torch.mm without a residual, torch.addmm with one, both into an existing output;
  torch.bmm and torch.baddbmm for a batch; torch._scaled_mm for fp8, with the summation of the
  tensor cores themselves, as ours.
* ``cublas in place``: torch.addmm into C itself, for a matrix residual. PyTorch may otherwise copy
  C into the output first. C is lost.

An activation is a second kernel after either, and part of the name: ``cublas + relu``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from fa4gen.bench.peers import LeftOutError, Peers, why_no_torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.common.gemm_model import GemmPlan

ACTIVATIONS = {
    "relu(x)": "relu",
    "max(x,0)": "relu",
    "max(0,x)": "relu",
    "gelu(x)": "gelu",
    "silu(x)": "silu",
    "x*sigmoid(x)": "silu",
    "tanh(x)": "tanh",
    "sigmoid(x)": "sigmoid",
}
"""Activations for which PyTorch has a single kernel, as in configs, without blanks."""
TORCH_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


@dataclass(frozen=True)
class GemmArrays:
    """Torch's tensors of one call: A (m, k), B (k, n), C or None, D (m, n).

    All but a C with a single axis may have a batch in front.
    """

    a: Any
    b: Any
    c: Any
    out: Any


class GemmPeer(Protocol):
    """One way to compute a matrix product."""

    def suits(self, plan: GemmPlan) -> bool:
        """Whether it is a peer of such a kernel at all; others are not mentioned."""

    def label(self, plan: GemmPlan) -> str:
        """Return its name for tables, with the activation for which it needs a second kernel."""

    def prepare(
        self, plan: GemmPlan, arrays: GemmArrays, *, alpha: float, beta: float
    ) -> Callable[[], Any]:
        """Return a function with the result of our kernel, which returns the output.

        It may write ``arrays.out`` and nothing else of ``arrays``. Raises LeftOutError for a
        product that the peer does not support.
        """


def find_gemm_peers() -> Peers:
    """Return the peers that can be run."""
    note = why_no_torch()
    if note is not None:
        return Peers((), (note,))
    return Peers((CublasPeer(), InPlacePeer()), ())


@dataclass(frozen=True)
class CublasPeer:
    """The product into an output of its own."""

    name: str = "cublas"

    def suits(self, plan: GemmPlan) -> bool:  # noqa: ARG002
        """Return True: it is a peer of every kernel."""
        return True

    def label(self, plan: GemmPlan) -> str:
        """Return its name, with the activation for which it needs a second kernel."""
        return _with_activation(self.name, plan)

    def prepare(
        self, plan: GemmPlan, arrays: GemmArrays, *, alpha: float, beta: float
    ) -> Callable[[], Any]:
        """Return a function that computes the product into an output of its own."""
        activate = _activation(plan)
        if plan.dtype == "fp8_e4m3":
            product = _scaled_product(plan, arrays, alpha, beta)
        else:
            product = _product(plan, arrays, alpha, beta)
        return product if activate is None else lambda: activate(product())


@dataclass(frozen=True)
class InPlacePeer:
    """The product added to a C that is overwritten."""

    name: str = "cublas in place"

    def suits(self, plan: GemmPlan) -> bool:
        """Whether the kernel has a residual of the output's shape, and no fp8."""
        return plan.c.is_matrix and plan.dtype != "fp8_e4m3"

    def label(self, plan: GemmPlan) -> str:
        """Return its name, with the activation for which it needs a second kernel."""
        return _with_activation(self.name, plan)

    def prepare(
        self, plan: GemmPlan, arrays: GemmArrays, *, alpha: float, beta: float
    ) -> Callable[[], Any]:
        """Return a function that adds to a copy of C in place: later calls add their output."""
        activate = _activation(plan)
        own = arrays.c.clone()  # ours needs C as it is
        product = _product(plan, GemmArrays(arrays.a, arrays.b, own, own), alpha, beta)
        return product if activate is None else lambda: activate(product())


def _product(plan: GemmPlan, arrays: GemmArrays, alpha: float, beta: float) -> Callable[[], Any]:
    import torch

    a, b, c, out = arrays.a, arrays.b, arrays.c, arrays.out
    batched = len(a.shape) == 3
    wider: dict[str, Any] = {}
    if plan.out_dtype != plan.dtype:
        wider["out_dtype"] = getattr(torch, TORCH_DTYPES[plan.out_dtype])
    if not plan.c.exists:
        if alpha != 1:
            raise LeftOutError("torch.mm has no alpha")
        multiply = torch.bmm if batched else torch.mm
        return lambda: multiply(a, b, out=out, **wider)
    add = torch.baddbmm if batched else torch.addmm
    if "n" not in plan.c.axes:
        c = c[..., None]
    return lambda: add(c, a, b, alpha=alpha, beta=beta, out=out, **wider)


def _scaled_product(
    plan: GemmPlan, arrays: GemmArrays, alpha: float, beta: float
) -> Callable[[], Any]:
    import torch

    if len(arrays.a.shape) == 3:
        raise LeftOutError("torch._scaled_mm has no batch")
    if plan.c.axes not in ((), ("n",)):
        raise LeftOutError(f"torch._scaled_mm adds no {plan.residual}")
    if plan.c.exists and beta != 1:
        raise LeftOutError(f"torch._scaled_mm adds a {plan.residual} as it is")
    if (plan.a_major, plan.b_major) != ("k", "k"):
        raise LeftOutError("torch._scaled_mm has k-major operands only")
    a, b, row, out = arrays.a, arrays.b, arrays.c, arrays.out
    scale_a = torch.full((), alpha, dtype=torch.float32, device=a.device)
    scale_b = torch.ones((), dtype=torch.float32, device=a.device)
    dtype = getattr(torch, TORCH_DTYPES[plan.out_dtype])

    def run() -> Any:
        return torch._scaled_mm(
            a, b, scale_a, scale_b, bias=row, out_dtype=dtype, use_fast_accum=True, out=out
        )

    return run


def _activation_word(plan: GemmPlan) -> str | None:
    return ACTIVATIONS.get("".join((plan.activation or "").split()))


def _with_activation(name: str, plan: GemmPlan) -> str:
    return name if plan.activation is None else f"{name} + {_activation_word(plan) or 'activation'}"


def _activation(plan: GemmPlan) -> Callable[[Any], Any] | None:
    """Return PyTorch's kernel for the activation, in place if possible."""
    if plan.activation is None:
        return None
    word = _activation_word(plan)
    if word is None:
        raise LeftOutError(f"PyTorch has no single kernel for {plan.activation}")
    import torch
    from torch.nn.functional import gelu, silu

    known: dict[str, Callable[[Any], Any]] = {
        "relu": torch.relu_,
        "gelu": gelu,
        "silu": lambda x: silu(x, inplace=True),
        "tanh": torch.tanh_,
        "sigmoid": torch.sigmoid_,
    }
    return known[word]
