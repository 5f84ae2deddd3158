"""Choice of kernels: a cost model, candidates, tables of choices, sets of kernels."""
