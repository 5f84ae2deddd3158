"""Races in tensor memory."""
