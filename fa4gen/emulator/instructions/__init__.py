"""The instruction families, one module each; ``registry`` joins them."""
