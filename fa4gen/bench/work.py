"""A problem on the GPU: inputs that kernels and peers share, and how far outputs are from exact."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from fa4gen.bench.gpu_arrays import (
    as_float32,
    as_torch,
    count_unwritten,
    distance,
    poisoned,
    viewed,
)
from fa4gen.designs import registry
from fa4gen.errors import Fa4genError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.bench.peers import Peer
    from fa4gen.bench.results import Size
    from fa4gen.toolchain.model import CompiledKernel

Run = Callable[[], Any]
Expected = Iterable[tuple[Callable[[Any], Any], Any]]
"""Parts of an output, as functions from it, each with its exact values in float64."""


class Work(ABC):
    """A problem of one kind of kernels, on one or several sets of arrays that take turns."""

    flop: float
    """Floating-point operations that the problem counts as."""
    read_bytes: int = 0
    """Bytes that have to be read, where memory sets the speed; 0 where products do."""

    def __init__(
        self, size: Size, out_shape: tuple[int, ...], *, most_error: float, sets: int = 1
    ) -> None:
        """``most_error``: an output or a peer further off, relatively, is wrong."""
        self.size = size
        self.most_error = most_error
        self._out_shape = out_shape
        self._sets = range(sets)
        self._outs: Sequence[Any] = ()

    @abstractmethod
    def prepare(self, kernel: Any, plan: Any, number: int, out: Any) -> Run:
        """Return a launch of a kernel on the set ``number``."""

    @abstractmethod
    def expected(self, plan: Any, number: int) -> Expected:
        """Return what is compared with float64."""

    @abstractmethod
    def operands(self, plan: Any, number: int, out: Any) -> Any:
        """Return torch's tensors of the set for peers, with an output of theirs like ``out``."""

    def written(self, out: Any) -> Any:
        """Return the part of an output that a call writes: all of it."""
        return out

    def read_memory(self) -> Any:
        """Return a flat array of the bytes that have to be read; asked where there are some."""
        raise NotImplementedError

    def launch(self, plan: Any, compiled: CompiledKernel) -> tuple[Run, float]:
        """Return a kernel's launches in turn, and its largest error.

        Peers are compared with the kernel that was asked for last. Raises Fa4genError for a wrong
        output, and for one that is not written everywhere.
        """
        kernel = registry.FAMILIES[plan.kernel].launcher.load()(plan, compiled.cubin)
        launches, errors = [], []
        outs = [poisoned(self._out_shape, plan.out_dtype) for _ in self._sets]
        for number, out in zip(self._sets, outs, strict=True):
            launches.append(self.prepare(kernel, plan, number, viewed(out, plan.out_dtype)))
            launches[-1]()
            errors.append(self._check(plan, number, out))
        self._outs = outs
        return in_turn(launches), max(errors)

    def call(self, peer: Peer, plan: Any) -> tuple[Run, float]:
        """Return a peer's calls in turn, and how far its outputs are from ours, at most."""
        calls, distances = [], []
        for number, out in zip(self._sets, self._outs, strict=True):
            calls.append(peer.prepare(plan, self.operands(plan, number, out)))
            distances.append(distance(calls[-1](), as_torch(out, plan.out_dtype)))
        return in_turn(calls), max(distances, key=lambda far: math.inf if math.isnan(far) else far)

    def too_far(self, error: float, reference: str) -> str:
        """Return the words for an output that is wrong."""
        allowed = f"and {self.most_error:.2g} is allowed"
        return f"its relative distance from {reference} is {error:.3g}, {allowed}"

    def wrong(self, plan: Any, how: str) -> Fa4genError:
        """Return the error for a kernel with a wrong output: its speed would mean nothing."""
        return Fa4genError(
            Problem(
                f"{plan.name} is wrong at {self.size.at}: {how}",
                f"fa4gen verify {plan.name} shows where.",
            )
        )

    def _check(self, plan: Any, number: int, out: Any) -> float:
        unwritten = count_unwritten(self.written(out), plan.out_dtype)
        if unwritten:
            raise self.wrong(plan, f"{unwritten} elements of its output are not written")
        squares = errors = 0.0
        for part_of, exact in self.expected(plan, number):
            got = as_float32(part_of(out), plan.out_dtype)
            errors += float(((got - exact) ** 2).sum())
            squares += float((exact**2).sum())
        error = math.sqrt(errors / squares)
        if not error <= self.most_error:
            raise self.wrong(plan, self.too_far(error, "float64"))
        return error


def in_turn(calls: Sequence[Run]) -> Run:
    """Return a function that runs the next of ``calls`` each time."""
    if len(calls) == 1:
        return calls[0]
    number = -1

    def call_next() -> Any:
        nonlocal number
        number = (number + 1) % len(calls)
        return calls[number]()

    return call_next
