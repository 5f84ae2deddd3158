"""Kernels that compute the same as a config's, and differ in speed: shipped ones, other tiles."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from fa4gen.config.load import load_config, load_mapping
from fa4gen.counts import counted
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError, Problem
from fa4gen.tune.family import family_of
from fa4gen.tune.model.gemm import HALF_ROWS
from fa4gen.tune.tiles import tiles_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from fa4gen.config.load import LoadedConfig
    from fa4gen.designs.common.plans import Plan
    from fa4gen.tune.family import Family
    from fa4gen.tune.model.chips import Chip
    from fa4gen.tune.model.prediction import Prediction
    from fa4gen.tune.tiles import Changes

Source = Literal["config", "shipped", "tile"]
_PREFERRED: tuple[Source, ...] = ("config", "shipped", "tile")
_WORDS = {
    "evict_first": "evict_",
    "num_epi_stages": "epi",
    "cta_group": "group",
    "scheduler": "",
    "short_ends": "short_ends",
    "output_in_ring": "in_ring",
}
"""Short words for keys in names of kernels."""
_SHARING = {2: ["pair"], 4: ["four"], 8: ["eight"]}


@dataclass(frozen=True)
class Candidate:
    """A kernel that may be chosen."""

    loaded: LoadedConfig
    plan: Plan
    source: Source
    """The config itself, one that is shipped, or another tile of it."""
    changes: Mapping[str, Any]
    """The keys of a new tile that differ from the config, with their values."""

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.plan.name

    def is_same(self, other: Candidate) -> bool:
        """Whether the kernels are the same but for their names."""
        return _identity(self.plan) == _identity(other.plan)


@dataclass(frozen=True)
class Ranked:
    """A candidate with its predicted time for a problem."""

    candidate: Candidate
    prediction: Prediction


def find_candidates(base: LoadedConfig) -> tuple[Candidate, ...]:
    """Return the config itself, shipped ones of its function, and variants.

    Variants are the tiles that the design suggests and the plan accepts; two candidates never have
    the same plan but for their names. Raises ConfigError where the config itself cannot work, or
    has a kernel whose time cannot be predicted.
    """
    plan = build_plan(base.config)
    family = family_of(plan)
    family.refuse(plan)
    found = {_identity(plan): Candidate(base, plan, "config", {})}
    wanted = features(base, family)
    for path in _shipped(plan.kernel, plan.arch):
        other = load_config(path)
        if features(other, family) == wanted:
            its = build_plan(other.config)
            found.setdefault(_identity(its), Candidate(other, its, "shipped", {}))
    for variant in _variants(json.dumps(given_keys(base)), base.config.name):
        found.setdefault(_identity(variant.plan), variant)
    return tuple(found.values())


def refine(candidate: Candidate) -> tuple[Candidate, ...]:
    """Return the kernel with changes that the model does not weigh, if its plan accepts them."""
    family = family_of(candidate.plan)
    found = {_identity(candidate.plan): candidate}
    for changes in tiles_of(candidate.plan).refinements(candidate.plan):
        words = [
            _WORDS.get(key, key) + ("" if value is True else str(value))
            for key, value in changes.items()
        ]
        name = "_".join([candidate.name, *words])
        variant = _with(given_keys(candidate.loaded), changes, name)
        if variant is not None and family.is_refined(candidate.plan, variant.plan):
            found.setdefault(_identity(variant.plan), variant)
    return tuple(found.values())[1:]


def check_taken(candidates: Sequence[Candidate], problem: Any) -> None:
    """Raise ConfigError for a problem that no candidate takes."""
    family = family_of(candidates[0].plan)
    if not any(family.takes(one.plan, problem) for one in candidates):
        others = len(candidates) - 1
        also = f", nor does any of {counted(others, 'other')}" if others else ""
        raise ConfigError(
            Problem(
                f"{family.word(problem)}: {candidates[0].name} does not take it{also}",
                "Give a problem that the config takes, or let other tiles be candidates.",
            )
        )


def rank(candidates: Iterable[Candidate], problem: Any, chip: Chip) -> list[Ranked]:
    """Return the candidates with their predicted times, the one to choose first.

    That is the fastest, or one that the family calls as fast: the config itself, else a shipped
    one. The others follow by time.
    Candidates that the family does not choose for such a problem are left out. There is one at
    least, and all are of one family.
    """
    every = tuple(candidates)
    family = family_of(every[0].plan)
    taken = [one for one in every if family.takes(one.plan, problem)] or every
    suitable = [one for one in taken if family.suits(one.plan, problem)] or taken
    ranked = [Ranked(one, family.predict(one.plan, problem, chip)) for one in suitable]
    ranked.sort(key=lambda one: one.prediction.us)
    limit = ranked[0].prediction.us * family.alike
    alike = [one for one in ranked if one.prediction.us <= limit]
    chosen = min(alike, key=lambda one: _PREFERRED.index(one.candidate.source))
    return [chosen, *(one for one in ranked if one is not chosen)]


def variant_name(base: str, changes: Changes) -> str:
    """Return the name of a kernel with other tiles: gemm_bf16_sm90_192x176_pair."""
    words = [base, f"{changes['BM']}x{changes['BN']}"]
    words += [f"heads{changes['tile_heads']}"] if changes.get("tile_heads", 1) > 1 else []
    words += ["swapped"] if changes.get("swap_operands") else []
    words += [f"k{changes['BK']}"] if "BK" in changes and changes["BM"] <= HALF_ROWS else []
    words += _SHARING.get(changes.get("cta_group", 1), [])
    words += {"a": ["across"], "both": ["both"]}.get(changes.get("share", "auto"), [])
    split = changes.get("split_k", 1) == 2
    evicts = changes.get("evict_first", "none") != "none"
    words += ["split"] if split else ["evict"] if evicts else []
    stays = changes.get("swap_operands") and changes.get("evict_first") == "none"
    words += ["keep"] if stays else []
    words += ["ping_pong"] if changes.get("ping_pong") else []
    words += ["in_ring"] if changes.get("output_in_ring") else []
    slots = changes.get("num_epi_stages", 0)
    words += [f"epi{slots}"] if slots == 1 or (slots and changes.get("ping_pong")) else []
    return "_".join(words)


@lru_cache(maxsize=4)
def _variants(given: str, name: str) -> tuple[Candidate, ...]:
    """Return a config, by its keys as JSON, with other tiles and all else left to the plan.

    Hundreds of plans take a second, and a process often needs those of one config again.
    """
    keys = json.loads(given)
    config = load_mapping(keys, name).config
    plan = build_plan(config)
    family, design = family_of(plan), tiles_of(plan)
    kept = {key: value for key, value in keys.items() if key not in family.tuning_keys}
    every = (
        _with(kept, changes, variant_name(name, changes))
        for changes in design.variants(config.data())
    )
    return tuple(one for one in every if one is not None and design.is_worth_it(one.plan))


def _with(keys: Mapping[str, Any], changes: Changes, name: str) -> Candidate | None:
    """Return a kernel of ``keys`` with ``changes``; None where its plan refuses them."""
    try:
        loaded = load_mapping({**keys, **changes, "name": name}, name)
        return Candidate(loaded, build_plan(loaded.config), "tile", changes)
    except ConfigError:
        return None


def given_keys(loaded: LoadedConfig) -> dict[str, Any]:
    """Return the keys in a config, as plain data."""
    import yaml

    data: dict[str, Any] = yaml.safe_load(loaded.text)
    return data


def keys_sha256(keys: Mapping[str, Any]) -> str:
    """Hash the keys in a config, in any order.

    A key that a later version of fa4gen adds, with a default, leaves the hash as it is.
    """
    return hashlib.sha256(json.dumps(keys, sort_keys=True).encode()).hexdigest()


def features(loaded: LoadedConfig, family: Family) -> dict[str, Any]:
    """Return all keys that determine the function of a kernel."""
    data = loaded.config.data()
    return {key: data[key] for key in data if key not in family.tuning_keys and key != "name"}


def _identity(plan: Plan) -> tuple[Any, ...]:
    """Return the identity of a kernel: its plan without its names."""
    plain = (pair for pair in plan.recorded if isinstance(pair[1], str | int | float | None))
    return (*(pair for pair in plain if pair[0] not in ("name", "entry_point")), plan.launch)


@lru_cache(maxsize=8)
def _shipped(kernel: str, arch: str) -> tuple[Path, ...]:
    from fa4gen.config.find import shipped_configs, shipped_name

    folder = f"{kernel}/{arch}"
    its = [path for path in shipped_configs() if shipped_name(path).startswith(f"{folder}/")]
    return tuple(path.resolve() for path in its)
