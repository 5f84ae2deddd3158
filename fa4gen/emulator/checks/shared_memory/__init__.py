"""Races in shared memory."""
