"""A library in the place of the CUDA driver's that records a launcher's calls and runs nothing."""

from __future__ import annotations

from fa4gen.vendoring.standin.build import build_stand_in
from fa4gen.vendoring.standin.driver import SimulatedDevice, StandIn
from fa4gen.vendoring.standin.records import Launch, Memset, Setting, TensorMapCall

__all__ = [
    "Launch",
    "Memset",
    "Setting",
    "SimulatedDevice",
    "StandIn",
    "TensorMapCall",
    "build_stand_in",
]
