"""Chips: their data for the model, and constants fitted to measurements on them."""

from __future__ import annotations

from dataclasses import dataclass, field

from fa4gen.designs.common.hardware import ARCHITECTURES, Capability, runs_on
from fa4gen.errors import ConfigError, Problem


@dataclass(frozen=True)
class GemmCosts:
    """Constants of matrix products; ``benchmarks/fit_gemm_model.py`` fits them."""

    scaled_block: float = 1.08
    """The factor of products whose sums are added by warpgroups, with one scale for all columns."""
    scaled_blocks: float = 1.28
    """The factor with scales of two blocks of columns."""
    scaled_lines: float = 1.4
    """The factor with a scale for each column."""
    scaled_low: float = 1.06
    """The factor with 64 rows a warpgroup in place of 128, also where products are ahead."""
    scaled_three: float = 1.04
    """The factor with three warpgroups, and one scale for all columns."""
    scaled_in_turn: float = 1.1
    """The factor, in addition, where a warpgroup does not multiply while it adds."""
    launch: float = 6.723
    """us that every launch takes."""
    memory: float = 3.314
    """TB/s."""
    memory_evict_first: float = 4.206
    """TB/s where new lines displace one another, and not the lines in L2."""
    unfilled: float = 0.1245
    """The part by which that takes longer, for the part of the waves' places without a CTA."""
    reread: float = 0.02374
    """Part of the weights that every further row tile reads from memory again."""
    l2: float = 141.4
    """Bytes per ns that a multiprocessor reads, where all read: a mean over the launch."""
    l2_skew: float = 93.76
    """Bytes per ns from L2 where rows begin inside a line of 128 bytes."""
    l2_skew_deep: float = 79.95
    """Bytes per ns from L2 there with more than five blocks in the ring."""
    l2_odd: float = 56.49
    """Bytes per ns from L2 where rows begin inside a sector of 32 bytes."""
    l2_shared: float = 87.43
    """The rate ``l2`` for data that go to several CTAs at once."""
    l2_skew_shared: float = 68.41
    """The rate ``l2_skew`` for data that go to several CTAs at once."""
    l2_odd_shared: float = 60.97
    """The rate ``l2_odd`` for data that go to several CTAs at once."""
    evicted: float = 0.8951
    """Part of these that is left where rows begin inside a line, and lines are the first to be
    displaced that others need the rest of."""
    odd_alone: float = 92.09
    """Bytes per ns at most of one multiprocessor, where rows begin inside a sector."""
    ghz: float = 1.858
    droop: float = 0.2837
    """The part by which the clock falls in long work that fills the chip."""
    droop_us: float = 330.2
    """us of products until it has fallen."""
    droop_fp8: float = 1.426
    """The factor of this part with products of fp8."""
    shared_reads: float = 1.336
    """Cycles in which a wgmma reads a row of 128 bytes of shared memory."""
    shared_reads_fp8: float = 0.9099
    """The part of these that counts with fp8, where power is the limit."""
    reads_overlap: float = 12.36
    """Exponent of the mean of these reads and the products: nearly the larger of the two."""
    latency: float = 0.7824
    """us from a request to its data, which the ring's slots have to cover."""
    latency_odd: float = 1.088
    """The factor of the latency where rows begin inside a sector."""
    held: float = 1.419
    """Slots of the ring that are being multiplied, and cover nothing."""
    pair: float = 2.229
    """The us more of a launch with CTAs that share loads."""
    grid: float = 1.7
    """The us more of a launch with CTAs that share both operands."""
    grid_rate: float = 0.85
    """The factor of the rate from L2, against CTAs that share one operand. Both were fitted apart,
    to the 264 such kernels of tuned_products_shared_operands_h200.jsonl: their scatter is 5 %."""
    epilogue: float = 55.94
    """Bytes per ns of the last tile's sums that one multiprocessor stores."""
    turns: float = 0.8716
    """The part by which that takes longer for one warpgroup alone, with ``ping_pong``."""
    store: float = 0.03446
    """us from one tile to the next, for 1000 sums of a warpgroup."""
    store_slots: float = 4.0
    """The factor of that with one slot for the output; with n slots, an nth of it."""
    read_c: float = 0.02938
    """us for 1000 elements of C of a warpgroup."""
    read_c_slots: float = 6.0
    """The number ``store_slots`` for reads of C."""
    split: float = 1.231
    """us for the meeting of the two CTAs that divide k."""
    split_share: float = 0.09551
    """The part by which all takes longer for every 128 x 128 of a tile with a divided k."""
    overlap: float = 4.235
    """Exponent of the mean: the larger, the better work and transfers overlap."""


@dataclass(frozen=True)
class AttentionCosts:
    """Constants of attention; ``benchmarks/fit_attention_model.py`` fits them."""

    launch: float = 5.996
    """us that every launch takes."""
    ghz: float = 1.9
    droop: float = 0.0
    """The part by which the clock falls in long work that fills the chip."""
    droop_us: float = 113.5
    """us of work until it has fallen."""
    softmax: float = 0.0635
    """Cycles of the softmax for an element of the scores."""
    exposed: float = 0.7123
    """Part of it that nothing hides with one consumer warpgroup."""
    hiding: float = 0.5002
    """The power of their number by which several hide it."""
    block: float = 148.8
    """Cycles for the barriers of a block."""
    partly: float = 1.212
    """Blocks that a block takes of which the mask hides a part."""
    tile: float = 1883.0
    """Cycles at the ends of a tile."""
    overlapped_tile: float = 1.1
    """Part of them with ``overlap_epilogue``."""
    row: float = 0.0192
    """Cycles for an element of a tile's queries and output."""
    counter: float = 0.0086
    """Cycles for a tile's number from a counter."""
    loaded: float = 408.1
    """Cycles for a block that is loaded, whether it is computed or not."""
    pair: float = 64.3
    """Cycles more for 64 keys that two CTAs share: they wait for one another."""
    pair_masked: float = 1172.0
    """Cycles more for a block that such a CTA loads and does not compute as a whole."""
    unbuffered: float = 1400.0
    """Cycles that a block waits for its loads where the ring has one stage."""
    late: float = 3484.0
    """Cycles until a tile's first loads are there, with one slot."""
    tail: float = 0.4371
    """Part of the shortest tile that is left at the end."""
    l2: float = 49.85
    """Bytes per ns that one multiprocessor reads."""
    memory: float = 3.005
    """TB/s."""
    overlap: float = 6.709
    """Exponent of the mean: the larger, the better work and transfers overlap."""
    stream: float = 4.43
    """TB/s of keys and values that kernels with shares of the keys read."""
    stream_start: float = 14.2
    """us that their launches take in addition. Both by decode_h200.jsonl."""


@dataclass(frozen=True)
class Chip:
    """A chip that kernels are chosen for."""

    name: str
    arch: str
    memory_gib: int
    """The memory in GiB, rounded up from the data sheet."""
    multiprocessors: int
    products: int
    """Sums of a tile that the tensor cores of a multiprocessor advance by 128 bytes along k, in
    one cycle."""
    gemm: GemmCosts = field(default_factory=GemmCosts)
    attention: AttentionCosts = field(default_factory=AttentionCosts)
    fours: int = 0
    """Clusters of four that fit at once, where that was measured to be fewer than expected."""
    fitted: str = ""
    """The measurements that the constants were fitted to; "" where they are of another chip."""

    def resident(self, cluster: int) -> int:
        """Return the number of CTAs that run at once in clusters of ``cta_group``."""
        clusters = self.multiprocessors // cluster
        if cluster >= 4 and self.fours:
            clusters = min(clusters, self.fours * 4 // cluster)
        return clusters * cluster

    @property
    def capability(self) -> Capability:
        """Its compute capability."""
        return ARCHITECTURES[self.arch].runs_on[0]

    def runs(self, arch: str) -> bool:
        """Whether machine code for ``arch`` runs on it."""
        return runs_on(arch, self.capability)

    @property
    def note(self) -> str:
        """Return a sentence on the source of the constants."""
        if self.fitted:
            return f"The model's constants were fitted to {self.fitted}."
        return f"Nothing was measured on an {self.name}: the constants are carried over."


H200 = Chip(
    "NVIDIA H200",
    "sm_90a",
    141,
    132,
    32,
    fours=30,
    fitted="3526 figures of matrix products and 224 of attention, bf16, on an NVIDIA H200",
)
H100 = Chip(
    "NVIDIA H100 80GB HBM3",
    "sm_90a",
    80,
    132,
    32,
    GemmCosts(memory=2.3, memory_evict_first=2.9),  # by the ratio of the data sheets' bandwidths
    AttentionCosts(memory=2.6, stream=3.1),
    fours=30,
)
B200 = Chip(
    "NVIDIA B200",
    "sm_100a",
    192,
    148,
    64,
    # sums of the next tile have accumulators of their own
    GemmCosts(
        memory=6.0,
        memory_evict_first=6.8,
        l2=200.0,
        l2_shared=200.0,
        shared_reads=0.0,
        store=0.0,
    ),
    AttentionCosts(memory=6.0, l2=200.0, stream=7.4),
)
B300 = Chip("NVIDIA B300", "sm_103a", 288, 148, 64, B200.gemm, B200.attention)
CHIPS = (H200, H100, B200, B300)
"""The first that runs an architecture is the one that is meant where none is named."""


def chip_for(arch: str, name: str = "") -> Chip:
    """Return the chip called ``name``, or the first of ``arch`` (such as sm_90a)."""
    candidates = [chip for chip in CHIPS if chip.runs(arch)]
    return next((chip for chip in candidates if chip.name == name), candidates[0])


def known_chip(arch: str, name: str) -> Chip:
    """Return the chip that ``name`` means: its first words, without the maker or with it.

    Upper and lower case are the same. Raises ConfigError for a name that no chip of ``arch`` has.
    """
    names = [chip.name for chip in CHIPS if chip.runs(arch)]
    words = _words(name)
    meant = [one for one in names if _words(one)[: len(words)] == words] if words else names
    if not meant:
        raise ConfigError(
            Problem(f"{name!r} is no known chip for {arch}", f"Known are: {', '.join(names)}.")
        )
    return chip_for(arch, meant[0])


def _words(name: str) -> list[str]:
    return name.casefold().removeprefix("nvidia").split()
