"""Mutants of kernels and launchers, made by rule; ``benchmarks/mutate.py`` is the program."""
