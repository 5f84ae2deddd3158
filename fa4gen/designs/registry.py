"""Every kernel design, a row each: who plans it, its template, and what other rooms do with it.

What a row names is a place, "module:attribute", and imported when it is asked for: a run imports
the config model, the plan and the planner of its kernels alone, and the command line starts fast.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from fa4gen.designs.common.kernel_config import KernelConfig
    from fa4gen.designs.common.kernel_model import KernelPlan

T = TypeVar("T")


@dataclass(frozen=True)
class ImportPath:
    """The place of a definition: "module:attribute"."""

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
    launcher: ImportPath
    """A class, made from plan and cubin: the kernel as a Python function."""
    verify: ImportPath
    """A class, made from a plan: verify's ``Family``."""
    bench: ImportPath | None = None
    """An object: bench's ``Family``; None where bench does not time it."""
    vendor: ImportPath | None = None
    """An object: vendor's ``Family``; None where vendored folders have no such kernels."""
    tune: ImportPath | None = None
    """An object: tune's ``Family``; None where one kernel serves all problems."""

    def part(self, room: Literal["bench", "vendor", "tune"]) -> Any:
        """Return the object of ``bench``, ``vendor`` or ``tune``; ConfigError without one."""
        place: ImportPath | None = getattr(self, room)
        if place is None:
            remedy = "call the kernel by fa4gen.load, or take the files of fa4gen render"
            raise ConfigError(Problem(f"{room} has nothing for kernel: {self.name} yet", remedy))
        return place.load()


ONE_TILE = ImportPath("fa4gen.tune.tiles:ONE_TILE")


@dataclass(frozen=True)
class Design:
    """One kernel design."""

    name: str
    """The name of its folder, next to this file."""
    family: Family
    config_classes: Mapping[tuple[str, ...], str]
    """By architectures, the model of its configs, a KernelConfig in ``config.py``."""
    plan_class: str
    """The class of the plan, in ``model.py``."""
    tiles: ImportPath = ONE_TILE
    """An object: what tune tries of it (tune's ``Tiles``)."""
    tuned_keys: tuple[str, ...] = ()
    """The keys that candidates give values."""
    has_candidates: bool = True
    """Whether there are any, in ``candidates.py``."""
    where: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    """By key of ``DECIDING``, the values that ask for this design of a family's."""

    def path(self, place: str) -> ImportPath:
        """Return a place in its folder: "module:attribute"."""
        return ImportPath(f"{__package__}.{self.name}.{place}")

    @property
    def configs(self) -> Mapping[tuple[str, ...], ImportPath]:
        """By architectures, the model of its configs."""
        classes = self.config_classes.items()
        return {archs: self.path(f"config:{name}") for archs, name in classes}

    @property
    def plan(self) -> ImportPath:
        """The class of the plan."""
        return self.path(f"model:{self.plan_class}")

    @property
    def planner(self) -> ImportPath:
        """A function from config to plan, which refuses nothing."""
        return self.path("plan:decide")

    def find_faults(self, plan: KernelPlan) -> Sequence[Any]:
        """Return what cannot work in the config of ``plan``, each a ``Refusal``."""
        faults: Sequence[Any] = self.path("plan:find_faults").load()(plan)
        return faults

    @property
    def template(self) -> str:
        """The root template of the kernel's source."""
        return f"{self.name}/kernel.cu.j2"

    def candidates(self, config: KernelConfig) -> Iterator[dict[str, object]]:
        """Yield the candidates for keys that ``config`` leaves to the plan, in order."""
        if self.has_candidates:
            yield from self.path("candidates:candidates").load()(config)

    @property
    def archs(self) -> tuple[str, ...]:
        """The architectures that it has kernels for."""
        return tuple(arch for archs in self.configs for arch in archs)

    def is_of(self, config: KernelConfig) -> bool:
        """Whether ``config`` is one of its configs."""
        return any(place.has(type(config)) for place in self.configs.values())


@dataclass(frozen=True)
class ConfigModel:
    """A model of configs: a design's, for some of its architectures."""

    design: Design
    archs: tuple[str, ...]
    place: ImportPath

    def values(self, key: str) -> tuple[object, ...] | None:
        """Return the values that ``key`` has in its configs; None where it decides nothing."""
        if key == "kernel":
            return (self.design.family.name,)
        return self.archs if key == "arch" else self.design.where.get(key)

    def load(self) -> type[KernelConfig]:
        """Import the class."""
        model: type[KernelConfig] = self.place.load()
        return model


ATTENTION = Family(
    name="attention",
    list_columns=("kernel", "arch", "dtype", "depth", "mask"),
    launcher=ImportPath("fa4gen.runtime.attention:AttentionKernel"),
    verify=ImportPath("fa4gen.verify.attention:AttentionFamily"),
    bench=ImportPath("fa4gen.bench.attention_family:ATTENTION"),
    vendor=ImportPath("fa4gen.vendoring.attention:ATTENTION"),
    tune=ImportPath("fa4gen.tune.attention_family:ATTENTION"),
)
GEMM = Family(
    name="gemm",
    list_columns=("kernel", "arch", "dtype", "residual", "activation"),
    launcher=ImportPath("fa4gen.runtime.gemm:GemmKernel"),
    verify=ImportPath("fa4gen.verify.gemm.family:GemmFamily"),
    bench=ImportPath("fa4gen.bench.gemm_family:GEMM"),
    vendor=ImportPath("fa4gen.vendoring.gemm:GEMM"),
    tune=ImportPath("fa4gen.tune.gemm_family:GEMM"),
)
MERGE = Family(
    name="merge",
    list_columns=("kernel", "arch", "dtype", "out_dtype", "depth"),
    launcher=ImportPath("fa4gen.runtime.merge:MergeKernel"),
    verify=ImportPath("fa4gen.verify.merge.family:MergeFamily"),
    vendor=ImportPath("fa4gen.vendoring.merge:MERGE"),
)
HOPPER = ("sm_90a",)
BLACKWELL = ("sm_100a", "sm_103a", "sm_100f")
PREFILL_DEPTHS = (64, 96, 128, 192, 256)
PAIR_DEPTH = 512
LATENT_DEPTH = 576
MERGED_DEPTHS = (32, 64, 80, 96, 112, 128, 160, 192, 256, 512)
DESIGNS = (
    Design(
        name="attention_sm90",
        family=ATTENTION,
        config_classes={HOPPER: "HopperAttentionConfig"},
        plan_class="HopperAttentionPlan",
        tiles=ImportPath("fa4gen.tune.tiles:HOPPER_ATTENTION"),
        tuned_keys=("BN", "BM", "num_pv_chunks_in_flight", "overlap_epilogue", "registers"),
        where={"depth": PREFILL_DEPTHS, "pack_heads": (False,)},
    ),
    Design(
        name="attention_sm100",
        family=ATTENTION,
        config_classes={BLACKWELL: "BlackwellAttentionConfig"},
        plan_class="FA4Config",
        tuned_keys=("BN", "exp2_fma_share", "registers", "BM"),
        where={"depth": PREFILL_DEPTHS, "pack_heads": (False,)},
    ),
    Design(
        name="attention_sm90_depth512",
        family=ATTENTION,
        config_classes={HOPPER: "HopperPairAttentionConfig"},
        plan_class="HopperPairAttentionPlan",
        tiles=ImportPath("fa4gen.tune.tiles:HOPPER_ATTENTION_ORDERS"),
        tuned_keys=("scheduler", "registers"),
        where={"depth": (PAIR_DEPTH,), "pack_heads": (False,)},
    ),
    Design(
        name="attention_sm100_depth512",
        family=ATTENTION,
        config_classes={BLACKWELL: "BlackwellPairAttentionConfig"},
        plan_class="Depth512Config",
        tuned_keys=("registers", "exp2_fma_share"),
        where={"depth": (PAIR_DEPTH,), "pack_heads": (False,)},
    ),
    Design(
        name="attention_latent",
        family=ATTENTION,
        config_classes={HOPPER: "LatentConfig"},
        plan_class="LatentAttentionPlan",
        has_candidates=False,
        where={"depth": (LATENT_DEPTH,), "pack_heads": (True,)},
    ),
    Design(
        name="attention_latent_sm100",
        family=ATTENTION,
        config_classes={BLACKWELL: "LatentPairConfig"},
        plan_class="LatentPairPlan",
        has_candidates=False,
        where={"depth": (LATENT_DEPTH,), "pack_heads": (True,)},
    ),
    Design(
        name="attention_decode",
        family=ATTENTION,
        config_classes={HOPPER: "HopperDecodeConfig", BLACKWELL: "BlackwellDecodeConfig"},
        plan_class="DecodeAttentionPlan",
        tuned_keys=("packed_rows",),
        has_candidates=False,
        where={"depth": (*PREFILL_DEPTHS, PAIR_DEPTH), "pack_heads": (True,)},
    ),
    Design(
        name="gemm_sm90",
        family=GEMM,
        config_classes={HOPPER: "HopperGemmConfig"},
        plan_class="HopperGemmPlan",
        tiles=ImportPath("fa4gen.tune.tiles:HOPPER_GEMM"),
        tuned_keys=(
            "multiply_ahead",
            "BN",
            "BM",
            "num_consumer_warpgroups",
            "registers",
            "num_epi_stages",
        ),
    ),
    Design(
        name="gemm_sm100",
        family=GEMM,
        config_classes={BLACKWELL: "BlackwellGemmConfig"},
        plan_class="BlackwellGemmPlan",
        tiles=ImportPath("fa4gen.tune.tiles:BLACKWELL_GEMM"),
        tuned_keys=("num_out_stages", "BN", "cta_group", "num_epi_stages"),
    ),
    Design(
        name="merge",
        family=MERGE,
        config_classes={(*HOPPER, *BLACKWELL): "MergeConfig"},
        plan_class="MergePlan",
        has_candidates=False,
        where={"depth": MERGED_DEPTHS},
    ),
)
"""Every design, a family's after one another."""
FAMILIES: Mapping[str, Family] = {design.family.name: design.family for design in DESIGNS}
"""Every family by its name, in the order of lists and tables."""
MODELS = tuple(
    ConfigModel(design, archs, place)
    for design in DESIGNS
    for archs, place in design.configs.items()
)
"""Every model of configs."""
DECIDING = ("kernel", "arch", "depth", "pack_heads")
"""The keys that decide on the design, each among the designs that those before it leave."""
DECIDING_IN_ARCH = DECIDING[2:]
"""Those of them that choose among the designs of a family on an architecture."""
USUAL: Mapping[str, object] = {"pack_heads": False}
"""Values that keys of ``DECIDING`` have when not given."""


def narrowed(
    choices: Sequence[T],
    data: Mapping[str, object],
    values: Callable[[T, str], Collection[object] | None],
) -> Sequence[T]:
    """Return those of ``choices`` that the deciding keys of ``data`` leave.

    ``values`` of a choice and a key: what the key may be, None where the choice has no such key. A
    kernel family or architecture that is none of them leaves all; the keys after them count only
    as far as each before them has decided.
    """
    decided = True
    for key in DECIDING:
        of_family = key not in DECIDING_IN_ARCH
        known = {index: found for index, one in enumerate(choices) if (found := values(one, key))}
        if not known or not (decided or of_family):
            continue
        given = data.get(key, USUAL.get(key))
        named = [choices[index] for index, found in known.items() if _is_among(given, found)]
        decided = decided and bool(named)
        choices = named or choices
    return choices


def _is_among(value: object, values: Collection[object]) -> bool:
    return any(type(value) is type(one) and value == one for one in values)


def models_of(data: Mapping[str, object]) -> Sequence[ConfigModel]:
    """Return the models that a config of ``data`` may be meant for: one, where all is valid."""
    return narrowed(MODELS, data, ConfigModel.values)


def validated(data: Mapping[str, object]) -> KernelConfig:
    """Return the config of ``data`` as the first model that it may be meant for reads it.

    ModelError.
    """
    return models_of(data)[0].load().model_validate(data)


def design_for(config: KernelConfig) -> Design:
    """Return the design that ``config`` is of; KeyError for a model of no row."""
    for design in DESIGNS:
        if design.is_of(config):
            return design
    raise KeyError(type(config).__name__)


def design_of(plan: KernelPlan) -> Design:
    """Return the design that ``plan`` is of; KeyError for a plan of no row."""
    for design in DESIGNS:
        if design.plan.has(type(plan)):
            return design
    raise KeyError(type(plan).__name__)


def family_of(plan: KernelPlan) -> Family:
    """Return the family of ``plan``."""
    return design_of(plan).family
