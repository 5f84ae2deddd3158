"""Softcap: logits become softcap * tanh(logit / softcap)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from fa4gen.overriding import override
from fa4gen.scores.score import Score
from fa4gen.strict import Field

if TYPE_CHECKING:
    from fa4gen.expressions.places import Places

SMALLEST, LARGEST = 1e-4, 1e4
"""The bounds of the cap: above, float32 tanh loses the digits that the cap multiplies back; far
below, its inverse overflows."""
SoftcapValue = Annotated[float, Field(ge=SMALLEST, le=LARGEST)]
"""The cap in a config."""


@dataclass(frozen=True)
class Softcap(Score):
    """Logits stay between minus and plus the cap."""

    name: str = field(default="softcap", init=False)
    softcap: float = field(metadata={"note": "logits stay between -kSoftcap and kSoftcap"})

    FUNCTION: ClassVar[str] = "cap_scores"
    COMMENT: ClassVar[tuple[str, ...]] = (
        "Scores become tanh(score * softmax_scale / kSoftcap); kSoftcap itself is part of the",
        "scale that follows. tanh(x) = 1 - 2 / (1 + exp(2 x)) keeps float32 accuracy where",
        "tanh.approx does not.",
    )
    BODY: ClassVar[tuple[str, ...]] = (
        "const float power = exp2_approx({score} * twice_scale_log2);",
        "{score} = fmaf(-2.f, reciprocal_approx(1.f + power), 1.f);",
    )
    FACTOR: ClassVar[str] = "twice_scale_log2"
    FACTOR_NOTE: ClassVar[str] = "2 * log2(e) * softmax scale / kSoftcap, for the tanh"
    FACTOR_VALUE: ClassVar[str] = "2.f * kLog2E / kSoftcap * {scale}"
    UNIT: ClassVar[str] = "kSoftcap"
    C_EXACT: ClassVar[str] = "{softcap} * tanh(score / {softcap})"
    C_ROUNDED: ClassVar[str] = (
        "tanhf(rounded * (float)(score_scale / {softcap})) *\n"
        "                (float)({softcap} * log2_e)"
    )
    C_ERROR: ClassVar[str] = "ldexp({softcap}, -20)"

    @override
    def exact(self, logits: Any, xp: Any, places: Places | None = None) -> Any:
        del places
        return self.softcap * xp.tanh(logits / self.softcap)

    @override
    def rounded(
        self, products: Any, scale: float, xp: Any, places: Places | None = None
    ) -> tuple[Any, float]:
        del places
        return xp.tanh(products * xp.float32(scale / self.softcap)), self.softcap

    @property
    @override
    def words(self) -> str:
        return f"logits capped at {self.softcap}"

    @property
    @override
    def error(self) -> float:
        return self.softcap * 2.0**-20
