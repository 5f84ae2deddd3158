/* A graph of a fill and two launches, captured, replayed, and what cannot be captured. */
#include "driver.h"

int main(int count, char **arguments)
{
    enum { NOT_SUPPORTED = 801, CAPTURE_UNSUPPORTED = 900, ILLEGAL_STATE = 401 };
    void *module, *produce, *patient, *stream, *graph, *executable, *event, *parameters[2];
    CUdeviceptr values, out;
    int got[64], index, status, round;
    HOLDS(count == 2);
    begin();
    CHECK(cuModuleLoad(&module, arguments[1]));
    CHECK(cuModuleGetFunction(&produce, module, "produce"));
    CHECK(cuModuleGetFunction(&patient, module, "patient"));
    CHECK(cuMemAlloc_v2(&values, 8192));
    CHECK(cuMemAlloc_v2(&out, sizeof got));
    CHECK(cuMemsetD8_v2(values, 0, 8192));
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuEventCreate(&event, 0));
    EXPECT(CAPTURE_UNSUPPORTED, cuStreamBeginCapture_v2(NULL, 0));
    EXPECT(ILLEGAL_STATE, cuStreamEndCapture(stream, &graph));
    CHECK(cuStreamBeginCapture_v2(stream, 0));
    EXPECT(ILLEGAL_STATE, cuStreamBeginCapture_v2(stream, 0));
    CHECK(cuStreamIsCapturing(stream, &status));
    HOLDS(status == 1);
    parameters[0] = &values;
    parameters[1] = &out;
    CHECK(cuMemsetD32Async(out, 7, 64, stream));
    CHECK(cuLaunchKernel(produce, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
    CHECK(cuLaunchKernel(patient, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
    /* what is refused leaves the capture as it is */
    EXPECT(1, cuLaunchKernel(produce, 0, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
    EXPECT(NOT_SUPPORTED, cuMemcpyDtoHAsync_v2(got, out, sizeof got, stream));
    EXPECT(NOT_SUPPORTED, cuEventRecord(event, stream));
    EXPECT(CAPTURE_UNSUPPORTED, cuStreamSynchronize(stream));
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuStreamIsCapturing(stream, &status));
    HOLDS(status == 0);
    CHECK(cuMemcpyDtoH_v2(got, values, sizeof got)); /* nothing ran yet */
    HOLDS(got[0] == 0);
    CHECK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    CHECK(cuGraphDestroy(graph));
    parameters[0] = parameters[1] = NULL; /* they were copied */
    for (round = 0; round < 2; round++) {
        CHECK(cuMemsetD8_v2(values, 0, 8192));
        CHECK(cuMemsetD8_v2(out, 0x55, sizeof got));
        CHECK(cuGraphLaunch(executable, stream));
        CHECK(cuStreamSynchronize(stream));
        CHECK(cuMemcpyDtoH_v2(got, out, sizeof got));
        for (index = 0; index < 64; index++) HOLDS(got[index] == (index < 32 ? index + 1 : 7));
    }
    EXPECT(1, cuGraphLaunch(NULL, stream));
    CHECK(cuGraphExecDestroy(executable));
    return 0;
}
