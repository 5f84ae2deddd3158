"""Who has seen what: vector clocks of a cluster's threads."""
