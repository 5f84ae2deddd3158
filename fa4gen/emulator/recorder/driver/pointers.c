/* What an address is: cuPointerGetAttribute and its kin. */
#include "recorder.h"

#include <string.h>

enum { DEVICE = 2 }; /* CU_MEMORYTYPE_DEVICE */

static CUresult attribute_of(void *to, int attribute, CUdeviceptr address)
{
    uint64_t start = 0, size = 0;
    int known = memory_find(address, &start, &size);
    switch (attribute) {
    case 1: /* context */
        return known ? (memset(to, 0, sizeof(void *)), SUCCESS) : INVALID_VALUE;
    case 2: /* memory type */
        if (!known) return INVALID_VALUE;
        *(unsigned *)to = DEVICE;
        return SUCCESS;
    case 3: /* the device's address */
    case 4: /* the host's, which is the same */
        if (!known) return INVALID_VALUE;
        *(uint64_t *)to = address;
        return SUCCESS;
    case 6: /* synchronises memory operations */
    case 8: /* managed */
        *(unsigned *)to = 0;
        return SUCCESS;
    case 7: /* buffer id */
        *(unsigned long long *)to = start;
        return SUCCESS;
    case 9: /* device */
        *(int *)to = known ? 0 : -2;
        return SUCCESS;
    case 11: /* range */
        *(uint64_t *)to = start;
        return SUCCESS;
    case 12:
        *(size_t *)to = size;
        return SUCCESS;
    case 13: /* mapped */
        *(unsigned *)to = (unsigned)known;
        return SUCCESS;
    default:
        return INVALID_VALUE;
    }
}

API CUresult cuPointerGetAttribute(void *to, int attribute, CUdeviceptr address)
{
    TRY(require_context());
    return to ? attribute_of(to, attribute, address) : INVALID_VALUE;
}

API CUresult cuPointerGetAttributes(unsigned count, int *attributes, void **to, CUdeviceptr address)
{
    unsigned at;
    TRY(ready());
    for (at = 0; at < count; at++) {
        /* of host memory that the driver does not know, everything is 0 */
        if (attributes[at] == 2 || attributes[at] == 9)
            *(unsigned *)to[at] = 0;
        else if (attributes[at] == 1 || attributes[at] == 3 || attributes[at] == 4)
            *(uint64_t *)to[at] = 0;
        attribute_of(to[at], attributes[at], address);
    }
    return SUCCESS;
}

API CUresult cuPointerSetAttribute(const void *value, int attribute, CUdeviceptr address)
{
    (void)value, (void)attribute, (void)address;
    return ready();
}
