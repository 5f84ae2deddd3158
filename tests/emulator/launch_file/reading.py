"""Launch files from text, as the command line reads them."""

from __future__ import annotations

from fa4gen.cli.launch_files import parse_launch_file as read
from fa4gen.emulator.launch_file.model import LaunchFile


def parse_launch_file(text: str) -> LaunchFile:
    """The launch file without its places."""
    return read(text).file
