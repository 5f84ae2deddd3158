"""What a launch is made of: memories, barriers, registers, clusters, arguments."""
