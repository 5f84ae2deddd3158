/* Runs FFPA's forward of depth 512, which build.py compiled ahead of time, without CuTe DSL and
 * without Python's TVM FFI: what the host code that CuTe DSL made calls is answered by the CUDA
 * runtime here, and ffpa_forward packs its arguments. */
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <tvm/ffi/c_api.h>

enum { AXES = 4, TENSORS = 5, ARGUMENTS = 11 };

int __tvm_ffi_ffpa_fwd_dense(void *, const TVMFFIAny *, int32_t, TVMFFIAny *);
int __tvm_ffi_ffpa_fwd_causal(void *, const TVMFFIAny *, int32_t, TVMFFIAny *);

static void *stream_of_call;
static char message[512];

/* What the host code calls of TVM FFI. */
void *TVMFFIEnvGetStream(int32_t device_type, int32_t device) {
    (void)device_type, (void)device;
    return stream_of_call;
}
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *text) {
    snprintf(message, sizeof message, "%s: %s", kind, text);
}
void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int32_t count) {
    int at = snprintf(message, sizeof message, "%s: ", kind);
    for (int32_t part = 0; part < count && at < (int)sizeof message; ++part)
        at += snprintf(message + at, sizeof message - (size_t)at, "%s", parts[part]);
}

/* What it calls of CuTe DSL's runtime library. */
int cuda_dialect_init_library_once(void **library, int (*load)(void **),
                                   int (*prepare)(void **, int),
                                   void (*fail)(const char *, const char *)) {
    if (*library != NULL)
        return 0;
    void *loaded = NULL;
    int status = load(&loaded);
    if (status == 0 && prepare != NULL)
        status = prepare(&loaded, 0);
    if (status != 0) {
        fail("RuntimeError", "the module cannot be loaded");
        return status;
    }
    *library = loaded;
    return 0;
}
void cuda_dialect_unload_library_once(void **library) { *library = NULL; /* the process ends */ }
const char *cuda_dialect_get_error_name(int status) { return cudaGetErrorName(status); }
int _cudaGetDevice(int *device) { return cudaGetDevice(device); }
int _cudaSetDevice(int device) { return cudaSetDevice(device); }
int _cudaDeviceGetAttribute(int *value, int attribute, int device) {
    return cudaDeviceGetAttribute(value, (enum cudaDeviceAttr)attribute, device);
}
int _cudaLibraryLoadData(void **library, const void *data, void *a, void *b, unsigned c, void *d,
                         void *e, unsigned f) {
    (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
    return cudaLibraryLoadData((cudaLibrary_t *)library, data, NULL, NULL, 0, NULL, NULL, 0);
}
int _cudaLibraryGetKernel(void **kernel, void *library, const char *name) {
    return cudaLibraryGetKernel((cudaKernel_t *)kernel, (cudaLibrary_t)library, name);
}
int _cudaFuncSetAttribute(void *kernel, int attribute, int value) {
    return cudaFuncSetAttribute(kernel, (enum cudaFuncAttribute)attribute, value);
}
int _cudaKernelSetAttributeForDevice(void *kernel, int attribute, int value, int device) {
    return cudaKernelSetAttributeForDevice((cudaKernel_t)kernel, (enum cudaFuncAttribute)attribute,
                                           value, device);
}
int _cuKernelGetAttribute(int *value, int attribute, void *kernel, int device) {
    (void)device;
    struct cudaFuncAttributes found;
    int status = cudaFuncGetAttributes(&found, kernel);
    if (status != 0)
        return status;
    if (attribute != 1 /* CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES */)
        return 1;
    *value = (int)found.sharedSizeBytes;
    return 0;
}
int _cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void *kernel, void **arguments) {
    return cudaLaunchKernelExC(config, kernel, arguments);
}

const char *ffpa_error(void) { return message; }

/* Tensors are contiguous bf16 (batch, rows, heads, 512): query, key, value, out; then lse, float
 * (batch, heads, rows). Returns 0, or not, with ffpa_error(). */
int ffpa_forward(int causal, void *const addresses[TENSORS], int64_t batch, int64_t rows,
                 int64_t heads, int64_t depth, double scale, void *stream) {
    int64_t wide[AXES] = {batch, rows, heads, depth}, narrow[3] = {batch, heads, rows};
    int64_t wide_strides[AXES] = {rows * heads * depth, heads * depth, depth, 1};
    int64_t narrow_strides[3] = {heads * rows, rows, 1};
    DLTensor tensors[TENSORS];
    TVMFFIAny arguments[ARGUMENTS] = {{0}}, result = {0};
    for (int at = 0; at < TENSORS; ++at) {
        int is_lse = at == TENSORS - 1;
        tensors[at] = (DLTensor){
            .data = addresses[at],
            .device = {kDLCUDA, 0},
            .ndim = is_lse ? 3 : AXES,
            .dtype = is_lse ? (DLDataType){kDLFloat, 32, 1} : (DLDataType){kDLBfloat, 16, 1},
            .shape = is_lse ? narrow : wide,
            .strides = is_lse ? narrow_strides : wide_strides,
        };
        arguments[at].type_index = kTVMFFIDLTensorPtr;
        arguments[at].v_ptr = &tensors[at];
    }
    arguments[TENSORS].type_index = kTVMFFIFloat;
    arguments[TENSORS].v_float64 = scale; /* the rest is None */
    stream_of_call = stream;
    message[0] = 0;
    return (causal ? __tvm_ffi_ffpa_fwd_causal : __tvm_ffi_ffpa_fwd_dense)(NULL, arguments,
                                                                           ARGUMENTS, &result);
}
