from __future__ import annotations

import numpy as np

from tests.emulator.kernel import kernel, run


def test_registers_that_were_never_written_are_no_zeros() -> None:
    text = kernel("""
    st.global.f32 [%d0], %r100;
    st.global.f64 [%d0+8], %d50;
    st.global.b16 [%d0+16], %h5;
    add.f32 %r101, %r101, 0f00000000;
    st.global.f32 [%d0+4], %r101;
    """)
    out = np.zeros(32, np.uint8)
    report = run(text, out, block=1)
    assert report.verdict.value == "clean"
    assert np.isnan(out[:8].view(np.float32)).all()
    assert np.isnan(out[8:16].view(np.float64)).all()
    assert np.isnan(out[16:18].view(np.float16)).all()


def test_the_unwritten_sums_of_a_product_that_is_not_run_show_in_what_is_stored() -> None:
    text = kernel("""
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra STORE;
    mov.f32 %r10, 0f3F800000;
STORE:
    st.global.f32 [%d0], %r10;
    """, ("u64", "u32"))  # fmt: skip
    out = np.zeros(1, np.float32)
    run(text, out, np.uint32(0), block=1)
    assert np.isnan(out[0])
    run(text, out, np.uint32(1), block=1)
    assert out[0] == 1
