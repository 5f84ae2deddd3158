"""The instruction families, one module each; ``families`` joins them."""
