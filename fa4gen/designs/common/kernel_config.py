"""The keys of every config, the base of each design's own model.

A design's ``config.py`` has the keys of its kernels with types, ranges and the rules between them
that need no arithmetic on resources; what depends on shared memory or registers is decided, and
refused, by the plan. A key of a config is a plan's field, a C++ constant (kCamelCase) and a field
of the manifest alike.
"""

from __future__ import annotations

from typing import Annotated

from fa4gen.strict import Field, Strict


class KernelConfig(Strict):
    """A config of any design."""

    kernel: str
    """Kernel family."""
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=100)]
    """Name of the kernel, its files and its entry point; the file's stem when not given."""
    arch: str
    """Architecture that the kernel is written for."""
    dtype: str
    """Element type of the inputs. Sums are kept in float32."""
    dependent_launch: bool = False
    """The kernel starts before the previous kernel ends, and waits before it touches memory."""


class RegisterBudget(Strict):
    """Registers per thread of each role after ``setmaxnreg``."""

    producer: Annotated[int, Field(ge=24, le=256, multiple_of=8)]
    consumer: Annotated[int, Field(ge=24, le=256, multiple_of=8)]

    def total(self, num_consumers: int) -> int:
        """Return the registers of one producer and ``num_consumers`` consumer warpgroups."""
        return 128 * (self.producer + num_consumers * self.consumer)
