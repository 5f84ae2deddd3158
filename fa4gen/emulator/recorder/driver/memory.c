/* Device memory: allocations, copies, fills. Host and device share addresses. */
#define _GNU_SOURCE
#include "recorder.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN 512u
#define PAGE (2u << 20) /* of what is mapped with cuMemMap, on all these devices */
#define GUARD 4096u /* memory between two allocations that belongs to nobody */

struct block {
    uint64_t address, size;
};

static struct block *blocks; /* in the order of their addresses */
static size_t count, room;
static uint64_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

uint64_t memory_take(uint64_t size)
{
    uint64_t address = memory_base + GUARD;
    size_t at;
    pthread_mutex_lock(&lock);
    for (at = 0; at < count; at++) {
        if (address + size + GUARD <= blocks[at].address) break;
        address = (blocks[at].address + blocks[at].size + GUARD + ALIGN - 1) / ALIGN * ALIGN;
    }
    if (!size || size > memory_size || address + size + GUARD > memory_base + memory_size) {
        address = 0;
    } else {
        if (count == room) {
            room = room ? 2 * room : 64;
            blocks = realloc(blocks, room * sizeof *blocks);
            if (!blocks) abort();
        }
        memmove(blocks + at + 1, blocks + at, (count - at) * sizeof *blocks);
        blocks[at].address = address;
        blocks[at].size = size;
        count++;
        used += size;
    }
    pthread_mutex_unlock(&lock);
    return address;
}

int memory_give(uint64_t address)
{
    size_t at;
    int found = 0;
    pthread_mutex_lock(&lock);
    for (at = 0; at < count && !found; at++) {
        if (blocks[at].address == address) {
            used -= blocks[at].size;
            memmove(blocks + at, blocks + at + 1, (count - at - 1) * sizeof *blocks);
            count--;
            found = 1;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

int memory_find(uint64_t address, uint64_t *start, uint64_t *size)
{
    size_t at;
    int found = 0;
    pthread_mutex_lock(&lock);
    for (at = 0; at < count && !found; at++) {
        if (blocks[at].address <= address && address < blocks[at].address + blocks[at].size) {
            *start = blocks[at].address;
            *size = blocks[at].size;
            found = 1;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void memory_list(struct message *m)
{
    pthread_mutex_lock(&lock);
    put_u32(m, (uint32_t)count);
    put_bytes(m, blocks ? (void *)blocks : "", count * sizeof *blocks);
    pthread_mutex_unlock(&lock);
}

uint64_t memory_used(void) { return used; }

API CUresult cuMemAlloc_v2(CUdeviceptr *to, size_t size)
{
    TRY(require_context());
    if (!to || !size) return INVALID_VALUE;
    *to = memory_take(size);
    return *to ? SUCCESS : OUT_OF_MEMORY;
}

API CUresult cuMemAllocPitch_v2(CUdeviceptr *to, size_t *pitch, size_t width, size_t height,
                                unsigned element)
{
    (void)element;
    TRY(require_context());
    if (!to || !pitch || !width || !height) return INVALID_VALUE;
    if (width > memory_size || height > memory_size / width) return OUT_OF_MEMORY;
    *pitch = (width + ALIGN - 1) / ALIGN * ALIGN;
    return cuMemAlloc_v2(to, *pitch * height);
}

API CUresult cuMemAllocManaged(CUdeviceptr *to, size_t size, unsigned flags)
{
    (void)flags;
    return cuMemAlloc_v2(to, size);
}

API CUresult cuMemAllocAsync(CUdeviceptr *to, size_t size, CUstream stream)
{
    TRY(not_captured(stream, "cuMemAllocAsync on a captured stream"));
    return cuMemAlloc_v2(to, size);
}

API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *to, size_t size, void *pool, CUstream stream)
{
    (void)pool;
    TRY(not_captured(stream, "cuMemAllocFromPoolAsync on a captured stream"));
    return cuMemAlloc_v2(to, size);
}

API CUresult cuMemHostAlloc(void **to, size_t size, unsigned flags)
{
    (void)flags;
    return cuMemAlloc_v2((CUdeviceptr *)to, size);
}

API CUresult cuMemAllocHost_v2(void **to, size_t size) { return cuMemHostAlloc(to, size, 0); }

API CUresult cuMemFree_v2(CUdeviceptr address)
{
    TRY(require_context());
    return !address || memory_give(address) ? SUCCESS : INVALID_VALUE;
}

API CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    TRY(not_captured(stream, "cuMemFreeAsync on a captured stream"));
    return cuMemFree_v2(address);
}

API CUresult cuMemFreeHost(void *address) { return cuMemFree_v2((uintptr_t)address); }

API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *to, void *host, unsigned flags)
{
    uint64_t start, size;
    (void)flags;
    TRY(require_context());
    if (!to || !memory_find((uintptr_t)host, &start, &size)) return INVALID_VALUE;
    *to = (uintptr_t)host;
    return SUCCESS;
}

API CUresult cuMemHostRegister_v2(void *host, size_t size, unsigned flags)
{
    (void)host, (void)size, (void)flags;
    return require_context();
}

API CUresult cuMemHostUnregister(void *host)
{
    (void)host;
    return require_context();
}

API CUresult cuMemGetInfo_v2(size_t *left, size_t *total)
{
    TRY(require_context());
    if (left) *left = memory_size - memory_used();
    if (total) *total = memory_size;
    return SUCCESS;
}

API CUresult cuMemGetAllocationGranularity(size_t *bytes, const void *about, int recommended)
{
    (void)recommended;
    TRY(ready());
    if (!bytes || !about) return INVALID_VALUE;
    *bytes = PAGE;
    return SUCCESS;
}

API CUresult cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *size, CUdeviceptr address)
{
    uint64_t first, bytes;
    TRY(require_context());
    if (!memory_find(address, &first, &bytes)) return NOT_FOUND;
    if (start) *start = first;
    if (size) *size = bytes;
    return SUCCESS;
}

static int on_device(CUdeviceptr address, size_t size)
{
    uint64_t start, bytes;
    return memory_find(address, &start, &bytes) && size <= start + bytes - address;
}

/* whether [address, address + size) is inside one allocation, or no device memory at all */
static int valid(CUdeviceptr address, size_t size)
{
    if (on_device(address, size)) return 1;
    if (address < memory_base) return size <= memory_base - address;
    return address >= memory_base + memory_size && size <= UINT64_MAX - address;
}

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t size)
{
    TRY(require_context());
    if (!size) return SUCCESS;
    if (!to || !from || !valid(to, size) || !valid(from, size)) return INVALID_VALUE;
    memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, size);
    return SUCCESS;
}

API CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) { return copy(to, from, size); }

API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
    TRY(not_captured(stream, "cuMemcpyAsync on a captured stream"));
    return copy(to, from, size);
}

API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size)
{
    TRY(require_context());
    if (size && !on_device(to, size)) return INVALID_VALUE;
    return copy(to, (uintptr_t)from, size);
}

API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream)
{
    TRY(not_captured(stream, "cuMemcpyHtoDAsync on a captured stream"));
    return cuMemcpyHtoD_v2(to, from, size);
}

API CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size)
{
    TRY(require_context());
    if (size && !on_device(from, size)) return INVALID_VALUE;
    return copy((uintptr_t)to, from, size);
}

API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream)
{
    TRY(not_captured(stream, "cuMemcpyDtoHAsync on a captured stream"));
    return cuMemcpyDtoH_v2(to, from, size);
}

API CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size)
{
    TRY(require_context());
    if (size && (!on_device(to, size) || !on_device(from, size))) return INVALID_VALUE;
    return copy(to, from, size);
}

API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
    TRY(not_captured(stream, "cuMemcpyDtoDAsync on a captured stream"));
    return cuMemcpyDtoD_v2(to, from, size);
}

struct copy_2d { /* CUDA_MEMCPY2D */
    size_t from_x, from_y;
    int from_type;
    const void *from_host;
    CUdeviceptr from_device;
    void *from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    int to_type;
    void *to_host;
    CUdeviceptr to_device;
    void *to_array;
    size_t to_pitch;
    size_t width, height;
};

API CUresult cuMemcpy2D_v2(const struct copy_2d *c)
{
    size_t row;
    CUdeviceptr from, to;
    if (!c || c->from_type == 3 || c->to_type == 3) return INVALID_VALUE; /* CUDA arrays */
    from = c->from_type == 1 ? (uintptr_t)c->from_host : c->from_device;
    to = c->to_type == 1 ? (uintptr_t)c->to_host : c->to_device;
    for (row = 0; row < c->height; row++)
        TRY(copy(to + (c->to_y + row) * (c->to_pitch ? c->to_pitch : c->width) + c->to_x,
                 from + (c->from_y + row) * (c->from_pitch ? c->from_pitch : c->width) + c->from_x,
                 c->width));
    return SUCCESS;
}

API CUresult cuMemcpy2DUnaligned_v2(const struct copy_2d *c) { return cuMemcpy2D_v2(c); }

API CUresult cuMemcpy2DAsync_v2(const struct copy_2d *c, CUstream stream)
{
    TRY(not_captured(stream, "cuMemcpy2DAsync on a captured stream"));
    return cuMemcpy2D_v2(c);
}

CUresult run_fill(const struct fill *f)
{
    size_t row, at;
    TRY(require_context());
    if (f->to % f->bytes) return INVALID_VALUE;
    for (row = 0; row < f->height; row++) {
        unsigned char *line = (unsigned char *)(uintptr_t)(f->to + row * f->pitch);
        if (!f->width) continue;
        if (f->width > memory_size / f->bytes) return INVALID_VALUE;
        if (!on_device(f->to + row * f->pitch, f->width * f->bytes)) return INVALID_VALUE;
        for (at = 0; at < f->width; at++) memcpy(line + at * f->bytes, &f->value, f->bytes);
    }
    return SUCCESS;
}

static CUresult fill(CUdeviceptr to, size_t pitch, uint32_t value, unsigned bytes, size_t width,
                     size_t height, CUstream stream)
{
    struct fill f = {to, pitch, value, bytes, width, height};
    if (!is_captured(stream)) return run_fill(&f);
    TRY(require_context());
    capture_fill(stream, &f);
    return SUCCESS;
}

#define FILL(name, type, bytes)                                                                    \
    API CUresult cuMemset##name##_v2(CUdeviceptr to, type value, size_t n)                         \
    {                                                                                              \
        return fill(to, 0, value, bytes, n, 1, NULL);                                              \
    }                                                                                              \
    API CUresult cuMemset##name##Async(CUdeviceptr to, type value, size_t n, CUstream stream)      \
    {                                                                                              \
        return fill(to, 0, value, bytes, n, 1, stream);                                            \
    }                                                                                              \
    API CUresult cuMemsetD2##name##_v2(CUdeviceptr to, size_t pitch, type value, size_t width,     \
                                       size_t height)                                              \
    {                                                                                              \
        return fill(to, pitch, value, bytes, width, height, NULL);                                 \
    }                                                                                              \
    API CUresult cuMemsetD2##name##Async(CUdeviceptr to, size_t pitch, type value, size_t width,   \
                                         size_t height, CUstream stream)                           \
    {                                                                                              \
        return fill(to, pitch, value, bytes, width, height, stream);                               \
    }

FILL(D8, unsigned char, 1)
FILL(D16, unsigned short, 2)
FILL(D32, unsigned, 4)
