"""The cost model: the time of a kernel for a problem, from its plan alone."""
