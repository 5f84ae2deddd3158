"""Every kernel design, a row each: who plans it, its template, and what other rooms do with it.

What a row names is a place, "module:attribute", and imported when it is asked for: a run imports
the config model, the plan and the planner of its kernels alone, and the command line starts fast.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fa4gen.config.schema import Config
    from fa4gen.designs.common.candidates import Changes
    from fa4gen.designs.common.kernel_model import KernelPlan
    from fa4gen.designs.common.refusal import Fault


@dataclass(frozen=True)
class Place:
    """Where something is defined: "module:attribute"."""

    name: str

    def load(self) -> Any:
        """Import the module and return the attribute."""
        module, attribute = self.name.split(":")
        return getattr(import_module(module), attribute)

    def has(self, kind: type) -> bool:
        """Whether the class ``kind`` is the one defined here."""
        return self.name == f"{kind.__module__}:{kind.__qualname__}"


@dataclass(frozen=True)
class Family:
    """Designs that compute the same: they have arguments, cases, peers and a C interface alike."""

    name: str
    """Value of the config key ``kernel``."""
    list_columns: tuple[str, ...]
    """Keys that have a column of their own in the table of ``fa4gen list``."""
    launcher: Place
    """A class, made from plan and cubin: the kernel as a Python function."""
    verify: Place
    """A class, made from a plan: verify's ``Family``."""
    bench: Place
    """An object: bench's ``Family``."""
    vendor: Place
    """An object: vendor's ``Family``."""
    tune: Place
    """An object: tune's ``Family``."""


@dataclass(frozen=True)
class Design:
    """One kernel design."""

    name: str
    """That of its folder, beside this file."""
    family: Family
    configs: tuple[Place, ...]
    """The config models: one, but for a design that serves several architectures."""
    plan: Place
    """The class of the plan."""
    planner: Place
    """A function from config to plan; ConfigError for what cannot work."""
    template: str
    """Root template of the kernel's source."""
    tiles: Place
    """An object: what tune tries of it (tune's ``Tiles``)."""
    where: Mapping[str, object] = field(default_factory=dict)
    """Config keys with the values that ask for this design, not for the one after it."""

    @property
    def candidates(self) -> Callable[[Config], Iterator[Changes]]:
        """What is tried of keys that a config leaves to the plan, in order."""
        found: Callable[[Config], Iterator[Changes]] = self._of_candidates("candidates")
        return found

    @property
    def tuned_keys(self) -> tuple[str, ...]:
        """The keys that candidates give values."""
        keys: tuple[str, ...] = self._of_candidates("KEYS")
        return keys

    def _of_candidates(self, attribute: str) -> Any:
        return Place(f"{__package__}.{self.name}.candidates:{attribute}").load()

    def fits(self, config: Config) -> bool:
        """Whether ``config`` asks for this design; a design above it goes first."""
        given = (getattr(config, key) == value for key, value in self.where.items())
        return self.takes(type(config)) and all(given)

    def takes(self, model: type) -> bool:
        """Whether its configs are of ``model``, or some of them."""
        return any(place.has(model) for place in self.configs)


ATTENTION = Family(
    name="attention",
    list_columns=("kernel", "arch", "dtype", "depth", "mask"),
    launcher=Place("fa4gen.runtime.attention:AttentionKernel"),
    verify=Place("fa4gen.verify.attention:AttentionFamily"),
    bench=Place("fa4gen.bench.attention_family:ATTENTION"),
    vendor=Place("fa4gen.vendoring.attention:ATTENTION"),
    tune=Place("fa4gen.tune.attention_family:ATTENTION"),
)
GEMM = Family(
    name="gemm",
    list_columns=("kernel", "arch", "dtype", "residual", "activation"),
    launcher=Place("fa4gen.runtime.gemm:GemmKernel"),
    verify=Place("fa4gen.verify.gemm.family:GemmFamily"),
    bench=Place("fa4gen.bench.gemm_family:GEMM"),
    vendor=Place("fa4gen.vendoring.gemm:GEMM"),
    tune=Place("fa4gen.tune.gemm_family:GEMM"),
)
HOPPER_ATTENTION = Place("fa4gen.config.schema:AttentionConfig")
BLACKWELL_ATTENTION = Place("fa4gen.config.schema:BlackwellAttentionConfig")
HOPPER_GEMM = Place("fa4gen.config.gemm:HopperGemmConfig")
BLACKWELL_GEMM = Place("fa4gen.config.gemm:BlackwellGemmConfig")
DESIGNS = (
    Design(
        name="attention_latent",
        family=ATTENTION,
        configs=(HOPPER_ATTENTION,),
        plan=Place("fa4gen.designs.attention_latent.model:LatentAttentionPlan"),
        planner=Place("fa4gen.designs.attention_latent.plan:plan_attention_latent"),
        template="attention_latent/kernel.cu.j2",
        tiles=Place("fa4gen.tune.tiles:ONE_TILE"),
        where={"depth": 576},
    ),
    Design(
        name="attention_latent_sm100",
        family=ATTENTION,
        configs=(BLACKWELL_ATTENTION,),
        plan=Place("fa4gen.designs.attention_latent_sm100.model:LatentPairPlan"),
        planner=Place("fa4gen.designs.attention_latent_sm100.plan:plan_attention_latent_sm100"),
        template="attention_latent_sm100/kernel.cu.j2",
        tiles=Place("fa4gen.tune.tiles:ONE_TILE"),
        where={"depth": 576},
    ),
    Design(
        name="attention_decode",
        family=ATTENTION,
        configs=(HOPPER_ATTENTION, BLACKWELL_ATTENTION),
        plan=Place("fa4gen.designs.attention_decode.model:DecodeAttentionPlan"),
        planner=Place("fa4gen.designs.attention_decode.plan:plan_attention_decode"),
        template="attention_decode/kernel.cu.j2",
        tiles=Place("fa4gen.tune.tiles:ONE_TILE"),
        where={"pack_heads": True},
    ),
    Design(
        name="attention_sm90_depth512",
        family=ATTENTION,
        configs=(HOPPER_ATTENTION,),
        plan=Place("fa4gen.designs.attention_sm90_depth512.model:HopperPairAttentionPlan"),
        planner=Place("fa4gen.designs.attention_sm90_depth512.plan:plan_attention_sm90_depth512"),
        template="attention_sm90_depth512/kernel.cu.j2",
        tiles=Place("fa4gen.tune.tiles:HOPPER_ATTENTION_ORDERS"),
        where={"depth": 512},
    ),
    Design(
        name="attention_sm90",
        family=ATTENTION,
        configs=(HOPPER_ATTENTION,),
        plan=Place("fa4gen.designs.attention_sm90.model:HopperAttentionPlan"),
        planner=Place("fa4gen.designs.attention_sm90.plan:plan_attention_sm90"),
        template="attention_sm90/kernel.cu.j2",
        tiles=Place("fa4gen.tune.tiles:HOPPER_ATTENTION"),
    ),
    Design(
        name="attention_sm100_depth512",
        family=ATTENTION,
        configs=(BLACKWELL_ATTENTION,),
        plan=Place("fa4gen.designs.attention_sm100_depth512.model:Depth512Config"),
        planner=Place("fa4gen.designs.attention_sm100_depth512.plan:plan_attention_sm100_depth512"),
        template="attention_sm100_depth512/kernel.cu.j2",
        tiles=Place("fa4gen.tune.tiles:ONE_TILE"),
        where={"depth": 512},
    ),
    Design(
        name="attention_sm100",
        family=ATTENTION,
        configs=(BLACKWELL_ATTENTION,),
        plan=Place("fa4gen.designs.attention_sm100.model:FA4Config"),
        planner=Place("fa4gen.designs.attention_sm100.plan:plan_attention_sm100"),
        template="attention_sm100/kernel.cu.j2",
        tiles=Place("fa4gen.tune.tiles:ONE_TILE"),
    ),
    Design(
        name="gemm_sm90",
        family=GEMM,
        configs=(HOPPER_GEMM,),
        plan=Place("fa4gen.designs.gemm_sm90.model:HopperGemmPlan"),
        planner=Place("fa4gen.designs.gemm_sm90.plan:plan_gemm_sm90"),
        template="gemm_sm90/kernel.cu.j2",
        tiles=Place("fa4gen.tune.tiles:HOPPER_GEMM"),
    ),
    Design(
        name="gemm_sm100",
        family=GEMM,
        configs=(BLACKWELL_GEMM,),
        plan=Place("fa4gen.designs.gemm_sm100.model:BlackwellGemmPlan"),
        planner=Place("fa4gen.designs.gemm_sm100.plan:plan_gemm_sm100"),
        template="gemm_sm100/kernel.cu.j2",
        tiles=Place("fa4gen.tune.tiles:BLACKWELL_GEMM"),
    ),
)
"""Every design; of those with the same config model, the one with a ``where`` goes first."""
FAMILIES: Mapping[str, Family] = {design.family.name: design.family for design in DESIGNS}
"""Every family by its name, in the order of lists and tables."""


def design_for(config: Config) -> Design:
    """Return the design that ``config`` asks for."""
    return next(design for design in DESIGNS if design.fits(config))


def faults_of(config: Config) -> Sequence[Fault]:
    """Return everything in ``config`` that cannot work, as the design that it asks for finds it.

    What a planner refuses by where a fix may make a config another design's.
    """
    module = design_for(config).planner.name.partition(":")[0]
    faults: Sequence[Fault] = Place(f"{module}:find_faults").load()(config)
    return faults


def design_of(plan: KernelPlan) -> Design:
    """Return the design that ``plan`` is of; KeyError for a plan of no row."""
    for design in DESIGNS:
        if design.plan.has(type(plan)):
            return design
    raise KeyError(type(plan).__name__)


def family_of(plan: KernelPlan) -> Family:
    """Return the family of ``plan``."""
    return design_of(plan).family
