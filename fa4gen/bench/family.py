"""The interface of bench to a kernel family; the registry of designs names the object."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from fa4gen.designs import registry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fa4gen.bench.peers import Peers
    from fa4gen.bench.results import ConfigResult
    from fa4gen.bench.run import BenchOptions
    from fa4gen.designs.common.plans import Plan
    from fa4gen.toolchain.model import CompiledKernel
    from fa4gen.verify.build import BuiltKernel

Zeros = Callable[[tuple[int, ...], str], Any]
"""Makes an array of zeros on the GPU, of a shape and an element type of the plan."""
SMALL_ROWS = 64
"""Rows, columns and depth of a problem of a single tile."""


class KernelTimer(Protocol):
    """Times kernels of one family, one after the other."""

    def time_kernel(self, plan: Any, compiled: CompiledKernel, config: str = "") -> ConfigResult:
        """Time one kernel at every size; Fa4genError for one whose output is wrong."""


class Family(Protocol):
    """The sizes, the peers and the report of a family's benchmarks."""

    @property
    def name(self) -> str:
        """The config key ``kernel``."""

    @property
    def title(self) -> str:
        """The subject of the figures, for the head of a picture."""

    @property
    def default_sizes(self) -> str:
        """The default of ``--sizes``."""

    @property
    def size_columns(self) -> tuple[str, ...]:
        """Headings of the columns that describe a size."""

    @property
    def axis(self) -> str:
        """Label of a picture's size axis."""

    @property
    def has_fa3(self) -> bool:
        """Whether FlashAttention-3 is a peer, which ``--fa3`` names."""

    @property
    def protocol(self) -> Mapping[str, Any]:
        """The JSON file's entries about the sizes and the data."""

    def parse_sizes(self, text: str) -> tuple[Any, ...]:
        """Parse ``--sizes``; ConfigError for invalid ones."""

    def find_peers(self, fa3: Path | None) -> Peers:
        """Return the peers of this machine; MissingCapabilityError for one that does not load."""

    def make_timer(
        self, options: BenchOptions, peers: Peers, kernels: Sequence[BuiltKernel]
    ) -> KernelTimer:
        """Return a timer for ``kernels``: it may compare one with another."""

    def describe(self, facts: Mapping[str, Any]) -> str:
        """Describe the function of a config, for the title of its table."""

    def panel(self, facts: Mapping[str, Any]) -> str:
        """Return the title of the panel of a picture that a config belongs in."""

    def line(self, facts: Mapping[str, Any]) -> str:
        """Return the label of a config's line in that panel."""

    def size_word(self, size: Mapping[str, Any]) -> str:
        """Return a size of the JSON file in a word, as ``--sizes`` takes it."""

    def conditions(self, protocol: Mapping[str, Any]) -> tuple[str, ...]:
        """Describe the conditions of all sizes, for a picture, by the JSON file's ``protocol``."""

    def small_tensors(self, plan: Any, zeros: Zeros) -> dict[str, Any]:
        """Return the arguments of a launcher, by name, for a problem of a single tile."""

    def peer_tensors(self, plan: Any, operands: Sequence[Any]) -> dict[str, Any]:
        """Return the arguments of the vendored launcher, by name, of a peer's operands."""


def family_of(plan: Plan) -> Family:
    """Return the family of a plan."""
    return _loaded(registry.family_of(plan))


def family_measured(config: Mapping[str, Any]) -> Family:
    """Return the family of a measured config of the JSON file, by the words for its sizes."""
    size = config["sizes"][0]
    families = map(_loaded, registry.FAMILIES.values())
    return next(family for family in families if size.keys() >= set(family.size_columns))


def family_called(name: str) -> Family:
    """Return the family called ``name``; KeyError when there is none."""
    return _loaded(registry.FAMILIES[name])


def _loaded(row: registry.Family) -> Family:
    family: Family = row.bench.load()
    return family
