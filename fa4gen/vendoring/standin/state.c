/* Devices, errors that a test asks for, and the records. */
#include "standin.h"

#include <pthread.h>
#include <stdarg.h>
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
static FILE *records;
static char *records_text;
static size_t records_bytes;

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

static FILE *records_file(void) {
    if (!records) records = open_memstream(&records_text, &records_bytes);
    if (!records) abort();
    return records;
}

void record(const char *format, ...) {
    va_list values;
    va_start(values, format);
    vfprintf(records_file(), format, values);
    va_end(values);
    fputc('\n', records);
}

char *in_digits(const unsigned char *bytes, size_t size) {
    char *digits = take(2 * size + 2);
    if (!size) *digits = '-';
    for (size_t i = 0; i < size; ++i) sprintf(digits + 2 * i, "%02x", bytes[i]);
    return digits;
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
    if (records) fclose(records);
    free(records_text);
    records = NULL;
    records_text = NULL;
    num_faults = 0;
    unlock();
}

/* The lines of all records in their order; valid until something is recorded. */
API const char *standin_records(void) {
    lock();
    fflush(records_file());
    unlock();
    return records_text;
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
    case 16: *value = devices[device].multiprocessors; break;
    case 75: *value = devices[device].sm / 10; break; /* compute capability, major */
    case 76: *value = devices[device].sm % 10; break; /* minor */
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
    record("memset %llu %u %llu %llu", (unsigned long long)address, value,
           (unsigned long long)bytes, (unsigned long long)(uintptr_t)stream);
    unlock();
    return SUCCESS;
}
