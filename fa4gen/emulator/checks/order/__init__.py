"""The order of events: vector clocks of a cluster's threads."""
