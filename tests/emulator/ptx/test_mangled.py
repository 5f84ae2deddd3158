"""Names of C++ for people, compared with what c++filt says of them."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator.ptx.mangled import shown_name
from tests.emulator.kernel import kernel, run

LONG = "N5tk_v26layoutILi64ELb1EJ" + "N4cute1CILi128EEE" * 90 + "EEE"


@pytest.mark.parametrize(("mangled", "shown"), [
    ("kernel", "kernel"),
    ("_Z5scalePKfi", "scale"),
    ("_ZL5table", "table"),
    ("_ZN12_GLOBAL__N_15tableE", "(anonymous)::table"),
    ("_ZN1a4kernIiLi5EEEvPT_", "a::kern<...>"),
    ("_ZZN1a4kernIiLi5EEEvPT_E4tile", "a::kern<...>::tile"),
    ("_ZZ5scalePKfiE4tile_0", "scale::tile"),
    ("_ZN1a4kernIJlNS_1CILi2EEEA4_fEEEvDpT_", "a::kern<...>"),
    ("_ZZN4cute3fooIZNS_3barEvEUlT_E_EEvS2_E4smem", "cute::foo<...>::smem"),
    ("_ZNK1a1bclEi", "a::b::operator()"),
    ("_ZN1aD2Ev", "a::~a"),
    ("_ZN3std3f16cvfEv", "std::f16::operator"),
    (f"_ZN2tk6kernelI{LONG}EEvT_", "tk::kernel<...>"),
    ("_ZN1a4kernIXadL_Z3quxvEEEEvv", "_ZN1a4kernIXadL_Z3quxvEEEEvv"),
    ("_ZN9a", "_ZN9a"),
    ("_Z", "_Z"),
    ("_ZN" * 7000, "_ZN" * 19 + "..." + "ZN" + "_ZN" * 6),
])  # fmt: skip
def test_names(mangled: str, shown: str) -> None:
    assert shown_name(mangled) == shown


def test_long_names_are_cut_in_the_middle() -> None:
    name = "kernel_cutlass_kernel_" + "FlashAttentionForwardSm100_object_at_" * 50 + "_0"
    assert shown_name(name) == name[:57] + "..." + name[-20:]


def test_findings_have_the_name_of_a_variable() -> None:
    body = """
    mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2;
    st.shared.u32 [%r3], %r1;
    xor.b32 %r2, %r2, 128; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2; ld.shared.u32 %r4, [%r3];
    """
    ptx = kernel(body, shared=512).replace("tile", "_ZZN1a4kernIiLi5EEEvPT_E4tile")
    [finding] = run(ptx, np.zeros(1), block=64).findings
    assert "a::kern<...>::tile" in finding.message
