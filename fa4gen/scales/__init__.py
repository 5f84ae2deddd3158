"""Narrow floats with scales of blocks or heads, and the order in which tensor cores read scales."""

from fa4gen.scales.atoms import arrange, restore
from fa4gen.scales.forms import ScaleForm, form_of
from fa4gen.scales.heads import QuantizedHeads, add_means, quantize_heads
from fa4gen.scales.quantize import Quantized, as_mxfp8, dequantize, quantize

__all__ = [
    "Quantized",
    "QuantizedHeads",
    "ScaleForm",
    "add_means",
    "arrange",
    "as_mxfp8",
    "dequantize",
    "form_of",
    "quantize",
    "quantize_heads",
    "restore",
]
