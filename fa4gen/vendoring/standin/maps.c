/* cuTensorMapEncodeTiled: the driver's rules, and the bits that it writes.
 *
 * Both were found on an H100 with driver 580; fa4gen/emulator/state/map_bits.py describes the bits and
 * has the same in Python, and a test compares the two.
 */
#include "standin.h"

#include <stdlib.h>
#include <string.h>

#define MAX_RANK 5
#define MAP_BYTES 128
#define NUM_TYPES 13
#define FIRST_FLOAT 6
#define MOST_BOX_BYTES (227 * 1024)

struct map {
    uint64_t address;
    uint64_t dims[MAX_RANK], strides[MAX_RANK]; /* strides in bytes, from dimension 1 on */
    uint32_t box[MAX_RANK], steps[MAX_RANK];
    uint32_t data_type, rank, interleave, swizzle, l2, fill;
    unsigned char bytes[MAP_BYTES];
};

/* CUtensorMapDataType -> number in the map, mark of TF32, bytes */
static const struct {
    uint32_t code, tf32, bytes;
} types[NUM_TYPES] = {
    {0, 0, 1}, {1, 0, 2}, {2, 0, 4},  {3, 0, 4}, {4, 0, 8}, {5, 0, 8}, {6, 0, 2},
    {7, 0, 4}, {9, 0, 8}, {10, 0, 2}, {8, 0, 4}, {7, 1, 4}, {8, 1, 4},
};

static int allowed(const struct map *map) {
    uint64_t align = map->interleave == 2 ? 32 : 16;
    if (map->rank < 1 || map->rank > MAX_RANK || map->data_type >= NUM_TYPES) return 0;
    if (map->interleave > 2 || (map->interleave && map->rank < 3)) return 0;
    int device = current_device();
    int swizzles = device >= 0 && device_sm(device) >= 100 ? 7 : 4;
    if (map->swizzle >= (uint32_t)swizzles || map->l2 > 3 || map->fill > 1) return 0;
    if (map->fill && map->data_type < FIRST_FLOAT) return 0;
    if (map->address % align || map->address >> 57) return 0;
    for (uint32_t axis = 0; axis + 1 < map->rank; ++axis)
        if (map->strides[axis] % align || map->strides[axis] >> 40) return 0;
    uint64_t total = types[map->data_type].bytes;
    for (uint32_t axis = 0; axis < map->rank; ++axis) {
        if (!map->dims[axis] || map->dims[axis] > (uint64_t)1 << 32) return 0;
        if (!map->box[axis] || map->box[axis] > 256) return 0;
        if (!map->steps[axis] || map->steps[axis] > 8) return 0;
        total *= map->box[axis] / map->steps[axis];
    }
    uint64_t inner = (uint64_t)map->box[0] * types[map->data_type].bytes;
    uint32_t span = map->swizzle > 3 ? 3 : map->swizzle;
    if (inner % 16 || total > MOST_BOX_BYTES) return 0;
    return map->interleave || !span || inner <= (uint64_t)16 << span;
}

static void write_bits(struct map *map) {
    uint32_t words[MAP_BYTES / 4] = {0};
    uint32_t span = map->swizzle > 3 ? 3 : map->swizzle;
    uint32_t atomicity = map->swizzle > 3 ? map->swizzle - 3 : 0;
    uint32_t total = types[map->data_type].bytes;
    words[0] = (uint32_t)map->address;
    words[1] = (uint32_t)(map->address >> 32);
    words[2] = (map->rank - 1) << 4 | types[map->data_type].code << 7 | map->interleave << 11 |
               span << 13 | map->fill << 15 | types[map->data_type].tf32 << 16 | map->l2 << 17 |
               atomicity << 19;
    for (uint32_t axis = 0; axis < map->rank; ++axis) {
        words[8 + axis] = (uint32_t)(map->dims[axis] - 1);
        words[13] |= (map->steps[axis] - 1) << 3 * axis;
        if (axis) {
            words[2 + axis] = (uint32_t)(map->strides[axis - 1] >> 4);
            words[7] |= (uint32_t)(map->strides[axis - 1] >> 36 & 15) << 4 * (axis - 1);
            words[14] |= (map->box[axis] - 1) << 8 * (axis - 1);
        } else {
            words[13] |= (map->box[0] - 1) << 24;
        }
        total *= map->box[axis] / map->steps[axis];
    }
    words[16] = total;
    words[18] = span ? 128u << span : 16;
    memcpy(map->bytes, words, sizeof words);
}

API CUresult cuTensorMapEncodeTiled(void *result, int data_type, uint32_t rank, void *address,
                                    const uint64_t *dims, const uint64_t *strides,
                                    const uint32_t *box, const uint32_t *steps, int interleave,
                                    int swizzle, int l2, int fill) {
    TRY(begin("cuTensorMapEncodeTiled"));
    if (!result || (uintptr_t)result % 64 || !dims || !box || !steps || (rank > 1 && !strides))
        return INVALID_VALUE;
    struct map map = {0};
    uint32_t axes = rank > MAX_RANK ? MAX_RANK : rank;
    map.address = (uint64_t)(uintptr_t)address;
    map.data_type = (uint32_t)data_type;
    map.rank = rank;
    memcpy(map.dims, dims, axes * sizeof *dims);
    memcpy(map.box, box, axes * sizeof *box);
    memcpy(map.steps, steps, axes * sizeof *steps);
    if (axes > 1) memcpy(map.strides, strides, (axes - 1) * sizeof *strides);
    map.interleave = (uint32_t)interleave;
    map.swizzle = (uint32_t)swizzle;
    map.l2 = (uint32_t)l2;
    map.fill = (uint32_t)fill;
    CUresult status = allowed(&map) ? SUCCESS : INVALID_VALUE;
    if (status == SUCCESS) {
        write_bits(&map);
        memcpy(result, map.bytes, MAP_BYTES);
    }
    char *digits = in_digits(map.bytes, MAP_BYTES);
    lock();
    record("map %llu %d %s", (unsigned long long)map.address, status, digits);
    unlock();
    free(digits);
    return status;
}
