"""The state of a launch: memories, barriers, registers, clusters, arguments."""
