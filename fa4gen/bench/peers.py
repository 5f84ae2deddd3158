"""Other libraries' attention kernels, timed against ours; all of them through PyTorch.

* ``cudnn``, ``fa2`` and ``efficient``: torch.nn.functional.scaled_dot_product_attention with one
  backend allowed, on transposed views of the same memory. It has no sliding window and no softcap.
  ``efficient`` is timed beyond depth 256, which the others do not support.
* ``fa3``: the operator torch.ops.flash_attn_3.fwd of a FlashAttention-3 library that the user
  names, with num_splits=1; with splits of its own choice where our kernel splits keys.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from fa4gen.errors import MissingCapabilityError, Problem
from fa4gen.masks import Causal, NoMask, SlidingWindow
from fa4gen.overriding import override

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from fa4gen.designs.common.attention_model import AttentionPlan


WIDEST_FLASH = 256
"""The greatest depth of FlashAttention-2 and -3, and of cuDNN's fast kernels."""


@dataclass(frozen=True)
class Sequences:
    """The tensors that divide rows into sequences, where these differ or keys are in pages."""

    longest_query: int
    longest_key: int
    tables: Mapping[str, Any] = field(default_factory=dict)
    """torch's int32 tensors, by the names of our own call's arguments."""


@dataclass(frozen=True)
class AttentionOperands:
    """Torch's tensors of one call, (batch, rows, heads, depth).

    With ``sequences`` they are laid out as our kernel takes them.
    """

    query: Any
    key: Any
    value: Any
    sequences: Sequences | None = None
    own: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of our own kernel for this problem: CuPy's arrays by name, tables among them."""
    out: Any = None
    """The output of ``own``, as torch's tensor."""
    scalars: ClassVar[Mapping[str, float]] = {}
    """The default softmax scale."""


class LeftOutError(Exception):
    """An error for a peer that does not support the problem; the message has the reason."""


class Peer(ABC):
    """One kernel to compare with."""

    name: str
    """A short word for tables."""

    def suits(self, plan: Any) -> bool:
        """Whether it is a peer of such a kernel at all; others are not mentioned."""
        del plan
        return True

    def label(self, plan: Any) -> str:
        """Return its name for tables, with the activation for which it needs a second kernel."""
        del plan
        return self.name

    @abstractmethod
    def prepare(self, plan: Any, operands: Any) -> Callable[[], Any]:
        """Return a function with the result of our kernel: the output, a tensor of torch's.

        It may write the output of ``operands`` and nothing else of them. Raises LeftOutError for a
        problem that the peer does not support.
        """


@dataclass(frozen=True)
class Peers:
    """The peers of this machine, and notes on those that are missing."""

    found: tuple[Any, ...]
    """Peers, and perhaps the read floor."""
    notes: tuple[str, ...]


def find_peers(fa3: Path | None = None) -> Peers:
    """Return the peers that can be run.

    ``fa3`` is a FlashAttention-3 library for torch.ops.load_library. Raises MissingCapabilityError
    when it was given and does not load.
    """
    try:
        import torch  # noqa: F401
    except ImportError as error:
        if fa3 is not None:
            raise MissingCapabilityError(
                Problem(f"--fa3 needs PyTorch, which cannot be imported: {error}")
            ) from error
    note = why_no_torch()
    if note is not None:
        return Peers((), (note,))
    found: list[Peer] = [
        SdpaPeer("cudnn", "CUDNN_ATTENTION"),
        SdpaPeer("fa2", "FLASH_ATTENTION"),
        SdpaPeer("efficient", "EFFICIENT_ATTENTION", range(WIDEST_FLASH + 1, sys.maxsize)),
    ]
    if fa3 is not None:
        return Peers((load_fa3(fa3), *found), ())
    return Peers(tuple(found), ("fa3 left out: --fa3 names its library",))


def why_no_torch() -> str | None:
    """Return why PyTorch's peers cannot be used; None where they can."""
    try:
        import torch
    except ImportError as error:
        return f"no peers: PyTorch, which provides them, cannot be imported ({error})"
    if not torch.cuda.is_available():
        return f"no peers: PyTorch {torch.__version__} finds no GPU"
    return None


@dataclass(frozen=True)
class SdpaPeer(Peer):
    """scaled_dot_product_attention with one backend."""

    name: str
    backend: str
    """Its name in torch.nn.attention.SDPBackend."""
    depths: range = range(WIDEST_FLASH + 1)
    """Depths at which it is timed: where it runs and no much faster peer does."""

    @override
    def prepare(self, plan: AttentionPlan, operands: AttentionOperands) -> Callable[[], Any]:
        if operands.sequences is not None:
            raise LeftOutError("it is not timed with lengths of sequences or pages")
        if plan.depth not in self.depths:
            raise LeftOutError(f"it is not timed at depth {plan.depth}")
        if not isinstance(plan.mask, NoMask | Causal):
            raise LeftOutError(f"it has no mask {plan.mask.name}")
        if plan.score.FUNCTION:
            raise LeftOutError(f"it has no {plan.score.name}")
        if plan.sinks:
            raise LeftOutError("it has no sinks")
        query, key, value = operands.query, operands.key, operands.value
        if isinstance(plan.mask, Causal) and query.shape[1] != key.shape[1]:
            raise LeftOutError("its diagonal begins at the first key, not at the last")
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.nn.functional import scaled_dot_product_attention

        backend = getattr(SDPBackend, self.backend)
        q, k, v = (tensor.transpose(1, 2) for tensor in (query, key, value))
        options = {"is_causal": isinstance(plan.mask, Causal)}
        if query.shape[2] != key.shape[2]:
            options["enable_gqa"] = True

        def run() -> Any:
            with sdpa_kernel(backend):
                return scaled_dot_product_attention(q, k, v, **options).transpose(1, 2)

        return run


@dataclass(frozen=True)
class Fa3Peer(Peer):
    """The forward operator of a FlashAttention-3 library."""

    operator: Any
    arguments: frozenset[str]
    """Names of the operator's arguments: libraries differ."""
    name: str = "fa3"

    @override
    def prepare(self, plan: AttentionPlan, operands: AttentionOperands) -> Callable[[], Any]:
        if plan.sinks:
            raise LeftOutError("it has no sinks")
        options: dict[str, Any] = {"is_causal": isinstance(plan.mask, Causal)}
        if "num_splits" in self.arguments:
            options["num_splits"] = 0 if plan.splits_keys else 1
        if isinstance(plan.mask, SlidingWindow):
            if not {"window_size_left", "window_size_right"} <= self.arguments:
                raise LeftOutError("this library has no sliding window")
            options["window_size_left"] = plan.mask.window_left
            options["window_size_right"] = plan.mask.window_right
        elif not isinstance(plan.mask, NoMask | Causal):
            raise LeftOutError(f"it has no mask {plan.mask.name}")
        if plan.score.FUNCTION and plan.score.name not in self.arguments:
            raise LeftOutError(f"this library has no {plan.score.name}")
        options |= plan.score.numbers()
        if operands.sequences is not None:
            options |= self._of_sequences(operands.sequences)
        operator, query, key, value = self.operator, operands.query, operands.key, operands.value

        def run() -> Any:
            result = operator(query, key, value, **options)
            return result[0] if isinstance(result, tuple | list) else result

        return run

    def _of_sequences(self, sequences: Sequences) -> dict[str, Any]:
        """Return the operator's arguments that divide the rows into sequences."""
        names = {
            "query_offsets": ("cu_seqlens_q", "max_seqlen_q", sequences.longest_query),
            "key_offsets": ("cu_seqlens_k", "max_seqlen_k", sequences.longest_key),
            "key_lengths": ("seqused_k", None, 0),
            "page_table": ("page_table", None, 0),
        }
        options: dict[str, Any] = {}
        for ours, table in sequences.tables.items():
            theirs, most, longest = names[ours]
            options[theirs] = table
            if most is not None:
                options[most] = longest
        missing = options.keys() - self.arguments
        if missing:
            raise LeftOutError(f"this library has no {', '.join(sorted(missing))}")
        return options


def load_fa3(library: Path) -> Fa3Peer:
    """Load a FlashAttention-3 library; MissingCapabilityError when it cannot be used."""
    import torch

    try:
        torch.ops.load_library(str(library))
        operator = torch.ops.flash_attn_3.fwd
        schema = operator.default._schema
    except (OSError, RuntimeError, AttributeError) as error:
        raise MissingCapabilityError(
            Problem(
                f"{library} cannot be used as FlashAttention-3: {error}",
                "It has to be built for this PyTorch and register flash_attn_3::fwd; if it needs "
                "another CUDA runtime than PyTorch's, put its folder on LD_LIBRARY_PATH.",
            )
        ) from error
    return Fa3Peer(operator, frozenset(argument.name for argument in schema.arguments))
