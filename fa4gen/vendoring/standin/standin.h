/* A stand-in for libcuda.so.1 that records what a launcher asks of the driver, and runs nothing.
 *
 * Types and numbers are those of the CUDA driver interface (CUDA 12 and 13); cuda.h is not needed.
 * Device memory does not exist here: addresses are numbers that are noted and never followed.
 * Functions that the real driver does not have begin with standin_: by them a test sets the devices
 * and the errors, and reads the records, lines of words that fa4gen/vendoring/standin/records.py
 * understands.
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

/* ---- Shared by the parts ----------------------------------------------------------------------- */

struct kernel {
    uint32_t magic;
    char *entry;
    int sm;
    int exact; /* for that alone; else for later minor versions, too */
    uint32_t max_threads;
    uint32_t cluster[3]; /* of the code; 0 where it names none */
    uint32_t num_parameters;
    uint32_t sizes[MAX_PARAMETERS]; /* in bytes */
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
/* Add a line of words to the records; the first one says of what it is. Under the lock. */
void record(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The bytes in hexadecimal digits, - where there are none; in memory of its own. */
char *in_digits(const unsigned char *bytes, size_t size);
/* As malloc, but the program ends with a message where nothing is left. */
void *take(size_t bytes);

/* Record the words of a launch on a stream, or put them into the graph that the stream captures. */
CUresult enqueue(void *stream, const char *launch);

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
