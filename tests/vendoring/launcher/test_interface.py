"""The functions beside the launches: kernels, traits, statuses, prepared launches, workspaces."""

from __future__ import annotations

import ctypes
import hashlib

import pytest

from fa4gen.vendoring.binding import AttentionArgs, GemmArgs, Prepared, Problem
from fa4gen.vendoring.standin import SimulatedDevice
from tests.vendoring.launcher.attention_problems import plain_problem
from tests.vendoring.launcher.both import DEVICES_OF_A_COPY
from tests.vendoring.launcher.families import traits_of
from tests.vendoring.launcher.gemm_problems import plain_problem as plain_product
from tests.vendoring.launcher.shipped import cubin_without_code, shipped_plans
from tests.vendoring.statuses import ARGUMENTS, DRIVER_ERROR, REASONS, describe_status

HOPPER = SimulatedDevice("sm_90a", 132)
OUT_OF_RESOURCES = 701


ATTENTION, PRODUCT = "d128_causal_bf16", "gemm_bf16_residual_sm90"
SCALED = "gemm_fp8_scaled_sm90"


def changed(args, changes):
    """Set fields; those of a field's fields have a double underscore in their names."""
    for field, value in changes.items():
        *owner, name = field.split("__")
        setattr(getattr(args, owner[0]) if owner else args, name, value)
    return args


def attention_args(name=ATTENTION, **changes):
    return changed(plain_problem(shipped_plans()[name], workspace_bytes=32).c_args(), changes)


def gemm_args(**changes):
    return changed(plain_product(shipped_plans()[PRODUCT]).c_args(), changes)


@pytest.fixture
def library(launcher):
    binding = launcher.on(HOPPER)
    launcher.stand_in.reset()
    return binding


@pytest.fixture
def attention(library):
    return library.kernel("acme_d128_causal_bf16")


@pytest.fixture
def gemm(library):
    return library.kernel("acme_gemm_bf16_residual_sm90")


def refused(status):
    reason, argument = describe_status(status)
    return argument, reason


# ---- Kernels


def test_the_kernels_are_there_in_the_order_of_the_folder(library) -> None:
    plans = shipped_plans()
    count = library.kernel_count()
    handles = [library.kernel_at(i) for i in range(count)]
    assert [library.kernel_name(handle).decode() for handle in handles] == list(plans)
    assert [library.kernel_arch(handle).decode() for handle in handles] == [
        plan.arch for plan in plans.values()
    ]
    assert [library.kernel(plan.name).handle for plan in plans.values()] == handles
    assert [library.kernel_at(-1), library.kernel_at(count)] == [None, None]


def test_the_hash_is_that_of_the_unpacked_cubin(library) -> None:
    for plan in shipped_plans().values():
        expected = hashlib.sha256(cubin_without_code(plan)).hexdigest()
        assert library.kernel(plan.name).sha256() == expected


@pytest.mark.parametrize("name", shipped_plans())
def test_traits_are_those_of_the_plan(library, name) -> None:
    plan = shipped_plans()[name]
    traits = Problem(struct_size=ctypes.sizeof(Problem))
    assert library.kernel_traits(library.kernel(plan.name).handle, ctypes.byref(traits)) == 0
    dtypes = {"bf16": 1, "fp16": 2, "fp8_e4m3": 3, "fp32": 4, "fp4_e2m1": 5}
    expected = Problem(
        struct_size=ctypes.sizeof(Problem),
        dtype=dtypes[plan.dtype],
        out_dtype=dtypes[plan.out_dtype],
    )
    traits_of(plan).set_traits(expected, plan)
    for field, _ in Problem._fields_:
        assert getattr(traits, field) == getattr(expected, field), field


def test_what_is_asked_of_no_kernel(library) -> None:
    space = ctypes.create_string_buffer(65)
    assert library.kernel_name(None) is None
    assert library.kernel_arch(None) is None
    assert library.workspace_bytes(None, None) == 0
    assert refused(library.kernel_sha256(None, space)) == ("KERNEL", "IS_NULL")
    assert refused(library.load(None)) == ("KERNEL", "IS_NULL")
    traits = Problem(struct_size=ctypes.sizeof(Problem))
    assert refused(library.kernel_traits(None, ctypes.byref(traits))) == ("KERNEL", "IS_NULL")
    handle = library.kernel_at(0)
    assert refused(library.kernel_traits(handle, None)) == ("PROBLEM", "IS_NULL")
    assert refused(library.kernel_sha256(handle, None)) == ("ARGS", "IS_NULL")
    assert refused(library.kernel_traits(handle, ctypes.byref(Problem()))) == (
        "PROBLEM",
        "BAD_SIZE",
    )


# ---- Statuses


def test_words_say_which_argument_and_what_was_expected(library) -> None:
    texts = {}
    for argument, name in enumerate(ARGUMENTS):
        for reason in range(1, len(REASONS)):
            status = reason + 256 * argument
            text = library.words(status)
            if text != "no status of this library":
                texts[status] = text
                assert text.isascii()
                assert "expected" in text, text
                if argument:
                    assert text.casefold().startswith(f"{name.casefold()}: "), text
    assert len(set(texts.values())) == len(texts) > 60
    assert library.words(0) == "done: enqueued, or nothing to do"
    for status in (-1, 255, 256 * len(ARGUMENTS) + 1, DRIVER_ERROR - 1, DRIVER_ERROR):
        assert library.words(status) == "no status of this library"


@pytest.mark.parametrize(
    ("reason", "argument", "words"),
    [
        ("BAD_EXTENT", "KEY_LENGTHS", "a batch of at most 4096 sequences"),
        ("BAD_VALUE", "SOFTMAX_SCALE", "with a score function from 2^-24 to 2^24"),
    ],
)
def test_words_have_the_limits_of_some_kernels(library, reason, argument, words) -> None:
    status = REASONS.index(reason) + 256 * ARGUMENTS.index(argument)
    assert words in library.words(status)


def test_errors_of_the_driver_are_in_its_words(library, attention) -> None:
    assert library.words(DRIVER_ERROR + OUT_OF_RESOURCES) == (
        "too many resources requested for launch"
    )
    assert "cudaSetDevice" in library.words(DRIVER_ERROR + 201)
    unknown = library.words(DRIVER_ERROR + 99999)
    assert unknown == "the CUDA driver reported an error that it has no words for"


@pytest.mark.parametrize(
    "function",
    ["cuCtxGetDevice", "cuTensorMapEncodeTiled", "cuLaunchKernelEx"],
)
def test_an_error_of_the_driver_comes_back_and_the_next_call_works(
    launcher, library, attention, function
) -> None:
    args = attention_args()
    launcher.stand_in.fail(function, OUT_OF_RESOURCES)
    status = attention.launch(ctypes.byref(args), None)
    if function == "cuTensorMapEncodeTiled":
        assert refused(status) == ("QUERY", "MAP_REFUSED")
    else:
        assert status == DRIVER_ERROR + OUT_OF_RESOURCES
    assert not launcher.stand_in.launches
    assert attention.launch(ctypes.byref(args), None) == 0
    assert len(launcher.stand_in.launches) == 1


# ---- Structs


SIZE, PRODUCT_SIZE = ctypes.sizeof(AttentionArgs), ctypes.sizeof(GemmArgs)
MLA = ("decode_mla_bf16", "decode_mla_paged64_bf16")
REFUSED = (
    *((ATTENTION, {"struct_size": size}, "ARGS BAD_SIZE") for size in (0, SIZE + 8, SIZE - 8)),
    *((PRODUCT, {"struct_size": size}, "ARGS BAD_SIZE")
      for size in (0, PRODUCT_SIZE + 8, PRODUCT_SIZE - 8)),
    *((ATTENTION, {f"{name}__data": None}, f"{name.upper()} IS_NULL")
      for name in ("query", "key", "value", "out")),
    *((PRODUCT, {f"{name}__data": None}, f"{name.upper()} IS_NULL") for name in "abc"),
    (PRODUCT, {"out__data": None}, "OUT IS_NULL"),
    *((PRODUCT, {f"{name}__data": 4}, f"{name.upper()} NOT_TAKEN")
      for name in ("scale_a", "scale_b")),
    *((ATTENTION, {name: value}, f"{argument} BAD_EXTENT")
      for argument, names in {"QUERY": ("batch", "query_rows", "query_heads"),
                              "KEY": ("key_rows", "key_heads")}.items()
      for name in names for value in (-1, -(2**63))),
    *((PRODUCT, {name: value}, f"{'B' if name == 'n' else 'A'} BAD_EXTENT")
      for name in ("batch", "m", "n", "k") for value in (-1, -(2**63))),
    (ATTENTION, {"query_rows": 2**31 - 1}, "QUERY BAD_EXTENT"),
    # as fa4gen.runtime, which knows no more of the others where one is beyond 32 bits
    (ATTENTION, {"query_rows": 2**31 - 1, "key_rows": 2**31}, "KEY BAD_EXTENT"),
    (ATTENTION, {"workspace": None}, "WORKSPACE IS_NULL"),
    (ATTENTION, {"workspace": (1 << 20) + 8}, "WORKSPACE MISALIGNED"),
    (ATTENTION, {"workspace_bytes": 31}, "WORKSPACE TOO_SMALL"),
    *((ATTENTION, {"workspace": place << 40}, "WORKSPACE OVERLAPS") for place in range(1, 6)),
    (ATTENTION, {"workspace": (1 << 40) - 16}, "WORKSPACE OVERLAPS"),
    *((name, {"workspace_bytes": 1 << 30, "value__data": (2 << 40) + 16}, "VALUE BAD_VALUE")
      for name in MLA),
    *((name, {"workspace_bytes": 1 << 30, "value__head_stride": 1 << 20}, "VALUE BAD_VALUE")
      for name in MLA),
)  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "expected"), REFUSED)
def test_what_is_wrong_is_refused(launcher, library, name, changes, expected) -> None:
    args = gemm_args(**changes) if name == PRODUCT else attention_args(name, **changes)
    status = library.kernel(f"acme_{name}").launch(ctypes.byref(args), None)
    assert " ".join(refused(status)) == expected
    assert not launcher.stand_in.launches


@pytest.mark.parametrize(
    ("name", "changes", "launches"),
    [
        (ATTENTION, {"key_rows": 0, "key__data": None, "value__data": None}, 1),
        (ATTENTION, {"query_rows": 0, "query__data": None, "out__data": None, "lse": None}, 0),
        (PRODUCT, {"k": 0, "a__data": None, "b__data": None}, 1),
        (PRODUCT, {"m": 0, "a__data": None, "c__data": None, "out__data": None}, 0),
        (ATTENTION, {"workspace": (1 << 40) - 32}, 1),
        (PRODUCT, {"workspace": 1, "workspace_bytes": 0}, 1),
        *((name, {"workspace_bytes": 1 << 30}, 1) for name in MLA),
    ],
)
def test_what_has_no_elements_or_is_not_looked_at_may_be_anywhere(
    launcher, library, name, changes, launches
) -> None:
    args = gemm_args(**changes) if name == PRODUCT else attention_args(name, **changes)
    assert library.kernel(f"acme_{name}").launch(ctypes.byref(args), None) == 0
    assert len(launcher.stand_in.launches) == launches


def test_missing_structs_and_the_wrong_family(library, attention, gemm) -> None:
    args, product = attention_args(), gemm_args()
    assert refused(attention.launch(None, None)) == ("ARGS", "IS_NULL")
    assert refused(gemm.launch(None, None)) == ("ARGS", "IS_NULL")
    assert refused(library.attention(None, ctypes.byref(args), None)) == ("KERNEL", "IS_NULL")
    assert refused(library.gemm(None, ctypes.byref(product), None)) == ("KERNEL", "IS_NULL")
    wrong = library.attention(gemm.handle, ctypes.byref(args), None)
    assert refused(wrong) == ("KERNEL", "BAD_VALUE")
    wrong = library.gemm(attention.handle, ctypes.byref(product), None)
    assert refused(wrong) == ("KERNEL", "BAD_VALUE")
    prepared = Prepared()
    wrong = library.prepare(None, ctypes.byref(args), ctypes.byref(prepared))
    assert refused(wrong) == ("KERNEL", "IS_NULL")
    wrong = library.prepare(attention.handle, None, ctypes.byref(prepared))
    assert refused(wrong) == ("ARGS", "IS_NULL")


OLDEST = GemmArgs.scale_a.offset
"""The size of the struct before there were scales."""


def scaled_args(**changes):
    return changed(plain_product(shipped_plans()[SCALED]).c_args(), changes)


def test_callers_of_a_header_without_scales_are_served(launcher, library, gemm) -> None:
    args = gemm_args(struct_size=OLDEST, scale_a__data=1)
    assert gemm.launch(ctypes.byref(args), None) == 0
    assert len(launcher.stand_in.launches) == 1
    scaled = library.kernel(f"acme_{SCALED}")
    status = scaled.launch(ctypes.byref(scaled_args(struct_size=OLDEST)), None)
    assert refused(status) == ("SCALE_A", "IS_NULL")


@pytest.mark.parametrize(
    ("changes", "argument", "reason", "words"),
    [
        ({"scale_a__data": None}, "SCALE_A", "IS_NULL", "the scales of A, one for each block"),
        ({"scale_b__data": None}, "SCALE_B", "IS_NULL", "the scales of B, one for each block"),
        ({"scale_b__data": 6}, "SCALE_B", "MISALIGNED", "a multiple of 4 bytes"),
        ({"scale_a__k_stride": -1}, "SCALE_A", "BAD_STRIDE", "none below 0"),
        ({"scale_b__stride": 2**62}, "SCALE_B", "BAD_STRIDE", "none below 0"),
        ({"scale_a__data": 4 << 40}, "OUT", "OVERLAPS", "memory that nothing else"),
    ],
)
def test_scales_that_are_wrong_are_refused(library, changes, argument, reason, words) -> None:
    out = {"out__data": 4 << 40}
    status = library.kernel(f"acme_{SCALED}").launch(
        ctypes.byref(scaled_args(**out, **changes)), None
    )
    assert refused(status) == (argument, reason)
    assert words in library.words(status)


@pytest.mark.parametrize(
    ("changes", "argument", "reason", "words"),
    [
        ({"scale_a__data": None}, "SCALE_A", "IS_NULL", "the scales of A, one for each block"),
        ({"scale_b__data": (1 << 40) + 8}, "SCALE_B", "MISALIGNED", "of 16 for atoms"),
        ({"scale_a__k_stride": 520}, "SCALE_A", "BAD_STRIDE", "multiples of 16 bytes"),
        ({"scale_b__stride": -512}, "SCALE_B", "BAD_STRIDE", "from atom to atom"),
        ({"scale_b__batch_stride": 1 << 40}, "SCALE_B", "BAD_STRIDE", "below 2^40"),
        ({"scale_a__data": 4 << 40}, "OUT", "OVERLAPS", "memory that nothing else"),
        ({"k": 255}, "A", "BAD_EXTENT", "an even k of elements of fp4"),
    ],
)
def test_atoms_that_are_wrong_are_refused(launcher, changes, argument, reason, words) -> None:
    library = launcher.on(SimulatedDevice("sm_100a", 148))
    args = plain_product(shipped_plans()["gemm_nvfp4_pair"]).c_args()
    args = changed(args, {"out__data": 4 << 40, **changes})
    status = library.kernel("acme_gemm_nvfp4_pair").launch(ctypes.byref(args), None)
    assert refused(status) == (argument, reason)
    assert words in library.words(status)


WRITERS = {
    "scattered": "gemm_scattered_bf16_sm90",
    "quantised": "gemm_bf16_fp8_out_sm90",
    "amax": "gemm_bf16_amax_sm90",
    "fp4": "gemm_swiglu_nvfp4_out",
    "sums": "gemm_weight_gradient_bf16_sm90",
}


@pytest.mark.parametrize("name", WRITERS.values())
def test_callers_of_a_header_without_what_is_written_are_answered(library, name) -> None:
    """They cannot give it: a kernel that needs it says so."""
    args = plain_product(shipped_plans()[name]).c_args()
    args.struct_size = GemmArgs.out_index.offset
    status = library.kernel(f"acme_{name}").launch(ctypes.byref(args), None)
    missing = {WRITERS["scattered"]: "OUT_INDEX", WRITERS["quantised"]: "OUT_SCALES"}
    missing |= {WRITERS["amax"]: "OUT_AMAX", WRITERS["fp4"]: "OUT_SCALES"}
    assert refused(status) == ((missing[name], "IS_NULL") if name in missing else ("NONE", "OK"))


@pytest.mark.parametrize(
    ("kind", "changes", "argument", "reason"),
    [
        ("scattered", {"row_weights": None}, "ROW_WEIGHTS", "IS_NULL"),
        ("scattered", {"out_index": (13 << 40) + 2}, "OUT_INDEX", "MISALIGNED"),
        ("scattered", {"out_rows": -1}, "OUT", "BAD_EXTENT"),
        ("scattered", {"n": 252}, "B", "BAD_VALUE"),
        ("scattered", {"row_weights": 3 << 40}, "OUT", "OVERLAPS"),
        ("scattered", {"out_amax": 1 << 50}, "OUT_AMAX", "NOT_TAKEN"),
        ("quantised", {"out_scales__data": 1}, "OUT_SCALES", "MISALIGNED"),
        ("quantised", {"out_scales__stride": -1}, "OUT_SCALES", "BAD_STRIDE"),
        ("quantised", {"out_scales__stride": 0}, "OUT_SCALES", "OVERLAPS"),
        ("quantised", {"out_scales__data": 1 << 40}, "OUT_SCALES", "OVERLAPS"),
        ("amax", {"out_amax": (13 << 40) + 2}, "OUT_AMAX", "MISALIGNED"),
        ("amax", {"out_index": 1 << 50}, "OUT_INDEX", "NOT_TAKEN"),
        ("fp4", {"out_tensor_scale": None}, "OUT_TENSOR_SCALE", "IS_NULL"),
        ("fp4", {"out_tensor_scale": (14 << 40) + 2}, "OUT_TENSOR_SCALE", "MISALIGNED"),
        ("fp4", {"out_tensor_scale": 3 << 40}, "OUT", "OVERLAPS"),
        ("fp4", {"n": 254}, "B", "BAD_VALUE"),
        ("quantised", {"out_tensor_scale": 1 << 50}, "OUT_TENSOR_SCALE", "NOT_TAKEN"),
        ("sums", {"row_offsets": None}, "ROW_OFFSETS", "IS_NULL"),
        ("sums", {"k": (1 << 30) + 8}, "A", "BAD_EXTENT"),
        ("sums", {"out_scales__data": 1 << 50}, "OUT_SCALES", "NOT_TAKEN"),
    ],
)
def test_what_products_write_is_checked(library, kind, changes, argument, reason) -> None:
    args = changed(plain_product(shipped_plans()[WRITERS[kind]]).c_args(), changes)
    status = library.kernel(f"acme_{WRITERS[kind]}").launch(ctypes.byref(args), None)
    assert refused(status) == (argument, reason)
    assert library.words(status).lower().startswith(argument.lower())


# ---- Workspaces


def test_bytes_of_workspaces(attention, gemm) -> None:
    assert (attention.workspace_bytes(None), gemm.workspace_bytes(None)) == (32, 0)


def test_a_workspace_is_zeroed_on_the_stream(launcher, library) -> None:
    assert library.workspace_init(0x1000, 32, 0x77) == 0
    (record,) = launcher.stand_in.memsets
    assert (record.pointer, record.value, record.num_bytes, record.stream) == (0x1000, 0, 32, 0x77)
    assert library.workspace_init(None, 0, None) == 0
    assert refused(library.workspace_init(None, 32, None)) == ("WORKSPACE", "IS_NULL")
    assert len(launcher.stand_in.memsets) == 1
    launcher.stand_in.fail("cuMemsetD8Async", OUT_OF_RESOURCES)
    assert library.workspace_init(0x1000, 32, None) == DRIVER_ERROR + OUT_OF_RESOURCES


# ---- Prepared launches


def test_only_what_was_prepared_can_be_launched(library, attention) -> None:
    prepared = Prepared()
    launch = library.launch_prepared
    assert refused(launch(None, None)) == ("PREPARED", "IS_NULL")
    assert refused(launch(ctypes.byref(prepared), None)) == ("PREPARED", "BAD_VALUE")
    args = attention_args()
    assert refused(library.prepare(attention.handle, ctypes.byref(args), None)) == (
        "PREPARED",
        "IS_NULL",
    )
    assert library.prepare(attention.handle, ctypes.byref(args), ctypes.byref(prepared)) == 0
    assert launch(ctypes.byref(prepared), None) == 0
    args.query.data = 8
    wrong = library.prepare(attention.handle, ctypes.byref(args), ctypes.byref(prepared))
    assert refused(wrong) == ("QUERY", "MISALIGNED")
    assert refused(launch(ctypes.byref(prepared), None)) == ("PREPARED", "BAD_VALUE")


def test_nothing_to_do_can_be_prepared(launcher, library, attention) -> None:
    prepared = Prepared()
    args = attention_args(batch=0)
    assert library.prepare(attention.handle, ctypes.byref(args), ctypes.byref(prepared)) == 0
    assert library.launch_prepared(ctypes.byref(prepared), None) == 0
    assert not launcher.stand_in.launches


# ---- Devices


def test_a_device_of_another_architecture_is_refused(launcher) -> None:
    library = launcher.on(SimulatedDevice("sm_100a", 148))
    for name, args in (
        ("d128_causal_bf16", attention_args()),
        ("gemm_bf16_residual_sm90", gemm_args()),
    ):
        kernel = library.kernel(f"acme_{name}")
        assert refused(kernel.launch(ctypes.byref(args), None)) == ("DEVICE", "WRONG_DEVICE")
        assert refused(library.load(kernel.handle)) == ("DEVICE", "WRONG_DEVICE")


@pytest.mark.parametrize(
    ("arch", "runs"),
    [
        ("sm_100a", True),
        ("sm_103a", True),
        ("sm_107a", True),
        ("sm_101a", False),
        ("sm_90a", False),
        ("sm_110a", False),
        ("sm_120a", False),
    ],
)
def test_a_family_s_kernel_is_loaded_on_its_members_alone(launcher, arch, runs) -> None:
    library = launcher.on(SimulatedDevice(arch, 148))
    status = library.load(library.kernel("acme_fa4_d128_causal_bf16_sm100f").handle)
    if runs:
        assert status == 0
    else:
        assert refused(status) == ("DEVICE", "WRONG_DEVICE")
        assert "sm_100f (10.0, 10.3 or 10.7), sm_103a (10.3)" in library.words(status)


def test_without_a_context_the_words_say_what_to_call(launcher, library, attention) -> None:
    launcher.stand_in.set_current(None)
    status = attention.launch(ctypes.byref(attention_args()), None)
    assert "cudaSetDevice" in library.words(status)


def test_a_kernel_is_loaded_once_and_its_attribute_set_once_a_device(unused_launcher) -> None:
    launcher = unused_launcher
    on = [SimulatedDevice("sm_90a", 100 + i) for i in range(DEVICES_OF_A_COPY)]
    binding = launcher.on(on[0])
    kernel = binding.kernel("acme_d256_window_softcap_fp16")
    launcher.stand_in.reset()
    args = attention_args("d256_window_softcap_fp16")
    for _ in range(2):
        for device in on:
            assert launcher.on(device) is binding
            assert kernel.launch(ctypes.byref(args), None) == 0
    assert len(launcher.stand_in.launches) == 2 * len(on)
    assert len(launcher.stand_in.images) == 1
    settings = launcher.stand_in.settings
    assert [setting.attribute for setting in settings] == [8] * len(on)
    assert len({setting.device for setting in settings}) == len(on) > 1
    plan = shipped_plans()["d256_window_softcap_fp16"]
    assert {setting.value for setting in settings} == {plan.launch.dynamic_shared_bytes}


def test_load_does_what_a_first_launch_would(unused_launcher) -> None:
    launcher = unused_launcher
    library = launcher.on(SimulatedDevice("sm_90a", 31))
    kernel = library.kernel("acme_d64_dense_small_bf16")
    launcher.stand_in.reset()
    launcher.stand_in.fail("cuKernelGetFunction", OUT_OF_RESOURCES)
    assert library.load(kernel.handle) == DRIVER_ERROR + OUT_OF_RESOURCES
    assert library.load(kernel.handle) == 0
    assert len(launcher.stand_in.settings) == 1
    launcher.stand_in.reset()
    args = attention_args("d64_dense_small_bf16")
    assert kernel.launch(ctypes.byref(args), None) == 0
    assert not launcher.stand_in.images
    assert not launcher.stand_in.settings
