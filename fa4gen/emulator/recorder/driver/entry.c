/* cuGetProcAddress, names of errors, and functions that only say that they are missing. */
#include "recorder.h"

#include <stdio.h>
#include <string.h>

struct entry {
    const char *name; /* without _v2 */
    void *function;
    int version; /* of the interface: 2 for _v2 */
};

#define MISSING(name)                                                                              \
    API CUresult name(void)                                                                        \
    {                                                                                              \
        note(#name);                                                                               \
        return NOT_SUPPORTED;                                                                      \
    }

/* written by build.py: functions of the driver that are missing here, and the table of all */
#include "entries.inc"

/* The versions of the interface that CUDA has had, by when: the newest that a program may know. */
static int newest(const char *name, int cuda)
{
    if (!strcmp(name, "cuCtxCreate")) return cuda >= 13000 ? 4 : 2;
    if (!strcmp(name, "cuStreamGetCaptureInfo")) return cuda >= 13000 ? 3 : 2;
    if (!strcmp(name, "cuCtxGetDevice") || !strcmp(name, "cuCtxSynchronize")) return cuda >= 13010 ? 2 : 1;
    return 99;
}

API CUresult cuGetProcAddress_v2(const char *name, void **function, int cuda, uint64_t flags, int *status)
{
    const struct entry *best = NULL;
    size_t at;
    int most;
    (void)flags;
    if (!name || !function) return INVALID_VALUE;
    *function = NULL;
    most = newest(name, cuda);
    for (at = 0; at < sizeof entries / sizeof *entries; at++) {
        const struct entry *one = entries + at;
        if (!strcmp(one->name, name) && one->version <= most && (!best || one->version > best->version))
            best = one;
    }
    if (status) *status = best ? 0 : 1; /* CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND */
    if (!best) return NOT_FOUND;
    *function = best->function;
    return SUCCESS;
}

API CUresult cuGetProcAddress(const char *name, void **function, int cuda, uint64_t flags)
{
    return cuGetProcAddress_v2(name, function, cuda, flags, NULL);
}

/* Tables of functions without a name, which nobody documents. */
API CUresult cuGetExportTable(const void **table, const unsigned char *id)
{
    char text[80] = "cuGetExportTable of ";
    unsigned at, end = (unsigned)strlen(text);
    if (!table || !id) return INVALID_VALUE;
    *table = NULL;
    for (at = 0; at < 16; at++) end += (unsigned)snprintf(text + end, 3, "%02x", id[at]);
    note(text);
    return NOT_FOUND;
}

static const struct {
    CUresult code;
    const char *name, *text;
} errors[] = {
    {SUCCESS, "CUDA_SUCCESS", "no error"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {301, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {INVALID_CLUSTER_SIZE, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "cluster misconfiguration"},
    {UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static CUresult describe(CUresult code, const char **text, int name)
{
    size_t at;
    if (!text) return INVALID_VALUE;
    *text = NULL;
    for (at = 0; at < sizeof errors / sizeof *errors; at++)
        if (errors[at].code == code) *text = name ? errors[at].name : errors[at].text;
    return *text ? SUCCESS : INVALID_VALUE;
}

API CUresult cuGetErrorName(CUresult code, const char **text) { return describe(code, text, 1); }
API CUresult cuGetErrorString(CUresult code, const char **text) { return describe(code, text, 0); }
