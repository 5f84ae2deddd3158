/* Attributes of functions, occupancy, tensor maps, launches. */
#include "recorder.h"

#include <stdlib.h>
#include <string.h>

struct launch_attribute { /* CUlaunchAttribute */
    int id;
    char pad[4];
    union {
        unsigned dim[3];
        int number;
        char all[64];
    } value;
};

struct launch_config { /* CUlaunchConfig */
    unsigned grid[3], block[3], shared;
    CUstream stream;
    struct launch_attribute *attributes;
    unsigned count;
};

enum { CLUSTER_DIMENSION = 4, PROGRAMMATIC_SERIALIZATION = 6, PROGRAMMATIC_EVENT = 7 };
enum { MAX_SHARED = 97, SHARED_PER_SM = 81, THREADS_PER_SM = 39, REGISTERS_PER_SM = 82, SMS = 16 };

static int is_function(CUfunction function) { return function && function->magic == FUNCTION_MAGIC; }

API CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function)
{
    TRY(ready());
    if (!is_function(function)) return INVALID_HANDLE;
    if (!value) return INVALID_VALUE;
    switch (attribute) {
    case 0: *value = function->max_threads; break;
    case 1: *value = function->static_shared; break;
    case 3: *value = function->local; break;
    case 4: *value = function->registers; break;
    case 5:
    case 6: *value = device_attribute[75] * 10 + device_attribute[76]; break;
    case 8: *value = function->max_dynamic; break;
    case 9: *value = function->carveout; break;
    case 10: *value = function->cluster[0] > 0; break;
    case 11:
    case 12:
    case 13: *value = function->cluster[attribute - 11]; break;
    case 14: *value = function->non_portable; break;
    case 2:
    case 7:
    case 15: *value = 0; break;
    default: return INVALID_VALUE;
    }
    return SUCCESS;
}

API CUresult cuKernelGetAttribute(int *value, int attribute, CUfunction kernel, CUdevice device)
{
    (void)device;
    return cuFuncGetAttribute(value, attribute, kernel);
}

API CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
    TRY(ready());
    if (!is_function(function)) return INVALID_HANDLE;
    switch (attribute) {
    case 8:
        if (value < 0 || value + function->static_shared > device_attribute[MAX_SHARED])
            return INVALID_VALUE;
        function->max_dynamic = value;
        break;
    case 9: function->carveout = value; break;
    case 14: function->non_portable = value; break;
    case 11:
    case 12:
    case 13:
        if (value < 0) return INVALID_VALUE;
        function->cluster[attribute - 11] = value;
        break;
    case 15: break;
    default: return INVALID_VALUE;
    }
    return SUCCESS;
}

API CUresult cuKernelSetAttribute(int attribute, int value, CUfunction kernel, CUdevice device)
{
    (void)device;
    return cuFuncSetAttribute(kernel, attribute, value);
}

API CUresult cuFuncSetCacheConfig(CUfunction function, int config)
{
    (void)config;
    return is_function(function) ? ready() : INVALID_HANDLE;
}

API CUresult cuKernelSetCacheConfig(CUfunction kernel, int config, CUdevice device)
{
    (void)device;
    return cuFuncSetCacheConfig(kernel, config);
}

API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function,
                                                                  int threads, size_t dynamic,
                                                                  unsigned flags)
{
    int most, registers;
    size_t shared;
    (void)flags;
    TRY(ready());
    if (!is_function(function)) return INVALID_HANDLE;
    if (!blocks || threads < 1) return INVALID_VALUE;
    shared = dynamic + (size_t)function->static_shared;
    most = device_attribute[THREADS_PER_SM] / threads;
    if (most > 32) most = 32;
    registers = device_attribute[REGISTERS_PER_SM] / (function->registers * ((threads + 31) / 32 * 32));
    if (registers < most) most = registers;
    if ((size_t)device_attribute[SHARED_PER_SM] / (shared + 1024) < (size_t)most)
        most = (int)((size_t)device_attribute[SHARED_PER_SM] / (shared + 1024));
    *blocks = threads > function->max_threads || (int)dynamic > function->max_dynamic ? 0 : most;
    return SUCCESS;
}

API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                         size_t dynamic)
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, dynamic, 0);
}

API CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *size, CUfunction function, int blocks,
                                                     int threads)
{
    (void)threads;
    TRY(ready());
    if (!is_function(function)) return INVALID_HANDLE;
    if (!size || blocks < 1) return INVALID_VALUE;
    *size = (size_t)(device_attribute[SHARED_PER_SM] / blocks - 1024 - function->static_shared);
    return SUCCESS;
}

API CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction function,
                                                       size_t (*dynamic_of)(int), size_t dynamic,
                                                       int limit, unsigned flags)
{
    int threads, blocks, best = 0;
    TRY(ready());
    if (!is_function(function)) return INVALID_HANDLE;
    if (limit <= 0 || limit > function->max_threads) limit = function->max_threads;
    for (threads = limit / 32 * 32; threads > 0; threads -= 32) {
        TRY(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
            &blocks, function, threads, dynamic_of ? dynamic_of(threads) : dynamic, flags));
        if (blocks * threads > best) {
            best = blocks * threads;
            *block = threads;
            *grid = blocks * device_attribute[SMS];
        }
    }
    return SUCCESS;
}

API CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
                                              size_t (*dynamic_of)(int), size_t dynamic, int limit)
{
    return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, dynamic_of, dynamic, limit, 0);
}

API CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction function,
                                                const struct launch_config *config)
{
    TRY(ready());
    if (!is_function(function)) return INVALID_HANDLE;
    if (!size || !config) return INVALID_VALUE;
    *size = function->non_portable ? 16 : 8;
    return SUCCESS;
}

API CUresult cuOccupancyMaxActiveClusters(int *count, CUfunction function,
                                          const struct launch_config *config)
{
    unsigned at, size = 1;
    int blocks;
    TRY(ready());
    if (!is_function(function)) return INVALID_HANDLE;
    if (!count || !config) return INVALID_VALUE;
    for (at = 0; at < config->count; at++) {
        const unsigned *dim = config->attributes[at].value.dim;
        if (config->attributes[at].id == CLUSTER_DIMENSION) size = dim[0] * dim[1] * dim[2];
    }
    TRY(cuOccupancyMaxActiveBlocksPerMultiprocessor(
        &blocks, function, (int)(config->block[0] * config->block[1] * config->block[2]),
        config->shared));
    *count = size ? blocks * device_attribute[SMS] / (int)size : 0;
    return SUCCESS;
}

/* What both kinds of tensor maps begin with. */
static void put_tensor(struct message *request, int type, uint32_t rank, int im2col, void *address,
                       const uint64_t *dims, const uint64_t *strides)
{
    put_u32(request, (uint32_t)type);
    put_u32(request, rank);
    put_u32(request, (uint32_t)im2col);
    put_u64(request, (uintptr_t)address);
    put_bytes(request, dims, rank * sizeof *dims);
    if (rank > 1) put_bytes(request, strides, (rank - 1) * sizeof *strides);
}

/* What they end with; asks for the map. */
static CUresult ask_map(struct message *request, void *map, const uint32_t *steps, uint32_t rank,
                        int interleave, int swizzle, int promotion, int fill)
{
    struct message reply;
    CUresult result;
    put_bytes(request, steps, rank * sizeof *steps);
    put_u32(request, (uint32_t)interleave);
    put_u32(request, (uint32_t)swizzle);
    put_u32(request, (uint32_t)promotion);
    put_u32(request, (uint32_t)fill);
    result = ask(ENCODE, request, &reply);
    if (!result && reply.size - reply.at == 128) memcpy(map, reply.data + reply.at, 128);
    free(reply.data);
    return result;
}

API CUresult cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address,
                                    const uint64_t *dims, const uint64_t *strides, const uint32_t *box,
                                    const uint32_t *steps, int interleave, int swizzle, int promotion,
                                    int fill)
{
    struct message request = {0};
    TRY(ready());
    if (!map || rank < 1 || rank > 5 || !dims || (rank > 1 && !strides) || !box || !steps)
        return INVALID_VALUE;
    put_tensor(&request, type, rank, 0, address, dims, strides);
    put_bytes(&request, box, rank * sizeof *box);
    return ask_map(&request, map, steps, rank, interleave, swizzle, promotion, fill);
}

API CUresult cuTensorMapEncodeIm2col(void *map, int type, uint32_t rank, void *address,
                                     const uint64_t *dims, const uint64_t *strides, const int *lower,
                                     const int *upper, uint32_t channels, uint32_t pixels,
                                     const uint32_t *steps, int interleave, int swizzle, int promotion,
                                     int fill)
{
    struct message request = {0};
    TRY(ready());
    if (!map || rank < 3 || rank > 5 || !dims || !strides || !lower || !upper || !steps)
        return INVALID_VALUE;
    put_tensor(&request, type, rank, 1, address, dims, strides);
    put_bytes(&request, lower, (rank - 2) * sizeof *lower);
    put_bytes(&request, upper, (rank - 2) * sizeof *upper);
    put_u32(&request, channels);
    put_u32(&request, pixels);
    return ask_map(&request, map, steps, rank, interleave, swizzle, promotion, fill);
}

API CUresult cuTensorMapReplaceAddress(void *map, void *address)
{
    TRY(ready());
    if (!map || (uintptr_t)address % 16) return INVALID_VALUE;
    memcpy(map, &address, sizeof address); /* the address is what a map begins with */
    return SUCCESS;
}

/* What the driver checks before a kernel starts. */
static CUresult check(const struct launch_config *c, CUfunction function, unsigned cluster[3])
{
    uint64_t threads = (uint64_t)c->block[0] * c->block[1] * c->block[2];
    unsigned axis, size = 1;
    for (axis = 0; axis < 3; axis++) {
        if (!c->grid[axis] || !c->block[axis]) return INVALID_VALUE;
        if (c->block[axis] > (unsigned)device_attribute[2 + axis]) return INVALID_VALUE;
        if (c->grid[axis] > (unsigned)device_attribute[5 + axis]) return INVALID_VALUE;
    }
    if (threads > (uint64_t)device_attribute[1]) return INVALID_VALUE;
    if (threads > (uint64_t)function->max_threads) return OUT_OF_RESOURCES;
    if (c->shared > (unsigned)function->max_dynamic) return INVALID_VALUE;
    for (axis = 0; axis < 3; axis++) {
        if (!cluster[axis] || c->grid[axis] % cluster[axis]) return INVALID_CLUSTER_SIZE;
        size *= cluster[axis];
    }
    if (size > (function->non_portable ? 16u : 8u)) return INVALID_CLUSTER_SIZE;
    return SUCCESS;
}

CUresult send_launch(struct message *request)
{
    struct message reply;
    CUresult result;
    memory_list(request);
    result = ask(LAUNCH, request, &reply);
    if (!result) fail((CUresult)get_u32(&reply)); /* what the kernel did wrong shows later */
    free(reply.data);
    return result;
}

static CUresult launch(const struct launch_config *c, CUfunction function, void **parameters, void **extra)
{
    struct message request = {0};
    const unsigned char *packed = NULL;
    size_t packed_size = 0;
    unsigned at, cluster[3] = {1, 1, 1}, programmatic = 0;
    TRY(require_context());
    if (!is_function(function)) return INVALID_HANDLE;
    for (at = 0; at < 3 && function->cluster[0] > 0; at++) cluster[at] = (unsigned)function->cluster[at];
    for (at = 0; at < c->count; at++) {
        const struct launch_attribute *one = c->attributes + at;
        if (one->id == CLUSTER_DIMENSION && one->value.dim[0]) memcpy(cluster, one->value.dim, sizeof cluster);
        if (one->id == PROGRAMMATIC_SERIALIZATION) programmatic = (unsigned)one->value.number;
    }
    TRY(check(c, function, cluster));
    for (; extra && *extra; extra += 2) { /* CU_LAUNCH_PARAM_BUFFER_POINTER 1, _SIZE 2 */
        if (*extra == (void *)1) packed = extra[1];
        if (*extra == (void *)2) packed_size = *(size_t *)extra[1];
    }
    if (function->parameters && !parameters && !packed) return INVALID_VALUE;
    put_u32(&request, function->module->id);
    put_text(&request, function->name);
    put_bytes(&request, c->grid, sizeof c->grid);
    put_bytes(&request, c->block, sizeof c->block);
    put_bytes(&request, cluster, sizeof cluster);
    put_u32(&request, c->shared);
    put_u32(&request, programmatic);
    put_u32(&request, function->parameters);
    for (at = 0; at < function->parameters; at++) {
        const struct parameter *one = function->parameter + at;
        const void *from = parameters ? parameters[at] : packed + one->offset;
        if (!from || (!parameters && one->offset + one->size > packed_size)) {
            free(request.data);
            return INVALID_VALUE;
        }
        put_u32(&request, one->size);
        put_bytes(&request, from, one->size);
    }
    if (!is_captured(c->stream)) return send_launch(&request);
    capture_launch(c->stream, &request);
    return SUCCESS;
}

API CUresult cuLaunchKernelEx(const struct launch_config *c, CUfunction function, void **parameters,
                              void **extra)
{
    return c ? launch(c, function, parameters, extra) : INVALID_VALUE;
}

API CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                            unsigned by, unsigned bz, unsigned shared, CUstream stream,
                            void **parameters, void **extra)
{
    struct launch_config c = {{gx, gy, gz}, {bx, by, bz}, shared, stream, NULL, 0};
    return launch(&c, function, parameters, extra);
}

API CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                       unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                       CUstream stream, void **parameters)
{
    struct launch_config c = {{gx, gy, gz}, {bx, by, bz}, shared, stream, NULL, 0};
    return launch(&c, function, parameters, NULL);
}
