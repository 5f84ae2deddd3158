/* What the Python adapter asks of the driver beside the launcher; linked with the stand-in's parts. */
#include "standin.h"

#include <stdlib.h>

#define MORE_CALLS 256

static struct {
    uint64_t stream, id;
} capture;
static int mode = 0, depth = 0;
static uint64_t allocated = 0x700000000000;
static int pushed[MORE_CALLS];

void standin_set_thread(int device);
void standin_set_captured(uint64_t stream);

/* Streams are captured from now on as the graph of that number; stream 0 ends it. */
API void more_set_capture(uint64_t stream, uint64_t id) {
    capture.stream = stream;
    capture.id = id;
    standin_set_captured(stream);
}

API int more_depth(void) { return depth; }

API int more_mode(void) { return mode; }

API CUresult cuDevicePrimaryCtxRetain(void **context, CUdevice device) {
    *context = (void *)(uintptr_t)(device + 1);
    return SUCCESS;
}

API CUresult cuCtxPushCurrent_v2(void *context) {
    if (depth == MORE_CALLS) return INVALID_VALUE;
    pushed[depth++] = current_device();
    standin_set_thread((int)(uintptr_t)context - 1);
    return SUCCESS;
}

API CUresult cuCtxPopCurrent_v2(void **context) {
    if (!depth) return INVALID_CONTEXT;
    *context = (void *)(uintptr_t)(current_device() + 1);
    standin_set_thread(pushed[--depth]);
    return SUCCESS;
}

API CUresult cuThreadExchangeStreamCaptureMode(int *exchanged) {
    int before = mode;
    mode = *exchanged;
    *exchanged = before;
    return SUCCESS;
}

/* Not while a graph is being captured, unless the thread's mode is relaxed. */
API CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
    if (capture.stream && mode != 2) return 900; /* CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED */
    *address = allocated;
    allocated += (bytes + 511) / 512 * 512;
    return SUCCESS;
}

API CUresult cuStreamSynchronize(void *stream) {
    return (uint64_t)(uintptr_t)stream == capture.stream ? 900 : SUCCESS;
}

API CUresult cuStreamGetCaptureInfo_v2(void *stream, int *status, uint64_t *id, void *graph,
                                       void *dependencies, void *count) {
    if (graph || dependencies || count) return INVALID_VALUE;
    *status = stream && (uint64_t)(uintptr_t)stream == capture.stream;
    if (*status) *id = capture.id;
    return SUCCESS;
}

API CUresult cuStreamGetId(void *stream, uint64_t *id) {
    if ((uint64_t)(uintptr_t)stream == capture.stream) return 900;
    *id = (uint64_t)(uintptr_t)stream + 7;
    return SUCCESS;
}

API CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr address) {
    if (attribute != 9 || !address) return INVALID_VALUE;
    *(int *)value = 0;
    return SUCCESS;
}
