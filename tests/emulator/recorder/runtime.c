/* A host program on the runtime interface, registered as nvcc's code for the host does it. */
#include "driver.h"

typedef struct {
    unsigned x, y, z;
} dim3;
typedef struct {
    dim3 grid, block;
    size_t shared;
    void *stream;
    CUlaunchAttribute *attributes;
    unsigned count;
} config;

void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int);
int cudaMalloc(void **, size_t);
int cudaFree(void *);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaMemcpyFromSymbol(void *, const void *, size_t, size_t, int);
int cudaGetSymbolSize(size_t *, const void *);
int cudaGetDeviceCount(int *);
int cudaGetDeviceProperties(unsigned char *, int);
int cudaDeviceGetAttribute(int *, int, int);
int cudaFuncSetAttribute(const void *, int, int);
int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *);
int cudaLaunchKernelExC(const config *, const void *, void **);
int cudaDeviceSynchronize(void);
int cudaGetLastError(void);
const char *cudaGetErrorString(int);
int cudaGetDriverEntryPointByVersion(const char *, void **, unsigned, unsigned long long, int *);

static char ranks, stray, unknown[64], launches; /* their addresses stand for the kernels */

int main(int count, char **arguments)
{
    static char text[1 << 20];
    static unsigned char properties[1008];
    struct {
        int magic, version;
        const void *data;
        void *more;
    } wrapper = {0x466243b1, 1, text, NULL};
    int number, value, rank[128];
    int *out;
    size_t size;
    void *parameters[] = {&out}, *function, **handle;
    CUlaunchAttribute cluster = {.id = 4, .value.dim = {2, 1, 1}};
    config c = {{4, 1, 1}, {32, 1, 1}, 60000, NULL, &cluster, 1};
    FILE *file = fopen(arguments[count - 1], "r");
    HOLDS(file && fread(text, 1, sizeof text - 1, file) > 0);
    handle = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(handle, &ranks, &ranks, "ranks", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(handle, &stray, &stray, "stray", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(handle, &launches, &launches, "launches", 0, 4, 0, 0);
    CHECK(cudaGetDeviceCount(&number));
    HOLDS(number == 1);
    CHECK(cudaGetDeviceProperties(properties, 0));
    CHECK(cudaDeviceGetAttribute(&number, 16, 0));
    memcpy(&value, properties + 384, 4);
    HOLDS(number == 132 && value == number && strstr((char *)properties, "H100"));
    CHECK(cudaMalloc((void **)&out, sizeof rank));
    EXPECT(1, cudaLaunchKernelExC(&c, &ranks, parameters)); /* more shared memory than set */
    EXPECT(1, cudaGetLastError());
    CHECK(cudaGetLastError());
    EXPECT(9, cudaLaunchKernel(&ranks, (dim3){1, 1, 1}, (dim3){2000, 1, 1}, parameters, 0, NULL));
    EXPECT(98, cudaLaunchKernel(unknown, (dim3){1, 1, 1}, (dim3){32, 1, 1}, parameters, 0, NULL));
    HOLDS(!strcmp(cudaGetErrorString(9), "invalid configuration argument"));
    CHECK(cudaFuncSetAttribute(&ranks, 8, 60000));
    CHECK(cudaLaunchKernelExC(&c, &ranks, parameters));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(rank, out, sizeof rank, 2));
    for (number = 0; number < 128; number++) HOLDS(rank[number] == number / 32 % 2);
    CHECK(cudaGetSymbolSize(&size, &launches));
    CHECK(cudaMemcpyFromSymbol(&value, &launches, 4, 0, 2));
    HOLDS(size == 4 && value == 40);
    EXPECT(13, cudaGetSymbolSize(&size, unknown));
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, 0, &value));
    HOLDS(function && value == 0);
    CHECK(cudaFree(out));
    EXPECT(1, cudaFree(out));
    CHECK(cudaLaunchKernel(&stray, (dim3){1, 1, 1}, (dim3){32, 1, 1}, parameters, 0, NULL));
    EXPECT(700, cudaDeviceSynchronize());
    puts("right");
    return 0;
}
