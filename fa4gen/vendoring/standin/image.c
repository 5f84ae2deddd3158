/* What a cubin says of a kernel: its parameters, its threads, its cluster.
 *
 * A cubin is an ELF64 file; .nv.info.<entry> has attributes: a byte of form, a byte of which, two
 * bytes that are the value or, for form 4, how many bytes of value follow. In .nv.compat, with attributes of the same form, one says whether the code is for one compute capability alone:
 * ptxas 13.0 writes 1 for sm_90a, sm_100a and sm_103a, 0 for sm_100 and sm_100f.
 */
#include "standin.h"

#include <stdio.h>
#include <string.h>

#define HEADER_BYTES 64
#define SECTION_BYTES 64
#define MACHINE_CUDA 190
#define NOBITS 8
#define FORM_SIZED 4
#define PARAMETER 0x17
#define MAX_THREADS 0x05
#define CLUSTER 0x3d
#define EXACT 0x09

static uint16_t u16(const unsigned char *at) {
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint32_t u32(const unsigned char *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint64_t u64(const unsigned char *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

size_t image_size(const unsigned char *image) {
    if (memcmp(image, "\x7f" "ELF\x02\x01", 6) || u16(image + 18) != MACHINE_CUDA) return 0;
    uint64_t sections = u64(image + 40);
    uint16_t count = u16(image + 60);
    uint64_t end = sections + (uint64_t)count * SECTION_BYTES;
    uint64_t segments_end = u64(image + 32) + (uint64_t)u16(image + 54) * u16(image + 56);
    if (segments_end > end) end = segments_end;
    for (uint16_t i = 0; i < count; ++i) {
        const unsigned char *section = image + sections + (uint64_t)i * SECTION_BYTES;
        uint64_t section_end = u64(section + 24) + u64(section + 32);
        if (u32(section + 4) != NOBITS && section_end > end) end = section_end;
    }
    return (size_t)end;
}

static const unsigned char *find_section(const unsigned char *image, const char *name) {
    const unsigned char *sections = image + u64(image + 40);
    const unsigned char *names = sections + (size_t)u16(image + 62) * SECTION_BYTES;
    const unsigned char *text = image + u64(names + 24);
    for (uint16_t i = 0; i < u16(image + 60); ++i) {
        const unsigned char *section = sections + (size_t)i * SECTION_BYTES;
        if (!strcmp((const char *)text + u32(section), name)) return section;
    }
    return NULL;
}

/* CUDA 13 writes the number into the second byte of the flags, CUDA 12 into the first. */
static int sm_of(uint32_t flags) {
    int second = (int)(flags >> 8 & 0xff);
    return second >= 50 ? second : (int)(flags & 0xff);
}

/* Whether the code is for one compute capability alone. */
static int is_exact(const unsigned char *cubin) {
    const unsigned char *section = find_section(cubin, ".nv.compat");
    if (!section) return 1;
    const unsigned char *at = cubin + u64(section + 24), *end = at + u64(section + 32);
    for (; at + 4 <= end; at += 4 + (at[0] == FORM_SIZED ? u16(at + 2) : 0))
        if (at[0] != FORM_SIZED && at[1] == EXACT) return at[2] != 0;
    return 1;
}

int read_kernel(const unsigned char *cubin, size_t size, const char *entry, struct kernel *kernel) {
    char name[512];
    if (size < HEADER_BYTES) return 0;
    if ((size_t)snprintf(name, sizeof name, ".nv.info.%s", entry) >= sizeof name) return 0;
    const unsigned char *section = find_section(cubin, name);
    if (!section) return 0;
    const unsigned char *at = cubin + u64(section + 24), *end = at + u64(section + 32);
    kernel->sm = sm_of(u32(cubin + 48));
    kernel->exact = is_exact(cubin);
    kernel->max_threads = 1024;
    while (at + 4 <= end) {
        uint16_t bytes = at[0] == FORM_SIZED ? u16(at + 2) : 0;
        const unsigned char *value = at + 4;
        if (value + bytes > end) return 0;
        if (bytes == 12 && at[1] == PARAMETER) {
            uint16_t ordinal = u16(value + 4);
            if (ordinal >= MAX_PARAMETERS) return 0;
            kernel->sizes[ordinal] = u32(value + 8) >> 18;
            if (ordinal >= kernel->num_parameters) kernel->num_parameters = ordinal + 1u;
        } else if (bytes == 12 && at[1] == MAX_THREADS) {
            kernel->max_threads = u32(value) * u32(value + 4) * u32(value + 8);
        } else if (bytes == 12 && at[1] == CLUSTER) {
            for (int axis = 0; axis < 3; ++axis) kernel->cluster[axis] = u32(value + 4 * axis);
        }
        at = value + bytes;
    }
    return 1;
}
