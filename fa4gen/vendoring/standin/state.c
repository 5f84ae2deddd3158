/* Devices, errors that a test asks for, and the records. */
#include "standin.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FAULTS 32
#define THREADS_CHOICE (-2)

struct device {
    int sm, multiprocessors;
};

struct fault {
    char function[48];
    int after, times, result;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct device devices[MAX_DEVICES] = {{90, 132}};
static int num_devices = 1;
static int common_device = 0;
static _Thread_local int thread_device = THREADS_CHOICE;
static struct fault faults[MAX_FAULTS];
static int num_faults = 0;
static void **records[RECORDS];
static uint64_t counts[RECORDS], room[RECORDS];
static uint64_t next_order = 0;

void lock(void) { pthread_mutex_lock(&mutex); }

void unlock(void) { pthread_mutex_unlock(&mutex); }

void *take(size_t bytes) {
    void *memory = calloc(1, bytes ? bytes : 1);
    if (!memory) {
        fputs("fa4gen's stand-in for the driver: out of memory\n", stderr);
        abort();
    }
    return memory;
}

void *add_record(enum record kind, size_t bytes) {
    if (counts[kind] == room[kind]) {
        room[kind] = room[kind] ? 2 * room[kind] : 16;
        records[kind] = realloc(records[kind], room[kind] * sizeof *records[kind]);
        if (!records[kind]) abort();
    }
    void *record = take(bytes);
    memcpy(record, &next_order, sizeof next_order); /* every record begins with its order */
    ++next_order;
    records[kind][counts[kind]++] = record;
    return record;
}

CUresult begin(const char *function) {
    CUresult result = SUCCESS;
    lock();
    for (int i = 0; i < num_faults && !result; ++i) {
        struct fault *fault = &faults[i];
        if (strcmp(fault->function, function) || !fault->times) continue;
        if (fault->after-- > 0) continue;
        fault->after = 0;
        if (fault->times > 0) --fault->times;
        result = fault->result;
    }
    unlock();
    return result;
}

int current_device(void) {
    return thread_device == THREADS_CHOICE ? common_device : thread_device;
}

int device_sm(int device) { return devices[device].sm; }

/* ---- Set by tests ------------------------------------------------------------------------------ */

/* sm: 90 for compute capability 9.0, 103 for 10.3. Loaded kernels stay as they are. */
API int standin_set_devices(int count, const int *sm, const int *multiprocessors) {
    if (count < 0 || count > MAX_DEVICES) return -1;
    lock();
    for (int i = 0; i < count; ++i) {
        devices[i].sm = sm[i];
        devices[i].multiprocessors = multiprocessors[i];
    }
    num_devices = count;
    unlock();
    return 0;
}

/* The ordinal of a device like this, which is added where there is none; -1: there are too many.
 * Ordinals keep their meaning, as launchers remember what they asked of each. */
API int standin_find_device(int sm, int multiprocessors) {
    int found = -1;
    lock();
    for (int i = 0; i < num_devices && found < 0; ++i)
        if (devices[i].sm == sm && devices[i].multiprocessors == multiprocessors) found = i;
    if (found < 0 && num_devices < MAX_DEVICES) {
        found = num_devices++;
        devices[found].sm = sm;
        devices[found].multiprocessors = multiprocessors;
    }
    unlock();
    return found;
}

/* The device whose context is current in threads without a choice of their own; -1: none is. */
API void standin_set_current(int device) { common_device = device; }

/* The same for the calling thread; -2: no choice of its own. */
API void standin_set_thread(int device) { thread_device = device; }

/* Let a function fail: from the call number after (from 0) on, so many times; -1: for good. */
API int standin_fail(const char *function, int after, int times, int result) {
    if (num_faults == MAX_FAULTS || strlen(function) >= sizeof faults[0].function) return -1;
    lock();
    struct fault *fault = &faults[num_faults++];
    strcpy(fault->function, function);
    fault->after = after;
    fault->times = times;
    fault->result = result;
    unlock();
    return 0;
}

/* Forget records and faults. Libraries stay loaded: launchers keep what they were given. */
API void standin_reset(void) {
    lock();
    for (int kind = 0; kind < RECORDS; ++kind) {
        for (uint64_t i = 0; i < counts[kind]; ++i) {
            if (kind == LAUNCHES) free((void *)((struct launch *)records[kind][i])->bytes);
            free(records[kind][i]);
        }
        counts[kind] = 0;
    }
    next_order = 0;
    num_faults = 0;
    unlock();
}

API uint64_t standin_count(int kind) {
    return kind >= 0 && kind < RECORDS ? counts[kind] : 0;
}

/* Valid until standin_reset. */
API const void *standin_record(int kind, uint64_t index) {
    return index < standin_count(kind) ? records[kind][index] : NULL;
}

/* The sizes of the structs, for whoever reads them. */
API uint64_t standin_size(int kind) {
    static const uint64_t sizes[RECORDS] = {sizeof(struct launch), sizeof(struct map),
                                            sizeof(struct memset_call), sizeof(struct image),
                                            sizeof(struct setting)};
    return kind >= 0 && kind < RECORDS ? sizes[kind] : 0;
}

/* ---- The driver's ------------------------------------------------------------------------------ */

API CUresult cuInit(unsigned flags) {
    TRY(begin("cuInit"));
    return flags ? INVALID_VALUE : SUCCESS;
}

API CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    TRY(begin("cuDeviceGetAttribute"));
    if (device < 0 || device >= num_devices) return INVALID_DEVICE;
    switch (attribute) {
    case 1: *value = 1024; break;                             /* threads of a block */
    case 10: *value = 32; break;                              /* threads of a warp */
    case 16: *value = devices[device].multiprocessors; break; /* multiprocessors */
    case 75: *value = devices[device].sm / 10; break;         /* compute capability, major */
    case 76: *value = devices[device].sm % 10; break;         /* minor */
    case 81: *value = 233472; break;                          /* shared memory of one of them */
    case 95: *value = 1; break;                               /* cooperative launches */
    case 97: *value = 232448; break;                          /* shared memory of a block */
    case 120: *value = 1; break;                              /* clusters */
    default: return INVALID_VALUE;
    }
    return SUCCESS;
}

API CUresult cuCtxGetDevice(CUdevice *device) {
    TRY(begin("cuCtxGetDevice"));
    int current = current_device();
    if (current < 0 || current >= num_devices) return INVALID_CONTEXT;
    *device = current;
    return SUCCESS;
}

API CUresult cuGetErrorString(CUresult error, const char **text) {
    *text = NULL;
    switch (error) {
    case SUCCESS: *text = "no error"; break;
    case INVALID_VALUE: *text = "invalid argument"; break;
    case NOT_INITIALIZED: *text = "initialization error"; break;
    case INVALID_DEVICE: *text = "invalid device ordinal"; break;
    case INVALID_IMAGE: *text = "device kernel image is invalid"; break;
    case INVALID_CONTEXT: *text = "invalid device context"; break;
    case NO_BINARY_FOR_GPU:
        *text = "no kernel image is available for execution on the device";
        break;
    case INVALID_HANDLE: *text = "invalid resource handle"; break;
    case NOT_FOUND: *text = "named symbol not found"; break;
    case OUT_OF_RESOURCES: *text = "too many resources requested for launch"; break;
    case INVALID_CLUSTER_SIZE: *text = "invalid cluster size"; break;
    default: return INVALID_VALUE;
    }
    return SUCCESS;
}

API CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t bytes,
                             void *stream) {
    TRY(begin("cuMemsetD8Async"));
    if (current_device() < 0) return INVALID_CONTEXT;
    if (!address && bytes) return INVALID_VALUE;
    lock();
    struct memset_call *record = add_record(MEMSETS, sizeof *record);
    record->address = address;
    record->value = value;
    record->bytes = bytes;
    record->stream = (uint64_t)(uintptr_t)stream;
    unlock();
    return SUCCESS;
}
