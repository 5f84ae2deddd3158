/* What nvcc makes of kernels and variables in host code: registration, and launches by address. */
#include "runtime.h"

#include <stdlib.h>

struct image { /* what a __cudaRegisterFatBinary gave */
    const void *data;
    CUmodule module;
    cudaError_t error;
    int loaded;
};

struct symbol {
    struct image *image;
    const void *host;
    const char *name;
};

static struct symbol *symbols;
static size_t symbol_count;
static __thread struct {
    dim3 grid, block;
    size_t shared;
    void *stream;
} calls[8];
static __thread int call_depth;

API void **__cudaRegisterFatBinary(void *wrapper)
{
    struct image *image = calloc(1, sizeof *image);
    image->data = wrapper;
    return (void **)image;
}

API void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
API void __cudaUnregisterFatBinary(void **handle) { (void)handle; }

API char __cudaInitModule(void **handle)
{
    (void)handle;
    return 1;
}

static void remember(void **handle, const void *host, const char *name)
{
    symbols = realloc(symbols, (symbol_count + 1) * sizeof *symbols);
    if (!symbols) abort();
    symbols[symbol_count++] = (struct symbol){(struct image *)handle, host, name};
}

API void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit,
                                void *tid, void *bid, void *block, void *grid, int *size)
{
    (void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)size;
    remember(handle, host, name);
}

API void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext, size_t size,
                           int constant, int global)
{
    (void)device, (void)ext, (void)size, (void)constant, (void)global;
    remember(handle, host, name);
}

static cudaError_t find(const struct symbol **found, const void *host)
{
    size_t at;
    struct image *image;
    for (at = 0; at < symbol_count && symbols[at].host != host; at++) {}
    if (at == symbol_count) return INVALID_SYMBOL;
    image = symbols[at].image;
    if (!image->loaded) {
        image->loaded = 1;
        image->error = cuModuleLoadData(&image->module, image->data);
    }
    *found = symbols + at;
    return image->error;
}

cudaError_t kernel_of(CUfunction *to, const void *host)
{
    const struct symbol *symbol;
    uint32_t at;
    cudaError_t result;
    /* a handle of __cudaGetKernel is as good as the address of the host's function */
    for (at = 0; at < symbol_count && symbols[at].host != host; at++) {}
    if (at == symbol_count) {
        *to = (CUfunction)(uintptr_t)host;
        return host && (*to)->magic == FUNCTION_MAGIC ? SUCCESS : INVALID_DEVICE_FUNCTION;
    }
    result = find(&symbol, host);
    return result ? result : cuModuleGetFunction(to, symbol->image->module, symbol->name);
}

static cudaError_t variable_of(CUdeviceptr *address, size_t *size, const void *host)
{
    const struct symbol *symbol;
    BEGIN();
    TRY(find(&symbol, host));
    return cuModuleGetGlobal_v2(address, size, symbol->image->module, symbol->name) ? INVALID_SYMBOL : SUCCESS;
}

API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream)
{
    if (call_depth == 8) return 1;
    calls[call_depth].grid = grid;
    calls[call_depth].block = block;
    calls[call_depth].shared = shared;
    calls[call_depth++].stream = stream;
    return 0;
}

API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    if (!call_depth) return MISSING_CONFIGURATION;
    call_depth--;
    *grid = calls[call_depth].grid;
    *block = calls[call_depth].block;
    *shared = calls[call_depth].shared;
    *(void **)stream = calls[call_depth].stream;
    return SUCCESS;
}

API cudaError_t cudaLaunchKernelExC(const struct launch_config *c, const void *host, void **parameters)
{
    struct driver_config config;
    CUfunction function;
    cudaError_t result;
    uint64_t threads;
    BEGIN();
    if (!c) return keep(INVALID_VALUE);
    result = kernel_of(&function, host);
    if (result) return keep(result);
    threads = (uint64_t)c->block.x * c->block.y * c->block.z;
    if (!threads || threads > 1024 || !c->grid.x || !c->grid.y || !c->grid.z)
        return keep(INVALID_CONFIGURATION);
    config = (struct driver_config){c->grid, c->block, (unsigned)c->shared, c->stream, c->attributes, c->count};
    return keep(cuLaunchKernelEx(&config, function, parameters, NULL));
}

API cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **parameters, size_t shared,
                                 CUstream stream)
{
    struct launch_config c = {grid, block, shared, stream, NULL, 0};
    return cudaLaunchKernelExC(&c, host, parameters);
}

API cudaError_t __cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **parameters,
                                   size_t shared, CUstream stream)
{
    return cudaLaunchKernel(kernel, grid, block, parameters, shared, stream);
}

API cudaError_t cudaLaunchCooperativeKernel(const void *host, dim3 grid, dim3 block, void **parameters,
                                            size_t shared, CUstream stream)
{
    return cudaLaunchKernel(host, grid, block, parameters, shared, stream);
}

API cudaError_t __cudaGetKernel(CUfunction *to, const void *host)
{
    BEGIN();
    return keep(kernel_of(to, host));
}

API cudaError_t cudaGetKernel(CUfunction *to, const void *host) { return __cudaGetKernel(to, host); }
API cudaError_t cudaGetFuncBySymbol(CUfunction *to, const void *host) { return __cudaGetKernel(to, host); }

API cudaError_t cudaFuncSetAttribute(const void *host, int attribute, int value)
{
    CUfunction function;
    cudaError_t result;
    BEGIN();
    result = kernel_of(&function, host);
    return keep(result ? result : cuFuncSetAttribute(function, attribute, value));
}

API cudaError_t cudaFuncSetCacheConfig(const void *host, int config)
{
    (void)host, (void)config;
    BEGIN();
    return SUCCESS;
}

struct attributes { /* cudaFuncAttributes */
    size_t shared, constant, local;
    int numbers[14]; /* threads, registers, versions, cache, dynamic, carveout, cluster ... */
    int reserved[16];
};

API cudaError_t cudaFuncGetAttributes(struct attributes *to, const void *host)
{
    static const int numbers[14] = {0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 14, -1};
    CUfunction function;
    int at, value;
    BEGIN();
    at = kernel_of(&function, host);
    if (at) return keep(at);
    *to = (struct attributes){0};
    cuFuncGetAttribute(&value, 1, function);
    to->shared = (size_t)value;
    cuFuncGetAttribute(&value, 3, function);
    to->local = (size_t)value;
    for (at = 0; numbers[at] >= 0; at++) cuFuncGetAttribute(to->numbers + at, numbers[at], function);
    return SUCCESS;
}

API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *host,
                                                                       int threads, size_t shared,
                                                                       unsigned flags)
{
    CUfunction function;
    cudaError_t result;
    BEGIN();
    result = kernel_of(&function, host);
    if (result) return keep(result);
    return keep(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, flags));
}

API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *host, int threads,
                                                              size_t shared)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, host, threads, shared, 0);
}

API cudaError_t cudaOccupancyMaxActiveClusters(int *count, const void *host, const struct launch_config *c)
{
    struct driver_config config;
    CUfunction function;
    cudaError_t result;
    BEGIN();
    result = kernel_of(&function, host);
    if (result) return keep(result);
    config = (struct driver_config){c->grid, c->block, (unsigned)c->shared, c->stream, c->attributes, c->count};
    return keep(cuOccupancyMaxActiveClusters(count, function, &config));
}

API cudaError_t cudaGetSymbolAddress(void **to, const void *host)
{
    CUdeviceptr address;
    size_t size;
    cudaError_t result = variable_of(&address, &size, host);
    if (!result) *to = (void *)(uintptr_t)address;
    return keep(result);
}

API cudaError_t cudaGetSymbolSize(size_t *to, const void *host)
{
    CUdeviceptr address;
    return keep(variable_of(&address, to, host));
}

static cudaError_t symbol_copy(const void *host, void *other, size_t bytes, size_t offset, int to_symbol)
{
    CUdeviceptr address, there = (uintptr_t)other;
    size_t size;
    cudaError_t result = variable_of(&address, &size, host);
    if (result) return keep(result);
    if (offset + bytes > size) return keep(INVALID_VALUE);
    address += offset;
    return keep(to_symbol ? cuMemcpy(address, there, bytes) : cuMemcpy(there, address, bytes));
}

API cudaError_t cudaMemcpyToSymbol(const void *host, const void *from, size_t bytes, size_t offset, int kind)
{
    (void)kind;
    return symbol_copy(host, (void *)(uintptr_t)from, bytes, offset, 1);
}

API cudaError_t cudaMemcpyFromSymbol(void *to, const void *host, size_t bytes, size_t offset, int kind)
{
    (void)kind;
    return symbol_copy(host, to, bytes, offset, 0);
}

API cudaError_t cudaMemcpyToSymbolAsync(const void *host, const void *from, size_t bytes, size_t offset,
                                        int kind, CUstream stream)
{
    (void)stream;
    return cudaMemcpyToSymbol(host, from, bytes, offset, kind);
}
