"""JSON of files that anybody may have written."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """Return the value of JSON text; ValueError for anything else, and for too many brackets.

    Python's parser descends into each bracket, and raises RecursionError where they are too many.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("too many brackets inside each other") from error
