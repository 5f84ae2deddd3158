"""The prediction of a model for one kernel and one problem."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """A time with its parts, in microseconds, and the counts that it follows from."""

    launch_us: float
    """The fixed cost of every launch, however small."""
    multiply_us: float
    """The tensor cores of the multiprocessor that has the most tiles."""
    l2_us: float
    """The time of that multiprocessor's reads through L2."""
    memory_us: float
    """The time of all multiprocessors' reads and writes of memory."""
    latency_us: float = 0.0
    """The latency of loads that the slots of the ring do not cover."""
    overlapped_us: float
    """The four above together: they overlap."""
    epilogue_us: float
    """Stores that overlap nothing."""
    exchange_us: float = 0.0
    """Sums that CTAs pass to one another."""
    waves: int
    """The number of times that CTAs fill the chip, the last time perhaps in part."""
    tiles: int
    ctas: int
    """CTAs that would be needed to run all at once."""
    resident: int
    """CTAs that do run at once."""
    l2_bytes: int
    memory_bytes: int

    @property
    def us(self) -> float:
        """The predicted time."""
        return self.launch_us + self.overlapped_us + self.after_us

    @property
    def after_us(self) -> float:
        """The time without overlap: stores and exchanged sums."""
        return self.epilogue_us + self.exchange_us

    @property
    def filled(self) -> float:
        """The part of all waves' places that has a CTA: 1 where tiles fit the chip exactly."""
        return self.ctas / (self.waves * self.resident) if self.waves else 1.0

    @property
    def bound(self) -> str:
        """The largest of the four that overlap: "products", "L2", "memory", "latency"."""
        parts = {
            "products": self.multiply_us,
            "L2": self.l2_us,
            "memory": self.memory_us,
            "latency": self.latency_us,
        }
        return max(parts, key=lambda name: parts[name])
