"""``fa4gen tune``: from a config and problems to a table of the kernels to use."""
