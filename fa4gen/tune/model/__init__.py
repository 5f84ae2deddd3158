"""The cost model: what a kernel should take for a problem, from its plan alone."""
