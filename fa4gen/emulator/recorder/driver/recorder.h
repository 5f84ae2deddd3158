/* A stand-in for libcuda.so.1: host memory is device memory, launches go to the recorder.
 *
 * Types and numbers are those of the CUDA driver interface (CUDA 13); cuda.h is not needed. All that
 * asks for thought (images, tensor maps, launches) is answered by the recorder's process at the
 * other end of a Unix socket, which sees device memory through the same file.
 */
#ifndef FA4GEN_RECORDER_H
#define FA4GEN_RECORDER_H

#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef void *CUcontext;
typedef struct stream *CUstream;
typedef struct event *CUevent;
typedef struct module *CUmodule;
typedef struct function *CUfunction;

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    NO_BINARY_FOR_GPU = 209,
    INVALID_HANDLE = 400,
    ILLEGAL_STATE = 401,
    NOT_FOUND = 500,
    NOT_READY = 600,
    OUT_OF_RESOURCES = 701,
    NOT_SUPPORTED = 801,
    CAPTURE_UNSUPPORTED = 900,
    INVALID_CLUSTER_SIZE = 912,
    UNKNOWN = 999
};

enum request { HELLO = 1, MODULE = 2, PLACE = 3, LAUNCH = 4, ENCODE = 5, NOTE = 6 };

#define MAX_ATTRIBUTE 256

struct graph;

struct stream {
    unsigned flags;
    int priority;
    struct graph *graph; /* that it is captured into */
};

struct parameter {
    uint32_t offset, size;
};

struct function {
    uint32_t magic;
    CUmodule module;
    char *name;
    uint32_t parameters;
    struct parameter *parameter;
    int static_shared, max_threads, registers, local;
    int cluster[3]; /* of the entry's directives; 0 where there is none */
    int max_dynamic, non_portable, carveout;
};

struct variable {
    char *name;
    uint64_t size, address;
};

struct module {
    uint32_t magic;
    uint32_t id;
    uint32_t functions, variables;
    struct function *function;
    struct variable *variable;
};

#define FUNCTION_MAGIC 0x66613466u
#define MODULE_MAGIC 0x6661346du

/* a message under way: written field by field, read likewise */
struct message {
    unsigned char *data;
    size_t size, at;
};

void put_u32(struct message *, uint32_t);
void put_u64(struct message *, uint64_t);
void put_bytes(struct message *, const void *, size_t);
void put_text(struct message *, const char *);
uint32_t get_u32(struct message *);
uint64_t get_u64(struct message *);
char *get_text(struct message *);
/* Sends `request`, waits for the answer, frees the request; the caller frees reply->data. */
CUresult ask(enum request, struct message *request, struct message *reply);
void note(const char *what);

/* what the recorder said of the device it stands for */
extern int device_attribute[MAX_ATTRIBUTE];
extern unsigned char device_has[MAX_ATTRIBUTE];
extern char *device_name;
extern int driver_version;
extern uint64_t memory_base, memory_size;

/* NOT_INITIALIZED before cuInit; else the error that a launch left behind, if any */
CUresult ready(void);
CUresult require_context(void);
void fail(CUresult); /* leaves an error behind, as a failed kernel does */

/* A fill of device memory: rows of `width` words of `bytes` bytes, `pitch` bytes apart. */
struct fill {
    CUdeviceptr to;
    size_t pitch;
    uint32_t value;
    unsigned bytes;
    size_t width, height;
};

CUresult run_fill(const struct fill *);
/* Sends a launch but for the list of memory, which is added, and frees the request. */
CUresult send_launch(struct message *request);

int is_captured(CUstream);
/* SUCCESS, or NOT_SUPPORTED after a note of `what` where the stream is being captured. */
CUresult not_captured(CUstream, const char *what);
void capture_launch(CUstream, const struct message *request); /* takes the request */
void capture_fill(CUstream, const struct fill *);

uint64_t memory_take(uint64_t size);           /* 0 where nothing is left */
int memory_give(uint64_t address);             /* 0 where nothing begins there */
int memory_find(uint64_t address, uint64_t *start, uint64_t *size);
void memory_list(struct message *);            /* all allocations: count, then address and size */
uint64_t memory_used(void);

#define TRY(call)                                                                                  \
    do {                                                                                           \
        CUresult tried_ = (call);                                                                  \
        if (tried_) return tried_;                                                                 \
    } while (0)

#endif
