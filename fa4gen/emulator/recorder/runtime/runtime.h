/* A stand-in for libcudart.so: the runtime interface's common functions over the driver's.
 *
 * NVIDIA's runtime library asks the driver for tables of functions that nobody documents, so it does
 * not run over the other stand-in. Types and numbers are those of CUDA 13.
 */
#ifndef FA4GEN_RUNTIME_H
#define FA4GEN_RUNTIME_H

#include "../driver/recorder.h"

typedef int cudaError_t; /* numbers of the driver's errors, but for those below */

enum {
    INVALID_CONFIGURATION = 9,
    INVALID_SYMBOL = 13,
    MISSING_CONFIGURATION = 52,
    INVALID_DEVICE_FUNCTION = 98
};

typedef struct {
    unsigned x, y, z;
} dim3;

struct launch_config { /* cudaLaunchConfig_t */
    dim3 grid, block;
    size_t shared;
    CUstream stream;
    void *attributes; /* as the driver's */
    unsigned count;
};

struct driver_config { /* CUlaunchConfig */
    dim3 grid, block;
    unsigned shared;
    CUstream stream;
    void *attributes;
    unsigned count;
};

CUresult cuInit(unsigned);
CUresult cuDriverGetVersion(int *);
CUresult cuDeviceGetName(char *, int, CUdevice);
CUresult cuDeviceGetUuid_v2(unsigned char *, CUdevice);
CUresult cuDeviceTotalMem_v2(size_t *, CUdevice);
CUresult cuDeviceGetAttribute(int *, int, CUdevice);
CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice);
CUresult cuCtxGetCurrent(CUcontext *);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuCtxSynchronize(void);
CUresult cuCtxGetLimit(size_t *, int);
CUresult cuCtxSetLimit(int, size_t);
CUresult cuCtxGetStreamPriorityRange(int *, int *);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);
CUresult cuMemAllocPitch_v2(CUdeviceptr *, size_t *, size_t, size_t, unsigned);
CUresult cuMemFree_v2(CUdeviceptr);
CUresult cuMemcpy(CUdeviceptr, CUdeviceptr, size_t);
CUresult cuMemGetInfo_v2(size_t *, size_t *);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *, void *, unsigned);
CUresult cuMemHostRegister_v2(void *, size_t, unsigned);
CUresult cuMemHostUnregister(void *);
CUresult cuMemsetD8_v2(CUdeviceptr, unsigned char, size_t);
CUresult cuMemsetD2D8_v2(CUdeviceptr, size_t, unsigned char, size_t, size_t);
CUresult cuPointerGetAttribute(void *, int, CUdeviceptr);
CUresult cuModuleLoadData(CUmodule *, const void *);
CUresult cuModuleUnload(CUmodule);
CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *, size_t *, CUmodule, const char *);
CUresult cuFuncGetAttribute(int *, int, CUfunction);
CUresult cuFuncSetAttribute(CUfunction, int, int);
CUresult cuLaunchKernelEx(const struct driver_config *, CUfunction, void **, void **);
CUresult cuLaunchHostFunc(CUstream, void (*)(void *), void *);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *, CUfunction, int, size_t, unsigned);
CUresult cuOccupancyMaxPotentialClusterSize(int *, CUfunction, const struct driver_config *);
CUresult cuOccupancyMaxActiveClusters(int *, CUfunction, const struct driver_config *);
CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *, CUfunction, int, int);
CUresult cuStreamCreateWithPriority(CUstream *, unsigned, int);
CUresult cuStreamDestroy_v2(CUstream);
CUresult cuStreamQuery(CUstream);
CUresult cuStreamSynchronize(CUstream);
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned);
CUresult cuStreamIsCapturing(CUstream, int *);
CUresult cuStreamGetFlags(CUstream, unsigned *);
CUresult cuStreamGetPriority(CUstream, int *);
CUresult cuEventCreate(CUevent *, unsigned);
CUresult cuEventDestroy_v2(CUevent);
CUresult cuEventRecord(CUevent, CUstream);
CUresult cuEventQuery(CUevent);
CUresult cuEventSynchronize(CUevent);
CUresult cuEventElapsedTime_v2(float *, CUevent, CUevent);
CUresult cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);
CUresult cuGetErrorName(CUresult, const char **);
CUresult cuGetErrorString(CUresult, const char **);

cudaError_t begin(void);          /* the primary context is there, or why not */
cudaError_t keep(cudaError_t);    /* for cudaGetLastError */
cudaError_t kernel_of(CUfunction *, const void *host);

#define BEGIN()                                                                                    \
    do {                                                                                           \
        cudaError_t begun_ = begin();                                                              \
        if (begun_) return keep(begun_);                                                           \
    } while (0)

#endif
