"""What a user may write in a config, as pydantic models.

Types, ranges and the rules between keys that need no arithmetic on resources live here;
whatever depends on shared memory or registers is decided (and refused) by the plan.
Field names are YAML keys, plan fields, C++ constants (kCamelCase) and manifest fields alike.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticKnownError

Auto = Literal["auto"]
MAX_WINDOW = 2**30
"""Keys: window, rows and tiles then add up in 32 bits for as many rows again."""
MIN_SOFTCAP, MAX_SOFTCAP = 1e-4, 1e4
"""Above, float32 loses in tanh what the cap multiplies back; far below, its inverse overflows."""


def _whole(value: object) -> object:
    """Refuse 128.0 and true, which equal a number of a Literal, and which Literal takes for it."""
    if isinstance(value, (bool, float)):
        raise PydanticKnownError("int_type")
    return value


Whole = BeforeValidator(_whole)


class Strict(BaseModel):
    """Refuses unknown keys and silent conversions."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )


class WindowExtent(Strict):
    """How many keys a query row sees on each side of its diagonal, the diagonal not counted."""

    left: Annotated[int, Field(ge=0, le=MAX_WINDOW)]
    right: Annotated[int, Field(ge=0, le=MAX_WINDOW)]


class SlidingWindow(Strict):
    """A band around the diagonal, which ends at the bottom right corner like ``causal``.

    A number W means the W most recent keys, the row's own key included;
    ``{left: L, right: R}`` means L keys before the diagonal, R after it, and itself.
    """

    sliding_window: Annotated[int, Field(ge=1, le=MAX_WINDOW)] | WindowExtent

    @property
    def extent(self) -> tuple[int, int]:
        """Keys visible to the left and right of the diagonal."""
        if isinstance(self.sliding_window, int):
            return self.sliding_window - 1, 0
        return self.sliding_window.left, self.sliding_window.right


class RegisterBudget(Strict):
    """Registers per thread of each role after ``setmaxnreg``."""

    producer: Annotated[int, Field(ge=24, le=256, multiple_of=8)]
    consumer: Annotated[int, Field(ge=24, le=256, multiple_of=8)]


class AttentionConfig(Strict):
    """Attention forward on Hopper (sm_90a)."""

    kernel: Literal["attention"]
    """Kernel family."""
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=100)]
    """Name of the kernel, its files and its entry point; the file's stem when not given."""
    arch: Literal["sm_90a"]
    """Architecture that the kernel is written for."""
    dtype: Literal["bf16", "fp16"]
    """Element type of query, key, value and output. Sums are kept in float32."""
    depth: Annotated[Literal[64, 96, 128, 192, 256], Whole]
    """Head dimension, in elements."""
    mask: Literal["none", "causal"] | SlidingWindow = "none"
    """none, causal (aligned to the bottom right corner), or {sliding_window: W}."""
    lse: bool = True
    """Also write the log-sum-exp of every row, float32 (batch, heads, query rows)."""
    softcap: Annotated[float, Field(ge=MIN_SOFTCAP, le=MAX_SOFTCAP)] | None = None
    """Logits become softcap * tanh(logit / softcap) before the mask."""
    cta_group: Annotated[Literal[1, 2], Whole] = 1
    """2: a cluster pair works on neighbouring query tiles and shares K and V by multicast."""
    BM: Annotated[int, Field(ge=64, le=192, multiple_of=64)] | Auto = "auto"
    """Query rows of a tile: 64 for each consumer warpgroup."""
    BN: Annotated[int, Field(ge=16, le=256, multiple_of=16)] | Auto = "auto"
    """Keys of a K/V block."""
    num_consumer_warpgroups: Annotated[int, Field(ge=1, le=3)] | Auto = "auto"
    """Warpgroups that compute, each on 64 query rows."""
    num_kv_stages: Annotated[int, Field(ge=1, le=16)] | Auto = "auto"
    """Slots of the ring of K blocks, and of the ring of V blocks."""
    overlap: bool = True
    """Issue P.V in chunks of 16 keys while the exponentials go on, and the next Q.K under them."""
    num_pv_chunks_in_flight: Annotated[int, Field(ge=0, le=16)] | Auto = "auto"
    """P.V chunks that may still run when the next Q.K is issued (only with overlap)."""
    ping_pong: bool | Auto = "auto"
    """Consumer warpgroups take turns to issue their matrix products (needs two of them)."""
    overlap_epilogue: bool | Auto = "auto"
    """Issue the next tile's first Q.K before this tile's output is written."""
    epilogue: Literal["auto", "direct", "tma_store"] = "auto"
    """Write the output straight from registers, or through shared memory by TMA."""
    scheduler: Literal["auto", "static", "dynamic"] = "auto"
    """Tiles in a fixed round, or handed out by an atomic counter, longest first."""
    rescale_threshold: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = 8.0
    """Rescale the output only when a row's maximum grew by more than this, in powers of two."""
    registers: RegisterBudget | Auto = "auto"
    """Registers per thread of the producer and of each consumer."""

    @model_validator(mode="after")
    def _tile_matches_warpgroups(self) -> AttentionConfig:
        if isinstance(self.BM, int) and isinstance(self.num_consumer_warpgroups, int):
            rows = 64 * self.num_consumer_warpgroups
            if rows != self.BM:
                raise ValueError(
                    f"BM is {self.BM}, but num_consumer_warpgroups: "
                    f"{self.num_consumer_warpgroups} makes 64 * {self.num_consumer_warpgroups} = "
                    f"{rows} rows; drop one of the two keys"
                )
        return self

    @property
    def window(self) -> tuple[int | None, int | None]:
        """Keys visible left and right of the diagonal; None is unbounded."""
        if self.mask == "none":
            return None, None
        if self.mask == "causal":
            return None, 0
        return self.mask.extent


Config = AttentionConfig
"""Any config. Further families join this union."""
