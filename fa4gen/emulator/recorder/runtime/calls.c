/* Devices, memory, streams, events and errors of the runtime interface. */
#include "runtime.h"

#include <string.h>

static __thread cudaError_t last;

cudaError_t keep(cudaError_t result)
{
    if (result && result != NOT_READY) last = result;
    return result;
}

cudaError_t begin(void)
{
    CUcontext context = NULL;
    CUresult result = cuInit(0);
    if (result) return result == NOT_INITIALIZED ? 35 : result; /* the driver is insufficient */
    if (cuCtxGetCurrent(&context) == SUCCESS && context) return SUCCESS;
    TRY(cuDevicePrimaryCtxRetain(&context, 0));
    return cuCtxSetCurrent(context);
}

/* FORWARD(name in the runtime, (its parameters), the driver's call) */
#define FORWARD(name, parameters, call)                                                            \
    API cudaError_t name parameters                                                                \
    {                                                                                              \
        BEGIN();                                                                                   \
        return keep(call);                                                                         \
    }
#define PTR(p) ((CUdeviceptr)(uintptr_t)(p))

API cudaError_t cudaGetLastError(void)
{
    cudaError_t result = last;
    last = SUCCESS;
    return result;
}

API cudaError_t cudaPeekAtLastError(void) { return last; }

API const char *cudaGetErrorName(cudaError_t error)
{
    const char *name = NULL;
    if (error == INVALID_CONFIGURATION) return "cudaErrorInvalidConfiguration";
    if (error == INVALID_SYMBOL) return "cudaErrorInvalidSymbol";
    if (error == INVALID_DEVICE_FUNCTION) return "cudaErrorInvalidDeviceFunction";
    return cuGetErrorName(error, &name) ? "unrecognized error code" : name;
}

API const char *cudaGetErrorString(cudaError_t error)
{
    const char *text = NULL;
    if (error == INVALID_CONFIGURATION) return "invalid configuration argument";
    if (error == INVALID_SYMBOL) return "invalid device symbol";
    if (error == INVALID_DEVICE_FUNCTION) return "invalid device function";
    return cuGetErrorString(error, &text) ? "unrecognized error code" : text;
}

/* devices */

API cudaError_t cudaGetDeviceCount(int *count)
{
    BEGIN();
    *count = 1;
    return SUCCESS;
}

API cudaError_t cudaGetDevice(int *device)
{
    BEGIN();
    *device = 0;
    return SUCCESS;
}

API cudaError_t cudaSetDevice(int device)
{
    BEGIN();
    return keep(device ? INVALID_DEVICE : SUCCESS);
}

FORWARD(cudaInitDevice, (int device, unsigned flags, unsigned more), ((void)flags, (void)more, cudaSetDevice(device)))
FORWARD(cudaSetDeviceFlags, (unsigned flags), ((void)flags, SUCCESS))
FORWARD(cudaDeviceSynchronize, (void), cuCtxSynchronize())
FORWARD(cudaDeviceReset, (void), SUCCESS)
FORWARD(cudaDeviceGetAttribute, (int *value, int attribute, int device),
        cuDeviceGetAttribute(value, attribute, device))
FORWARD(cudaDeviceGetLimit, (size_t *value, int limit), cuCtxGetLimit(value, limit))
FORWARD(cudaDeviceSetLimit, (int limit, size_t value), cuCtxSetLimit(limit, value))
FORWARD(cudaDeviceSetCacheConfig, (int config), ((void)config, SUCCESS))
FORWARD(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest), cuCtxGetStreamPriorityRange(least, greatest))
FORWARD(cudaDriverGetVersion, (int *version), cuDriverGetVersion(version))

API cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return SUCCESS;
}

/* cudaDeviceProp of CUDA 13: where each attribute of the driver's is; 8 bytes where negative */
API cudaError_t cudaGetDeviceProperties(unsigned char *to, int device)
{
    static const short places[][2] = {
        {8, -296},  {12, 304},  {10, 308},   {11, -312}, {1, 320},  {2, 324},   {3, 328},   {4, 332},
        {5, 336},   {6, 340},   {7, 344},    {9, -352},  {75, 360}, {76, 364},  {14, -368}, {51, -376},
        {16, 384},  {18, 388},  {19, 392},   {31, 560},  {32, 564}, {40, 584},  {41, 588},  {37, 592},
        {38, 596},  {108, 600}, {39, 604},   {78, 608},  {79, 612}, {80, 616},  {81, -624}, {82, 632},
        {83, 636},  {89, 656},  {90, 660},   {95, 668},  {97, -672}, {106, 688}, {111, -696}, {120, 748},
        {129, 752},
    };
    size_t at, total = 0;
    BEGIN();
    if (!to || device) return keep(to ? INVALID_DEVICE : INVALID_VALUE);
    memset(to, 0, 1008);
    cuDeviceGetName((char *)to, 256, device);
    cuDeviceGetUuid_v2(to + 256, device);
    cuDeviceTotalMem_v2(&total, device);
    memcpy(to + 288, &total, sizeof total);
    for (at = 0; at < sizeof places / sizeof *places; at++) {
        int value = 0, place = places[at][1];
        uint64_t wide;
        cuDeviceGetAttribute(&value, places[at][0], device);
        wide = (uint64_t)value;
        memcpy(to + (place < 0 ? -place : place), &wide, place < 0 ? 8 : 4);
    }
    return SUCCESS;
}

/* memory */

FORWARD(cudaMalloc, (void **to, size_t size), size ? cuMemAlloc_v2((CUdeviceptr *)to, size) : (*to = NULL, SUCCESS))
FORWARD(cudaMallocAsync, (void **to, size_t size, CUstream stream), ((void)stream, cudaMalloc(to, size)))
FORWARD(cudaMallocManaged, (void **to, size_t size, unsigned flags), ((void)flags, cudaMalloc(to, size)))
FORWARD(cudaMallocHost, (void **to, size_t size), cudaMalloc(to, size))
FORWARD(cudaHostAlloc, (void **to, size_t size, unsigned flags), ((void)flags, cudaMalloc(to, size)))
FORWARD(cudaMallocPitch, (void **to, size_t *pitch, size_t width, size_t height),
        cuMemAllocPitch_v2((CUdeviceptr *)to, pitch, width, height, 4))
FORWARD(cudaFree, (void *p), cuMemFree_v2(PTR(p)))
FORWARD(cudaFreeAsync, (void *p, CUstream stream), ((void)stream, cuMemFree_v2(PTR(p))))
FORWARD(cudaFreeHost, (void *p), cuMemFree_v2(PTR(p)))
FORWARD(cudaHostRegister, (void *p, size_t size, unsigned flags), cuMemHostRegister_v2(p, size, flags))
FORWARD(cudaHostUnregister, (void *p), cuMemHostUnregister(p))
FORWARD(cudaHostGetDevicePointer, (void **to, void *p, unsigned flags),
        cuMemHostGetDevicePointer_v2((CUdeviceptr *)to, p, flags))
FORWARD(cudaMemGetInfo, (size_t *left, size_t *total), cuMemGetInfo_v2(left, total))
FORWARD(cudaMemcpy, (void *to, const void *from, size_t size, int kind), ((void)kind, cuMemcpy(PTR(to), PTR(from), size)))
FORWARD(cudaMemcpyAsync, (void *to, const void *from, size_t size, int kind, CUstream stream),
        ((void)kind, (void)stream, cuMemcpy(PTR(to), PTR(from), size)))
FORWARD(cudaMemset, (void *to, int value, size_t size), cuMemsetD8_v2(PTR(to), (unsigned char)value, size))
FORWARD(cudaMemsetAsync, (void *to, int value, size_t size, CUstream stream),
        ((void)stream, cuMemsetD8_v2(PTR(to), (unsigned char)value, size)))
FORWARD(cudaMemset2D, (void *to, size_t pitch, int value, size_t width, size_t height),
        cuMemsetD2D8_v2(PTR(to), pitch, (unsigned char)value, width, height))

API cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                             size_t height, int kind)
{
    size_t row;
    (void)kind;
    BEGIN();
    for (row = 0; row < height; row++) {
        CUresult result = cuMemcpy(PTR(to) + row * to_pitch, PTR(from) + row * from_pitch, width);
        if (result) return keep(result);
    }
    return SUCCESS;
}

API cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                  size_t width, size_t height, int kind, CUstream stream)
{
    (void)stream;
    return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}

struct pointer_attributes { /* cudaPointerAttributes */
    int type, device;
    void *on_device, *on_host;
    long reserved[8];
};

API cudaError_t cudaPointerGetAttributes(struct pointer_attributes *to, const void *p)
{
    unsigned type = 0;
    BEGIN();
    memset(to, 0, sizeof *to);
    if (cuPointerGetAttribute(&type, 2, PTR(p)) == SUCCESS) {
        to->type = 2;
        to->on_device = (void *)(uintptr_t)p;
    } else {
        to->device = -2;
    }
    return SUCCESS;
}

/* streams and events */

FORWARD(cudaStreamCreate, (CUstream *to), cuStreamCreateWithPriority(to, 0, 0))
FORWARD(cudaStreamCreateWithFlags, (CUstream *to, unsigned flags), cuStreamCreateWithPriority(to, flags, 0))
FORWARD(cudaStreamCreateWithPriority, (CUstream *to, unsigned flags, int priority),
        cuStreamCreateWithPriority(to, flags, priority))
FORWARD(cudaStreamDestroy, (CUstream stream), cuStreamDestroy_v2(stream))
FORWARD(cudaStreamSynchronize, (CUstream stream), cuStreamSynchronize(stream))
FORWARD(cudaStreamQuery, (CUstream stream), cuStreamQuery(stream))
FORWARD(cudaStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags), cuStreamWaitEvent(stream, event, flags))
FORWARD(cudaStreamIsCapturing, (CUstream stream, int *status), cuStreamIsCapturing(stream, status))
FORWARD(cudaStreamGetFlags, (CUstream stream, unsigned *flags), cuStreamGetFlags(stream, flags))
FORWARD(cudaStreamGetPriority, (CUstream stream, int *priority), cuStreamGetPriority(stream, priority))
FORWARD(cudaLaunchHostFunc, (CUstream stream, void (*function)(void *), void *data),
        cuLaunchHostFunc(stream, function, data))
FORWARD(cudaEventCreate, (CUevent *to), cuEventCreate(to, 0))
FORWARD(cudaEventCreateWithFlags, (CUevent *to, unsigned flags), cuEventCreate(to, flags))
FORWARD(cudaEventDestroy, (CUevent event), cuEventDestroy_v2(event))
FORWARD(cudaEventRecord, (CUevent event, CUstream stream), cuEventRecord(event, stream))
FORWARD(cudaEventRecordWithFlags, (CUevent event, CUstream stream, unsigned flags),
        ((void)flags, cuEventRecord(event, stream)))
FORWARD(cudaEventQuery, (CUevent event), cuEventQuery(event))
FORWARD(cudaEventSynchronize, (CUevent event), cuEventSynchronize(event))
FORWARD(cudaEventElapsedTime, (float *to, CUevent start, CUevent end), cuEventElapsedTime_v2(to, start, end))

/* the driver's functions by name */

API cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **to, unsigned version,
                                                 unsigned long long flags, int *status)
{
    CUresult result;
    BEGIN();
    result = cuGetProcAddress_v2(name, to, (int)version, flags, status);
    return keep(result == NOT_FOUND && status ? SUCCESS : result); /* the status says it */
}

API cudaError_t cudaGetDriverEntryPoint(const char *name, void **to, unsigned long long flags, int *status)
{
    return cudaGetDriverEntryPointByVersion(name, to, 13000, flags, status);
}
