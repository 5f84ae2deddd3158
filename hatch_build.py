"""Chooses the dependencies of the package: CuPy and NVRTC for CUDA 13, or for FA4GEN_CUDA=12."""

from __future__ import annotations

import os
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

VARIABLE = "FA4GEN_CUDA"


class Dependencies(MetadataHookInterface):
    """Joins the common dependencies with those of one CUDA major version."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set ``dependencies``; ValueError for a CUDA version that has no list."""
        cuda = os.environ.get(VARIABLE) or self.config["default-cuda"]
        known = self.config["cuda"]
        if cuda not in known:
            raise ValueError(f"{VARIABLE} is {cuda!r}; it can be {' or '.join(known)}")
        metadata["dependencies"] = sorted([*self.config["dependencies"], *known[cuda]])
