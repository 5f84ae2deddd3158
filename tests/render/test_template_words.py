"""The purpose of a template, by its first comment."""

from __future__ import annotations

import pytest

from fa4gen.render.own_templates import shipped_templates
from fa4gen.render.template_words import LONGEST, purpose


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.cuh.j2", "{# What it is. And more. #}\n// other words\n", "What it is."),
        ("a.cuh.j2", "{% set a = 1 %}\n\n// ---- role: load. It loads. ----\n// More.\n",
         "role: load. It loads."),
        ("a.cuh.j2", "  // Of two\n  // lines. The rest.\nint a;\n", "Of two lines."),
        ("a.cuh.j2", "// Waits for {{ 'a' if plan.b }}{% if plan.c %} and c{% endif %}: in turn.\n",
         "Waits for … and c: in turn."),
        ("a.c.j2", "// SPDX-License-Identifier: Apache-2.0\n/* ---- Words of it\n *\n * more */\n",
         "Words of it more"),
        ("a.c.j2", "#include <stdio.h>\n/* The file. */\n", "The file."),
        ("a.py.j2", "# SPDX-License-Identifier: Apache-2.0\n\"\"\"Calls it.\n\nMore.\n\"\"\"\n",
         "Calls it."),
        ("a.txt.j2", "# The build.\n", "The build."),
        ("a.j2", "{{ plan.text }}\n", ""),
        ("a.cuh.j2", "// ----\nint a;\n", ""),
        ("any/kernel.cu.j2", "// words\n", "The kernel's own file: its parts in order."),
    ],
)  # fmt: skip
def test_the_first_comment_says_it(name: str, text: str, words: str) -> None:
    assert purpose(name, text) == words


def test_a_long_sentence_is_cut() -> None:
    words = purpose("a.cuh.j2", f"// {'word ' * 60}\n")
    assert len(words) <= LONGEST
    assert words.endswith(" …")


def test_shipped_templates_have_words() -> None:
    found = {name: purpose(name, path.read_text()) for name, path in shipped_templates().items()}
    silent = [name for name, words in found.items() if not words]
    assert len(silent) < len(found) / 20, silent
    assert [words for words in found.values() if "\n" in words or "{{" in words] == []
    assert found["attention_sm90/load.cuh.j2"].startswith("role: load. ")
