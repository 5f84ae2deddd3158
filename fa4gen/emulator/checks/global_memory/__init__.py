"""Races in global memory, within a launch and with the grid before."""
