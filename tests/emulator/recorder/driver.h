/* What tests use of the CUDA driver interface, so that cuda.h is not needed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
typedef uint64_t CUdeviceptr;
typedef struct {
    int id;
    char pad[4];
    union {
        unsigned dim[3];
        char all[64];
    } value;
} CUlaunchAttribute;
typedef struct {
    unsigned grid[3], block[3], shared;
    void *stream;
    CUlaunchAttribute *attributes;
    unsigned count;
} CUlaunchConfig;

CUresult cuInit(unsigned);
CUresult cuDeviceGet(int *, int);
CUresult cuDeviceGetAttribute(int *, int, int);
CUresult cuDeviceGetName(char *, int, int);
CUresult cuDevicePrimaryCtxRetain(void **, int);
CUresult cuCtxSetCurrent(void *);
CUresult cuCtxSynchronize(void);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);
CUresult cuMemAllocPitch_v2(CUdeviceptr *, size_t *, size_t, size_t, unsigned);
CUresult cuMemFree_v2(CUdeviceptr);
CUresult cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t);
CUresult cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t);
CUresult cuMemsetD8_v2(CUdeviceptr, unsigned char, size_t);
CUresult cuMemsetD32_v2(CUdeviceptr, unsigned, size_t);
CUresult cuModuleLoad(void **, const char *);
CUresult cuModuleLoadData(void **, const void *);
CUresult cuModuleLoadDataEx(void **, const void *, unsigned, int *, void **);
CUresult cuModuleGetFunction(void **, void *, const char *);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *, size_t *, void *, const char *);
CUresult cuLibraryLoadFromFile(void **, const char *, int *, void **, unsigned, int *, void **, unsigned);
CUresult cuLibraryGetKernel(void **, void *, const char *);
CUresult cuFuncSetAttribute(void *, int, int);
CUresult cuFuncGetAttribute(int *, int, void *);
CUresult cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                        void **, void **);
CUresult cuLaunchKernelEx(const CUlaunchConfig *, void *, void **, void **);
CUresult cuTensorMapEncodeTiled(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *,
                                const uint32_t *, const uint32_t *, int, int, int, int);
CUresult cuTensorMapEncodeIm2col(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *,
                                 const int *, const int *, uint32_t, uint32_t, const uint32_t *, int, int,
                                 int, int);
CUresult cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);
CUresult cuGetErrorName(CUresult, const char **);
CUresult cuStreamCreate(void **, unsigned);
CUresult cuStreamDestroy(void *);
CUresult cuEventCreate(void **, unsigned);
CUresult cuEventDestroy(void *);
CUresult cuEventRecord(void *, void *);
CUresult cuStreamSynchronize(void *);
CUresult cuMemsetD32Async(CUdeviceptr, unsigned, size_t, void *);
CUresult cuMemcpyDtoHAsync_v2(void *, CUdeviceptr, size_t, void *);
CUresult cuStreamBeginCapture_v2(void *, int);
CUresult cuStreamEndCapture(void *, void **);
CUresult cuStreamIsCapturing(void *, int *);
CUresult cuGraphInstantiateWithFlags(void **, void *, uint64_t);
CUresult cuGraphLaunch(void *, void *);
CUresult cuGraphExecDestroy(void *);
CUresult cuGraphDestroy(void *);
CUresult cuMemGetAllocationGranularity(size_t *, const void *, int);
CUresult cuArrayCreate_v2(void **, const void *);

#define EXPECT(expected, call)                                                                     \
    do {                                                                                           \
        CUresult got_ = (call);                                                                    \
        if (got_ != (expected)) {                                                                  \
            fprintf(stderr, "line %d: %s gives %d, not %d\n", __LINE__, #call, got_, expected);    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define CHECK(call) EXPECT(0, call)
#define HOLDS(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #what);                             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static inline void begin(void)
{
    void *context;
    int device;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
}
