"""Loading and launching compiled kernels through CuPy."""
