"""Block scales of narrow floats: quantising, and the order in which tensor cores read scales."""

from fa4gen.scales.atoms import arrange, restore
from fa4gen.scales.forms import ScaleForm, form_of
from fa4gen.scales.quantize import Quantized, dequantize, quantize

__all__ = ["Quantized", "ScaleForm", "arrange", "dequantize", "form_of", "quantize", "restore"]
