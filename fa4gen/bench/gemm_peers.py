"""cuBLAS, timed against our matrix products, through PyTorch.

* ``cublas``: torch.mm without a residual, torch.addmm with one, both into an existing output;
  torch.bmm and torch.baddbmm for a batch; torch._scaled_mm for fp8, with the summation of the
  tensor cores themselves, as ours; torch.nn.functional.scaled_mm with scales of blocks.
* ``cublas in place``: torch.addmm into C itself, for a matrix residual. PyTorch may otherwise copy
  C into the output first. C is lost.

An activation is a second kernel after either, and part of the name: ``cublas + relu``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fa4gen.bench.peers import LeftOutError, Peer, Peers, why_no_torch
from fa4gen.overriding import override

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
BLOCKS = {"1x128": "BlockWise1x128", "128x128": "BlockWise128x128"}
"""torch.nn.functional.ScalingType's names of the forms of scales that cuBLAS has on Hopper."""
TORCH_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


@dataclass(frozen=True)
class GemmOperands:
    """Torch's tensors of one call: A (m, k), B (k, n), C or None, D (m, n), and its factors.

    All but a C with a single axis may have a batch in front.
    """

    a: Any
    b: Any
    c: Any
    out: Any
    alpha: float = 1.0
    beta: float = 1.0
    scale_a: Any = None
    scale_b: Any = None
    """Scales of blocks as our kernel takes them; None without."""
    own: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of our own kernel for this problem: CuPy's arrays by name, ``out`` the same memory.

    They have the rows of groups and the index of gathered rows."""

    @property
    def scalars(self) -> dict[str, float]:
        """The factors by name."""
        return {"alpha": self.alpha, "beta": self.beta}


def find_gemm_peers() -> Peers:
    """Return the peers that can be run."""
    note = why_no_torch()
    if note is not None:
        return Peers((), (note,))
    return Peers((CublasPeer(), InPlacePeer()), ())


@dataclass(frozen=True)
class CublasPeer(Peer):
    """The product into an output of its own."""

    name: str = "cublas"

    @override
    def label(self, plan: GemmPlan) -> str:
        if plan.activation is None:
            return self.name
        return f"{self.name} + {_activation_word(plan) or 'activation'}"

    @override
    def prepare(self, plan: GemmPlan, operands: GemmOperands) -> Callable[[], Any]:
        activate = _activation(plan)
        multiply = _product if plan.dtype in TORCH_DTYPES else _scaled_product
        product = multiply(plan, operands)
        return product if activate is None else lambda: activate(product())


@dataclass(frozen=True)
class InPlacePeer(CublasPeer):
    """The product added to a C that is overwritten: of a residual of the output's shape."""

    name: str = "cublas in place"

    @override
    def suits(self, plan: GemmPlan) -> bool:
        return plan.c.is_matrix and plan.dtype in TORCH_DTYPES

    @override
    def prepare(self, plan: GemmPlan, operands: GemmOperands) -> Callable[[], Any]:
        own = operands.c.clone()  # ours needs C as it is; later calls add their output
        return super().prepare(plan, replace(operands, c=own, out=own))


def _product(plan: GemmPlan, operands: GemmOperands) -> Callable[[], Any]:
    import torch

    a, b, c, out = operands.a, operands.b, operands.c, operands.out
    alpha, beta = operands.alpha, operands.beta
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


def _scaled_product(plan: GemmPlan, operands: GemmOperands) -> Callable[[], Any]:
    import torch

    a, b, row, out = operands.a, operands.b, operands.c, operands.out
    if len(a.shape) == 3:
        raise LeftOutError("torch._scaled_mm has no batch")
    if plan.c.axes not in ((), ("n",)):
        raise LeftOutError(f"torch._scaled_mm adds no {plan.residual}")
    if plan.c.exists and operands.beta != 1:
        raise LeftOutError(f"torch._scaled_mm adds a {plan.residual} as it is")
    if (plan.a_major, plan.b_major) != ("k", "k"):
        raise LeftOutError("torch._scaled_mm has k-major operands only")
    if plan.scales:
        return _block_scaled_product(plan, operands)
    scale_a = torch.full((), operands.alpha, dtype=torch.float32, device=a.device)
    scale_b = torch.ones((), dtype=torch.float32, device=a.device)
    dtype = getattr(torch, TORCH_DTYPES[plan.out_dtype])

    def run() -> Any:
        return torch._scaled_mm(
            a, b, scale_a, scale_b, bias=row, out_dtype=dtype, use_fast_accum=True, out=out
        )

    return run


def _block_scaled_product(plan: GemmPlan, operands: GemmOperands) -> Callable[[], Any]:
    """Return the product with scales of blocks, which are copied into cuBLAS's order first."""
    import torch
    from torch.nn import functional

    forms = [row.form for row in plan.scales]
    unknown = next((form for form in forms if form not in BLOCKS), None)
    if unknown is not None:
        raise LeftOutError(f"cublas is timed with scales of {' and '.join(BLOCKS)}, not {unknown}")
    if not hasattr(functional, "scaled_mm"):
        raise LeftOutError("this PyTorch has no torch.nn.functional.scaled_mm with block scales")
    if operands.alpha != 1:
        raise LeftOutError("torch.nn.functional.scaled_mm has no alpha")
    by_line = operands.scale_a, operands.scale_b.t()  # (lines or blocks of them, blocks of k)
    (of_a, type_a), (of_b, type_b) = (
        (_as_cublas(given.float(), form), getattr(functional.ScalingType, BLOCKS[form]))
        for given, form in zip(by_line, forms, strict=True)
    )
    a, b, row = operands.a, operands.b, operands.c
    dtype = getattr(torch, TORCH_DTYPES[plan.out_dtype])
    return lambda: functional.scaled_mm(
        a, b, of_a, type_a, of_b, type_b, bias=row, output_dtype=dtype
    )


def _as_cublas(scales: Any, form: str) -> Any:
    """Return scales by line and block of k in the order that cuBLAS reads.

    Lines are contiguous; of 128 x 128, blocks of k are, padded to a multiple of 4.
    """
    if form == "1x128":
        return scales.t().contiguous().t()
    from torch.nn.functional import pad

    return pad(scales, (0, -scales.shape[1] % 4)).contiguous().t()


def _activation_word(plan: GemmPlan) -> str | None:
    return ACTIVATIONS.get("".join((plan.activation or "").split()))


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
