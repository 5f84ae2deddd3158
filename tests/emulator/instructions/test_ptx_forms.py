"""Forms of instructions that ptxas 13.0 takes: which the emulator takes, and why not the others.

``ptx_forms.tsv`` has a row for each: family, target, instruction, and ``accepted`` or the reason of
the refusal.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fa4gen.emulator import Program
from fa4gen.emulator.errors import EmulatorError

ROWS = [
    line.split("\t")
    for line in (Path(__file__).parent / "ptx_forms.tsv").read_text().splitlines()
    if not line.startswith("#")
]
ENTRY = """.version 9.0
.target {target}
.address_size 64
.visible .entry k(.param .u64 p, .param .align 64 .b8 tm[128])
{{
    .reg .pred %p<16>; .reg .b8 %b<8>; .reg .b16 %h<32>; .reg .b32 %r<300>; .reg .b64 %d<32>;
    .reg .f32 %f<300>; .reg .f64 %fd<32>; .reg .b128 %q<8>;
    .shared .align 1024 .b8 smem[1024];
    {form}
    ret;
}}
"""
_LEAST_WORDS = 5
DOCUMENT = Path(__file__).parents[3] / "docs/how-it-works/emulator.md"


def answer(target: str, form: str) -> str:
    """``accepted``, or what the refusal says behind the instruction."""
    try:
        Program(ENTRY.format(target=target, form=form)).check()
    except EmulatorError as error:
        _, message = str(error).split(": ", 1)
        return message.partition(" is not modelled: ")[2] or message
    return "accepted"


@pytest.mark.parametrize("family", sorted({row[0] for row in ROWS}))
def test_every_form_is_accepted_or_refused_as_listed(family: str) -> None:
    for name, target, form, expected in ROWS:
        if name == family:
            assert answer(target, form) == expected, form


def test_every_refusal_is_a_sentence() -> None:
    reasons = {row[3] for row in ROWS} - {"accepted"}
    assert all(len(reason.split()) >= _LEAST_WORDS for reason in reasons), reasons


def test_the_document_says_how_many() -> None:
    accepted = sum(row[3] == "accepted" for row in ROWS)
    text = " ".join(DOCUMENT.read_text().split())
    assert (
        f"Of {len(ROWS)} forms of instructions that ptxas 13.0 takes it takes {accepted};" in text
    )
