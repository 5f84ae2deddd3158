"""The decorator of methods whose base class documents them: type checkers find a wrong name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import override
else:

    def override(method: Any) -> Any:
        """Return the method: ``typing.override``, which Python 3.11 does not have."""
        return method


__all__ = ["override"]
