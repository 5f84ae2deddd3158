"""Tensor maps: what a tensor copy knows of the array in global memory."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray


class TensorMap:
    """An argument of a launch that describes ``array`` to tensor copies."""

    array: NDArray[Any]

    def encode(self, address: int) -> bytes:
        """The 128 bytes of the map for the array at ``address``."""
        raise NotImplementedError
