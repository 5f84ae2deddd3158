"""Compilers, the log lint and the cache of compiled kernels."""
