/* A stand-in for libcuda.so.1 that records what a launcher asks of the driver, and runs nothing.
 *
 * Types and numbers are those of the CUDA driver interface (CUDA 12 and 13); cuda.h is not needed.
 * Device memory does not exist here: addresses are numbers that are noted and never followed.
 * Functions that the real driver does not have begin with standin_: by them a test sets the devices
 * and the errors, and reads the records. The structs of the records are read by
 * fa4gen/vendoring/standin/records.py, which has to agree with them.
 */
#ifndef FA4GEN_STANDIN_H
#define FA4GEN_STANDIN_H

#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    NOT_INITIALIZED = 3,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    NO_BINARY_FOR_GPU = 209,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    OUT_OF_RESOURCES = 701,
    CAPTURE_UNSUPPORTED = 900,
    INVALID_CLUSTER_SIZE = 912
};

#define MAX_DEVICES 64
#define MAX_PARAMETERS 64
#define MAX_LAUNCH_ATTRIBUTES 8
#define MAX_RANK 5
#define MAP_BYTES 128
#define ATTRIBUTE_VALUE_BYTES 64

/* ---- Records; order counts all of them together from 0 ----------------------------------------- */

enum record { LAUNCHES = 0, MAPS = 1, MEMSETS = 2, IMAGES = 3, SETTINGS = 4, RECORDS = 5 };

struct parameter {
    uint32_t offset, size;
};

struct launch {
    uint64_t order;
    const char *entry;
    uint64_t stream;
    int32_t device;
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared;
    uint32_t num_attributes;
    uint32_t attributes[MAX_LAUNCH_ATTRIBUTES];
    unsigned char values[MAX_LAUNCH_ATTRIBUTES][ATTRIBUTE_VALUE_BYTES];
    uint32_t num_parameters;
    struct parameter parameters[MAX_PARAMETERS];
    const unsigned char *bytes; /* the parameters at their offsets */
    uint32_t num_bytes;
};

struct map {
    uint64_t order;
    uint64_t result_address; /* where the map was written */
    uint64_t address;
    uint64_t dims[MAX_RANK], strides[MAX_RANK]; /* strides in bytes, from dimension 1 on */
    uint32_t box[MAX_RANK], steps[MAX_RANK];
    uint32_t data_type, rank, interleave, swizzle, l2, fill;
    int32_t result;
    unsigned char bytes[MAP_BYTES];
};

struct memset_call {
    uint64_t order;
    uint64_t address, bytes, stream;
    uint32_t value;
};

struct image {
    uint64_t order;
    const unsigned char *data;
    uint64_t size;
};

struct setting { /* cuKernelSetAttribute */
    uint64_t order;
    const char *entry;
    int32_t attribute, value, device;
};

/* ---- Shared by the parts ----------------------------------------------------------------------- */

struct kernel {
    uint32_t magic;
    char *entry;
    int sm;
    uint32_t max_threads;
    uint32_t cluster[3]; /* of the code; 0 where it names none */
    uint32_t num_parameters, num_bytes;
    struct parameter parameters[MAX_PARAMETERS];
    int max_dynamic_shared[MAX_DEVICES];
    struct function *functions[MAX_DEVICES];
};

struct function {
    uint32_t magic;
    struct kernel *kernel;
    int device;
};

#define KERNEL_MAGIC 0x66614b45u
#define FUNCTION_MAGIC 0x66614655u

/* The error that a test wants of this call of a function. */
CUresult begin(const char *function);
/* The calling thread's device, -1 without a context. */
int current_device(void);
int device_sm(int device);

void lock(void);
void unlock(void);
/* Add a record of so many bytes, zeroed, under the lock; its order is set. */
void *add_record(enum record kind, size_t bytes);
/* As malloc, but the program ends with a message where nothing is left. */
void *take(size_t bytes);

/* Record a launch on a stream, or put it into the graph as which that is captured; copies it. */
CUresult enqueue(void *stream, const struct launch *launch);

/* Read the kernel called entry from a cubin; 0 where it is none or damaged. */
int read_kernel(const unsigned char *cubin, size_t size, const char *entry, struct kernel *kernel);
/* The size of an ELF file by its own headers; 0 where it is none. */
size_t image_size(const unsigned char *image);

#define TRY(call)                                                                                  \
    do {                                                                                           \
        CUresult tried_ = (call);                                                                  \
        if (tried_) return tried_;                                                                 \
    } while (0)

#endif
