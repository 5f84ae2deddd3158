/* The one device, its context, streams and events, which have nothing to wait for. */
#define _GNU_SOURCE
#include "recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct context {
    int created;
};

struct event {
    struct timespec when;
};

static struct context primary;
static int retained;
static __thread CUcontext stack[16];
static __thread int depth;

CUresult require_context(void)
{
    TRY(ready());
    return depth && stack[depth - 1] ? SUCCESS : INVALID_CONTEXT;
}

static CUresult first_device(CUdevice device)
{
    TRY(ready());
    return device ? INVALID_DEVICE : SUCCESS;
}

API CUresult cuDeviceGetCount(int *count)
{
    TRY(ready());
    if (!count) return INVALID_VALUE;
    *count = 1;
    return SUCCESS;
}

API CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    TRY(ready());
    if (!device) return INVALID_VALUE;
    if (ordinal) return INVALID_DEVICE;
    *device = 0;
    return SUCCESS;
}

API CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    TRY(first_device(device));
    if (!name || size < 1) return INVALID_VALUE;
    snprintf(name, (size_t)size, "%s", device_name);
    return SUCCESS;
}

API CUresult cuDeviceGetUuid_v2(unsigned char uuid[16], CUdevice device)
{
    TRY(first_device(device));
    memcpy(uuid, "fa4gen-recorder", 16);
    return SUCCESS;
}

API CUresult cuDeviceGetUuid(unsigned char uuid[16], CUdevice device)
{
    return cuDeviceGetUuid_v2(uuid, device);
}

API CUresult cuDeviceGetPCIBusId(char *id, int size, CUdevice device)
{
    TRY(first_device(device));
    snprintf(id, (size_t)size, "0000:00:00.0");
    return SUCCESS;
}

API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    TRY(first_device(device));
    *bytes = memory_size;
    return SUCCESS;
}

API CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    TRY(first_device(device));
    if (!value || attribute < 1 || attribute >= MAX_ATTRIBUTE || !device_has[attribute])
        return INVALID_VALUE;
    *value = device_attribute[attribute];
    return SUCCESS;
}

API CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    TRY(cuDeviceGetAttribute(major, 75, device));
    return cuDeviceGetAttribute(minor, 76, device);
}

API CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    (void)device, (void)peer;
    TRY(ready());
    *can = 0;
    return SUCCESS;
}

API CUresult cuDeviceGetDefaultMemPool(void **pool, CUdevice device)
{
    TRY(first_device(device));
    *pool = &primary;
    return SUCCESS;
}

API CUresult cuDeviceGetMemPool(void **pool, CUdevice device)
{
    return cuDeviceGetDefaultMemPool(pool, device);
}

API CUresult cuMemPoolSetAttribute(void *pool, int attribute, void *value)
{
    (void)pool, (void)attribute, (void)value;
    return ready();
}

API CUresult cuMemPoolTrimTo(void *pool, size_t bytes)
{
    (void)pool, (void)bytes;
    return ready();
}

/* contexts */

API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    TRY(first_device(device));
    if (!context) return INVALID_VALUE;
    retained++;
    *context = &primary;
    return SUCCESS;
}

API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    TRY(first_device(device));
    if (!retained) return INVALID_CONTEXT;
    retained--;
    return SUCCESS;
}

API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) { return first_device(device); }

API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
    (void)flags;
    return first_device(device);
}

API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    TRY(first_device(device));
    if (flags) *flags = 0;
    if (active) *active = retained > 0;
    return SUCCESS;
}

API CUresult cuCtxSetCurrent(CUcontext context)
{
    TRY(ready());
    if (!depth) depth = 1;
    stack[depth - 1] = context;
    return SUCCESS;
}

API CUresult cuCtxGetCurrent(CUcontext *context)
{
    TRY(ready());
    if (!context) return INVALID_VALUE;
    *context = depth ? stack[depth - 1] : NULL;
    return SUCCESS;
}

API CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    TRY(ready());
    if (!context || depth == 16) return INVALID_CONTEXT;
    stack[depth++] = context;
    return SUCCESS;
}

API CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    TRY(ready());
    if (!depth) return INVALID_CONTEXT;
    depth--;
    if (context) *context = stack[depth];
    return SUCCESS;
}

API CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    (void)flags;
    TRY(first_device(device));
    if (!context) return INVALID_VALUE;
    *context = calloc(1, sizeof(struct context));
    return cuCtxPushCurrent_v2(*context);
}

API CUresult cuCtxCreate_v3(CUcontext *context, void *affinity, int n, unsigned flags, CUdevice device)
{
    (void)affinity, (void)n;
    return cuCtxCreate_v2(context, flags, device);
}

API CUresult cuCtxCreate_v4(CUcontext *context, void *parameters, unsigned flags, CUdevice device)
{
    (void)parameters;
    return cuCtxCreate_v2(context, flags, device);
}

API CUresult cuCtxDestroy_v2(CUcontext context)
{
    TRY(ready());
    if (!context || context == &primary) return INVALID_CONTEXT;
    if (depth && stack[depth - 1] == context) depth--;
    free(context);
    return SUCCESS;
}

API CUresult cuCtxGetDevice(CUdevice *device)
{
    TRY(require_context());
    *device = 0;
    return SUCCESS;
}

API CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
    (void)context;
    *device = 0;
    return ready();
}

API CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version)
{
    (void)context;
    *version = 13000;
    return ready();
}

API CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
{
    (void)context;
    *id = 1;
    return ready();
}

API CUresult cuCtxGetFlags(unsigned *flags)
{
    *flags = 0;
    return require_context();
}

API CUresult cuCtxSetFlags(unsigned flags)
{
    (void)flags;
    return require_context();
}

API CUresult cuCtxGetLimit(size_t *value, int limit)
{
    static const size_t limits[] = {1024, 1 << 20, 8 << 20};
    TRY(require_context());
    if (!value || limit < 0) return INVALID_VALUE;
    *value = limit < 3 ? limits[limit] : 128;
    return SUCCESS;
}

API CUresult cuCtxSetLimit(int limit, size_t value)
{
    (void)limit, (void)value;
    return require_context();
}

API CUresult cuCtxSetCacheConfig(int value)
{
    (void)value;
    return require_context();
}

API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    TRY(require_context());
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return SUCCESS;
}

API CUresult cuCtxSynchronize(void) { return require_context(); }

API CUresult cuCtxSynchronize_v2(CUcontext context)
{
    (void)context;
    return ready();
}

/* streams */

API CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    TRY(require_context());
    if (!stream) return INVALID_VALUE;
    *stream = calloc(1, sizeof **stream);
    (*stream)->flags = flags;
    (*stream)->priority = priority;
    return SUCCESS;
}

API CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

API CUresult cuStreamDestroy_v2(CUstream stream)
{
    TRY(ready());
    if (!stream) return INVALID_HANDLE;
    free(stream);
    return SUCCESS;
}

/* the first name, which some programs look up; the same holds for events */
API CUresult cuStreamDestroy(CUstream stream) { return cuStreamDestroy_v2(stream); }

static int built_in(CUstream stream) { return (uintptr_t)stream < 3; }

API CUresult cuStreamGetFlags(CUstream stream, unsigned *flags)
{
    *flags = built_in(stream) ? 0 : stream->flags;
    return require_context();
}

API CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
    *priority = built_in(stream) ? 0 : stream->priority;
    return require_context();
}

API CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
    *id = (uintptr_t)stream;
    return require_context();
}

API CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    (void)stream;
    return cuCtxGetCurrent(context);
}

API CUresult cuStreamGetDevice(CUstream stream, CUdevice *device)
{
    (void)stream;
    return cuCtxGetDevice(device);
}

API CUresult cuStreamQuery(CUstream stream)
{
    if (is_captured(stream)) return CAPTURE_UNSUPPORTED;
    return require_context();
}

API CUresult cuStreamSynchronize(CUstream stream)
{
    if (is_captured(stream)) return CAPTURE_UNSUPPORTED;
    return require_context();
}

API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    (void)flags;
    TRY(not_captured(stream, "cuStreamWaitEvent on a captured stream"));
    return event ? require_context() : INVALID_HANDLE;
}

API CUresult cuThreadExchangeStreamCaptureMode(int *mode)
{
    static __thread int current;
    int old = current;
    if (!mode) return INVALID_VALUE;
    current = *mode;
    *mode = old;
    return ready();
}

API CUresult cuLaunchHostFunc(CUstream stream, void (*function)(void *), void *data)
{
    TRY(not_captured(stream, "cuLaunchHostFunc on a captured stream"));
    TRY(require_context());
    if (!function) return INVALID_VALUE;
    function(data);
    return SUCCESS;
}

/* events */

API CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    (void)flags;
    TRY(require_context());
    if (!event) return INVALID_VALUE;
    *event = calloc(1, sizeof **event);
    return SUCCESS;
}

API CUresult cuEventDestroy_v2(CUevent event)
{
    TRY(ready());
    if (!event) return INVALID_HANDLE;
    free(event);
    return SUCCESS;
}

API CUresult cuEventDestroy(CUevent event) { return cuEventDestroy_v2(event); }

API CUresult cuEventRecord(CUevent event, CUstream stream)
{
    TRY(not_captured(stream, "cuEventRecord on a captured stream"));
    TRY(require_context());
    if (!event) return INVALID_HANDLE;
    clock_gettime(CLOCK_MONOTONIC, &event->when);
    return SUCCESS;
}

API CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
    (void)flags;
    return cuEventRecord(event, stream);
}

API CUresult cuEventQuery(CUevent event) { return event ? require_context() : INVALID_HANDLE; }

API CUresult cuEventSynchronize(CUevent event) { return event ? require_context() : INVALID_HANDLE; }

API CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)
{
    TRY(ready());
    if (!milliseconds || !start || !end) return INVALID_HANDLE;
    *milliseconds = (float)((double)(end->when.tv_sec - start->when.tv_sec) * 1e3 +
                            (double)(end->when.tv_nsec - start->when.tv_nsec) * 1e-6);
    return SUCCESS;
}

API CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    return cuEventElapsedTime_v2(milliseconds, start, end);
}
