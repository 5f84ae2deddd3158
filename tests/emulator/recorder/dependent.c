/* A programmatic dependent launch: the kernel named last reads what the one named before writes. */
#include "driver.h"

int main(int count, char **arguments)
{
    void *module, *produce, *kernel, *parameters[2];
    CUdeviceptr values, out;
    CUlaunchAttribute early = {.id = 6, .value.dim = {1}};
    CUlaunchConfig config = {{1, 1, 1}, {32, 1, 1}, 0, NULL, &early, 1};
    int got[32], index;
    HOLDS(count == 4);
    begin();
    CHECK(cuModuleLoad(&module, arguments[1]));
    CHECK(cuModuleGetFunction(&produce, module, arguments[2]));
    CHECK(cuModuleGetFunction(&kernel, module, arguments[3]));
    CHECK(cuMemAlloc_v2(&values, 8192));
    CHECK(cuMemAlloc_v2(&out, sizeof got));
    CHECK(cuMemsetD8_v2(values, 0, 8192));
    parameters[0] = &values;
    parameters[1] = &out;
    CHECK(cuLaunchKernel(produce, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
    CHECK(cuLaunchKernelEx(&config, kernel, parameters, NULL));
    CHECK(cuMemcpyDtoH_v2(got, out, sizeof got));
    for (index = 0; index < 32; index++) HOLDS(got[index] == index + 1);
    return 0;
}
