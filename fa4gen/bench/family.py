"""The interface of bench to a kernel family; the registry of designs names the object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from fa4gen.designs import registry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fa4gen.bench.gpu_arrays import RandomNumbers
    from fa4gen.bench.peers import Peers
    from fa4gen.bench.work import Work
    from fa4gen.designs.common.plans import Plan
    from fa4gen.toolchain.model import CompiledKernel

Zeros = Callable[[tuple[int, ...], str], Any]
"""Makes an array of zeros on the GPU, of a shape and an element type of the plan."""
SMALL_ROWS = 64
"""Rows, columns and depth of a problem of a single tile."""


class Family(ABC):
    """The sizes, the peers and the report of a family's benchmarks."""

    name: ClassVar[str]
    """The config key ``kernel``."""
    title: ClassVar[str]
    """The subject of the figures, for the head of a picture."""
    default_sizes: ClassVar[str]
    """The default of ``--sizes``."""
    size_columns: ClassVar[tuple[str, ...]]
    """Headings of the columns that describe a size."""
    axis: ClassVar[str]
    """Label of a picture's size axis."""
    protocol: ClassVar[Mapping[str, Any]]
    """The JSON file's entries about the sizes and the data."""
    has_fa3: ClassVar[bool] = False
    """Whether FlashAttention-3 is a peer, which ``--fa3`` names."""
    peers_judge: ClassVar[bool] = False
    """Whether a kernel is wrong where a peer has another output."""
    fact_names: ClassVar[tuple[str, ...]]
    """Fields of a plan that readers of results want to know; designs may lack some."""

    @abstractmethod
    def parse_sizes(self, text: str) -> tuple[Any, ...]:
        """Parse ``--sizes``; ConfigError for invalid ones."""

    @abstractmethod
    def find_peers(self, fa3: Path | None = None) -> Peers:
        """Return the peers of this machine; MissingCapabilityError for one that does not load."""

    @abstractmethod
    def work(self, plan: Any, size: Any, numbers: RandomNumbers) -> Work:
        """Return a size's problem on the GPU, for kernels that compute the same as ``plan``'s."""

    @abstractmethod
    def describe(self, facts: Mapping[str, Any]) -> str:
        """Describe the function of a config, for the title of its table."""

    @abstractmethod
    def panel(self, facts: Mapping[str, Any]) -> str:
        """Return the title of the panel of a picture that a config belongs in."""

    @abstractmethod
    def line(self, facts: Mapping[str, Any]) -> str:
        """Return the label of a config's line in that panel."""

    @abstractmethod
    def small_tensors(self, plan: Any, zeros: Zeros) -> dict[str, Any]:
        """Return the arguments of a launcher, by name, for a problem of a single tile."""

    def sizes_for(self, plan: Any) -> tuple[Any, ...]:
        """Return the sizes of a kernel without ``--sizes``."""
        del plan
        return self.parse_sizes(self.default_sizes)

    def facts(self, plan: Any, compiled: CompiledKernel) -> dict[str, Any]:
        """Return the facts about the kernel for readers of the results."""
        found = {name: getattr(plan, name) for name in self.fact_names if hasattr(plan, name)}
        return found | {"compiler": f"{compiled.compiler} {compiled.compiler_version}"}

    def compared_with(
        self, facts: Mapping[str, Any], others: Sequence[Mapping[str, Any]]
    ) -> int | None:
        """Return the index of the config without a residual to compare one with, by its facts."""
        del facts, others
        return None

    def size_word(self, size: Mapping[str, Any]) -> str:
        """Return a size of the JSON file in a word, as ``--sizes`` takes it."""
        return str(size["word"])

    def conditions(self, protocol: Mapping[str, Any]) -> str:
        """Describe the conditions of all sizes, for a picture, by the JSON file's ``protocol``."""
        del protocol
        return "Random data, cold L2"


def family_of(plan: Plan) -> Family:
    """Return the family of a plan."""
    return _loaded(registry.family_of(plan))


def family_measured(config: Mapping[str, Any]) -> Family:
    """Return the family of a measured config of the JSON file, by the words for its sizes."""
    size = config["sizes"][0]
    families = (_loaded(row) for row in registry.FAMILIES.values() if row.bench)
    return next(family for family in families if size.keys() >= set(family.size_columns))


def family_called(name: str) -> Family:
    """Return the family called ``name``; KeyError when there is none."""
    return _loaded(registry.FAMILIES[name])


def _loaded(row: registry.Family) -> Family:
    family: Family = row.part("bench")
    return family
