"""The part of README.md that shows a role of a generated kernel; docs/update.py puts it there."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

KERNEL = Path("generated/sm_90a/d128_causal_bf16/d128_causal_bf16.cu")
"""From the root."""
ROLE = "consume"
FUNCTION = "step"


def role_section(root: Path) -> str:
    """Return a function of a role as a code block, with its comment and the file it is from.

    Raises ValueError where the kernel has no such role or function.
    """
    text = (root / KERNEL).read_text(encoding="utf-8")
    _, begin, role = text.partition(f"// ---- role: {ROLE}.")
    if not begin:
        raise ValueError(f"{KERNEL} has no role {ROLE!r}: choose one in docs/readme_parts.py")
    found = re.search(
        rf"^(?P<indent> *)// [^\n]*\n(?:(?P=indent)\S[^\n]*\n)*?"
        rf"(?P=indent)[^\n]*\b{FUNCTION}\(.*?^(?P=indent)}}$",
        role,
        re.MULTILINE | re.DOTALL,
    )
    if found is None:
        raise ValueError(
            f"role {ROLE!r} of {KERNEL} has no function {FUNCTION!r} with a comment: "
            "choose one in docs/readme_parts.py"
        )
    code = textwrap.dedent(found[0])
    return f"[{KERNEL.name}]({KERNEL}), role `{ROLE}`:\n\n```cuda\n{code}\n```"
