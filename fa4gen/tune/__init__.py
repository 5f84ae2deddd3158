"""Choosing kernels: a cost model, candidates, tables of what was chosen, sets of kernels."""
