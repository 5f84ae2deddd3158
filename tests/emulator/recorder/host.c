/* A host program on the driver interface: struct parameters, a tensor map, module variables. */
#include "driver.h"

struct problem {
    unsigned char map[128];
    CUdeviceptr out, bias;
    int rows;
    float factor;
} __attribute__((aligned(128)));

int main(int count, char **arguments)
{
    enum { ROWS = 20, BYTES = ROWS * 32 * 4 };
    static float source[ROWS][32], bias[32], out[ROWS][32];
    static struct problem problem = {.rows = ROWS, .factor = 2};
    uint64_t dims[] = {32, ROWS}, strides[] = {128};
    uint32_t box[] = {32, 8}, steps[] = {1, 1};
    void *module, *library, *function, *kernel, *stream, *event, *parameters[] = {&problem};
    CUdeviceptr memory, variable, ranks;
    size_t size;
    int launches, row, column, rank[4 * 32], smem = 40000;
    CUlaunchAttribute cluster = {.id = 4, .value.dim = {2, 1, 1}};
    CUlaunchConfig config = {{4, 1, 1}, {32, 1, 1}, 40000, NULL, &cluster, 1};
    HOLDS(count == 2);
    begin();
    CHECK(cuModuleLoad(&module, arguments[1]));
    CHECK(cuModuleGetFunction(&function, module, "scale"));
    CHECK(cuMemAlloc_v2(&memory, BYTES));
    CHECK(cuMemAlloc_v2(&problem.out, BYTES));
    CHECK(cuMemAlloc_v2(&problem.bias, sizeof bias));
    for (row = 0; row < ROWS; row++)
        for (column = 0; column < 32; column++) source[row][column] = (float)(row * 32 + column);
    for (column = 0; column < 32; column++) bias[column] = (float)column / 4;
    CHECK(cuMemcpyHtoD_v2(memory, source, BYTES));
    CHECK(cuMemcpyHtoD_v2(problem.bias, bias, sizeof bias));
    CHECK(cuMemsetD32_v2(problem.out, 0x7fc00000, BYTES / 4));
    CHECK(cuTensorMapEncodeTiled(problem.map, 7, 2, (void *)memory, dims, strides, box, steps, 0, 0, 2, 0));
    CHECK(cuLaunchKernel(function, 3, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
    CHECK(cuCtxSynchronize());
    CHECK(cuMemcpyDtoH_v2(out, problem.out, BYTES));
    CHECK(cuModuleGetGlobal_v2(&variable, &size, module, "launches"));
    HOLDS(size == 4);
    CHECK(cuMemcpyDtoH_v2(&launches, variable, 4));
    if (getenv("NOT_RUN")) {
        HOLDS(launches == 40);
        return 0;
    }
    for (row = 0; row < ROWS; row++)
        for (column = 0; column < 32; column++)
            HOLDS(out[row][column] == 2 * source[row][column] + bias[column]);
    HOLDS(launches == 43);
    /* again, with the variable as the host set it, and parameters in a buffer */
    launches = 100;
    CHECK(cuMemcpyHtoD_v2(variable, &launches, 4));
    size = sizeof problem;
    void *extra[] = {(void *)1, &problem, (void *)2, &size, NULL};
    CHECK(cuLaunchKernel(function, 3, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
    CHECK(cuMemcpyDtoH_v2(&launches, variable, 4));
    HOLDS(launches == 103);
    /* a cluster, through the library interface */
    CHECK(cuLibraryLoadFromFile(&library, arguments[1], NULL, NULL, 0, NULL, NULL, 0));
    CHECK(cuLibraryGetKernel(&kernel, library, "ranks"));
    CHECK(cuMemAlloc_v2(&ranks, sizeof rank));
    CHECK(cuFuncSetAttribute(kernel, 8, smem));
    parameters[0] = &ranks;
    CHECK(cuLaunchKernelEx(&config, kernel, parameters, NULL));
    CHECK(cuMemcpyDtoH_v2(rank, ranks, sizeof rank));
    for (row = 0; row < 4 * 32; row++) HOLDS(rank[row] == row / 32 % 2);

    /* by the names that the destructors had first */
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuStreamDestroy(stream));
    CHECK(cuEventCreate(&event, 0));
    CHECK(cuEventDestroy(event));
    CHECK(cuMemGetAllocationGranularity(&size, &config, 0));
    HOLDS(size == 2 << 20);
    puts("right");
    return 0;
}
