/* Wrong use of the driver interface is refused with the driver's own results. */
#include "driver.h"

int main(int count, char **arguments)
{
    uint64_t dims[] = {32, 8}, strides[] = {128};
    uint32_t box[] = {32, 8}, wide[] = {512, 8}, steps[] = {1, 1};
    unsigned char map[128] __attribute__((aligned(64)));
    void *module, *function, *stray, *context, *pointer, *parameters[1];
    char log[200] = "", value[64];
    int options[] = {5, 6}, status, number;
    void *values[] = {log, (void *)sizeof log};
    const char *name;
    CUdeviceptr memory, small;
    size_t pitch;
    CUlaunchAttribute cluster = {.id = 4, .value.dim = {3, 1, 1}};
    CUlaunchConfig config = {{4, 1, 1}, {32, 1, 1}, 0, NULL, &cluster, 1};
    HOLDS(count == 2);
    EXPECT(3, cuDeviceGet(&number, 0));
    EXPECT(3, cuMemAlloc_v2(&memory, 4));
    CHECK(cuInit(0));
    EXPECT(101, cuDeviceGet(&number, 1));
    EXPECT(201, cuMemAlloc_v2(&memory, 4));
    EXPECT(201, cuModuleLoad(&module, arguments[1]));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuDeviceGetAttribute(&number, 75, 0));
    HOLDS(number == 9);
    EXPECT(1, cuDeviceGetAttribute(&number, 4000, 0));
    CHECK(cuDeviceGetName(value, sizeof value, 0));
    HOLDS(strstr(value, "H100"));

    EXPECT(1, cuMemAlloc_v2(&memory, 0));
    EXPECT(2, cuMemAlloc_v2(&memory, (size_t)1 << 50));
    EXPECT(2, cuMemAllocPitch_v2(&memory, &pitch, (size_t)1 << 40, ((size_t)1 << 24) + 1, 4));
    EXPECT(2, cuMemAllocPitch_v2(&memory, &pitch, ~(size_t)0, 1, 4));
    CHECK(cuMemAlloc_v2(&memory, 4096));
    CHECK(cuMemAlloc_v2(&small, 16));
    EXPECT(1, cuMemcpyHtoD_v2(small, map, 17));
    EXPECT(1, cuMemcpyDtoH_v2(map, small + 8, 9));
    EXPECT(1, cuMemcpyHtoD_v2((CUdeviceptr)(uintptr_t)value, map, 4));
    EXPECT(1, cuMemcpyHtoD_v2(small + 8, map, ~(size_t)0 - 4));
    EXPECT(1, cuMemsetD32_v2(small, 0, (size_t)1 << 62));
    EXPECT(1, cuMemFree_v2(small + 8));
    CHECK(cuMemFree_v2(small));
    EXPECT(1, cuMemFree_v2(small));
    EXPECT(1, cuMemsetD8_v2(small, 0, 4));

    EXPECT(301, cuModuleLoad(&module, "nowhere.ptx"));
    EXPECT(218, cuModuleLoadDataEx(&module, ".version 8.0\n.target sm_90a\nnonsense", 2, options, values));
    HOLDS(strstr(log, "line 3"));
    EXPECT(209, cuModuleLoadData(&module, ".version 8.6\n.target sm_100a\n.address_size 64\n"));
    CHECK(cuModuleLoad(&module, arguments[1]));
    EXPECT(500, cuModuleGetFunction(&function, module, "missing"));
    EXPECT(500, cuModuleGetGlobal_v2(&memory, NULL, module, "missing"));
    CHECK(cuModuleGetFunction(&function, module, "ranks"));
    CHECK(cuModuleGetFunction(&stray, module, "stray"));
    CHECK(cuFuncGetAttribute(&number, 0, stray));
    HOLDS(number == 64);

    parameters[0] = &memory;
    EXPECT(1, cuLaunchKernel(function, 1, 1, 1, 1025, 1, 1, 0, NULL, parameters, NULL));
    EXPECT(1, cuLaunchKernel(function, 0, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
    EXPECT(1, cuLaunchKernel(function, 1, 1, 1, 32, 1, 65, 0, NULL, parameters, NULL));
    EXPECT(1, cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 49153, NULL, parameters, NULL));
    EXPECT(1, cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    EXPECT(1, cuFuncSetAttribute(function, 8, 232449));
    EXPECT(701, cuLaunchKernel(stray, 1, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL));
    EXPECT(400, cuLaunchKernel(NULL, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
    EXPECT(912, cuLaunchKernelEx(&config, function, parameters, NULL));
    cluster.value.dim[0] = config.grid[0] = 16;
    EXPECT(912, cuLaunchKernelEx(&config, function, parameters, NULL));

    EXPECT(1, cuTensorMapEncodeTiled(map, 7, 6, (void *)memory, dims, strides, box, steps, 0, 0, 0, 0));
    EXPECT(1, cuTensorMapEncodeTiled(map, 7, 2, (void *)memory, dims, strides, wide, steps, 0, 0, 0, 0));
    EXPECT(1, cuTensorMapEncodeTiled(map, 7, 2, (void *)memory, dims, strides, box, steps, 0, 2, 0, 0));
    EXPECT(1, cuTensorMapEncodeTiled(NULL, 7, 2, (void *)memory, dims, strides, box, steps, 0, 0, 0, 0));
    EXPECT(1, cuTensorMapEncodeTiled(map, 7, 2, (void *)(memory + 8), dims, strides, box, steps, 0, 0, 0, 0));
    CHECK(cuTensorMapEncodeTiled(map, 7, 2, (void *)memory, dims, strides, box, steps, 0, 3, 0, 0));
    uint64_t sizes[] = {32, 6, 4}, apart[] = {128, 768};
    uint32_t every[] = {1, 1, 1};
    int low[] = {-1}, high[] = {-2}, beyond[] = {-8};
    CHECK(cuTensorMapEncodeIm2col(map, 7, 3, (void *)memory, sizes, apart, low, high, 32, 16, every, 0, 3, 0, 0));
    HOLDS(map[8] & 1); /* the mark of an im2col map; fifteen pixels more than one */
    HOLDS(map[60] == 15 && map[56] == 0xff && map[58] == 0xfe);
    EXPECT(1, cuTensorMapEncodeIm2col(map, 7, 3, (void *)memory, sizes, apart, low, beyond, 32, 16, every, 0, 3, 0, 0));
    EXPECT(1, cuTensorMapEncodeIm2col(map, 7, 2, (void *)memory, sizes, apart, low, high, 32, 16, every, 0, 3, 0, 0));
    EXPECT(1, cuTensorMapEncodeIm2col(map, 7, 3, (void *)memory, sizes, apart, NULL, high, 32, 16, every, 0, 3, 0, 0));

    EXPECT(500, cuGetProcAddress_v2("cuNothing", &pointer, 13000, 0, &status));
    HOLDS(status == 1 && !pointer);
    CHECK(cuGetProcAddress_v2("cuMemAlloc", &pointer, 12000, 0, &status));
    HOLDS(status == 0 && pointer == (void *)cuMemAlloc_v2);
    EXPECT(801, cuArrayCreate_v2(NULL, NULL));
    CHECK(cuGetErrorName(701, &name));
    HOLDS(!strcmp(name, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"));
    EXPECT(1, cuGetErrorName(12345, &name));

    /* what a kernel does wrong shows in the next call that waits for it, and stays */
    CHECK(cuLaunchKernel(stray, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
    EXPECT(700, cuCtxSynchronize());
    EXPECT(700, cuMemcpyDtoH_v2(map, memory, 4));
    puts("refused");
    return 0;
}
