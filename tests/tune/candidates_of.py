"""Candidates for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.tune.candidates import find_candidates

if TYPE_CHECKING:
    from fa4gen.config.load import LoadedConfig
    from fa4gen.tune.candidates import Candidate


def existing(base: LoadedConfig) -> tuple[Candidate, ...]:
    """The config itself and shipped ones, without new tiles."""
    return tuple(one for one in find_candidates(base) if one.source != "tile")
