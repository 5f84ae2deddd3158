/* The socket to the recorder, cuInit, and the memory that both see. */
#define _GNU_SOURCE
#include "recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

int device_attribute[MAX_ATTRIBUTE];
unsigned char device_has[MAX_ATTRIBUTE];
char *device_name;
int driver_version;
uint64_t memory_base, memory_size;

static int connection = -1;
static pid_t owner;
static CUresult left_behind;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;

void put_bytes(struct message *m, const void *data, size_t size)
{
    m->data = realloc(m->data, m->size + size + 1);
    if (!m->data) abort();
    memcpy(m->data + m->size, data, size);
    m->size += size;
}

void put_u32(struct message *m, uint32_t value) { put_bytes(m, &value, sizeof value); }
void put_u64(struct message *m, uint64_t value) { put_bytes(m, &value, sizeof value); }

void put_text(struct message *m, const char *text)
{
    put_u32(m, (uint32_t)strlen(text));
    put_bytes(m, text, strlen(text));
}

static void get(struct message *m, void *to, size_t size)
{
    if (m->at + size > m->size) {
        fprintf(stderr, "fa4gen recorder: an answer is too short\n");
        abort();
    }
    memcpy(to, m->data + m->at, size);
    m->at += size;
}

uint32_t get_u32(struct message *m)
{
    uint32_t value;
    get(m, &value, sizeof value);
    return value;
}

uint64_t get_u64(struct message *m)
{
    uint64_t value;
    get(m, &value, sizeof value);
    return value;
}

char *get_text(struct message *m)
{
    uint32_t size = get_u32(m);
    char *text = malloc(size + 1);
    if (!text) abort();
    get(m, text, size);
    text[size] = 0;
    return text;
}

static int transfer(int sending, void *data, size_t size)
{
    unsigned char *at = data;
    while (size) {
        ssize_t done = sending ? send(connection, at, size, MSG_NOSIGNAL) : recv(connection, at, size, 0);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return 0;
        at += done;
        size -= (size_t)done;
    }
    return 1;
}

/* An answer is its length, a CUresult, and what else there is. */
CUresult ask(enum request kind, struct message *request, struct message *reply)
{
    struct message whole = {0};
    uint64_t size = 0;
    CUresult result = UNKNOWN;
    put_u64(&whole, request->size);
    put_u32(&whole, kind);
    put_bytes(&whole, request->data ? (void *)request->data : "", request->size);
    memset(reply, 0, sizeof *reply);
    pthread_mutex_lock(&lock);
    if (transfer(1, whole.data, whole.size) && transfer(0, &size, sizeof size)) {
        reply->data = malloc(size + 1);
        reply->size = size;
        if (reply->data && transfer(0, reply->data, size)) result = (CUresult)get_u32(reply);
    } else {
        fprintf(stderr, "fa4gen recorder: the recorder does not answer any more\n");
    }
    pthread_mutex_unlock(&lock);
    free(whole.data);
    free(request->data);
    memset(request, 0, sizeof *request);
    return result;
}

void note(const char *what)
{
    struct message request = {0}, reply;
    if (connection < 0) return;
    put_text(&request, what);
    ask(NOTE, &request, &reply);
    free(reply.data);
}

CUresult ready(void)
{
    if (connection < 0 || owner != getpid()) return NOT_INITIALIZED;
    return left_behind;
}

void fail(CUresult result)
{
    if (!left_behind) left_behind = result;
}

static CUresult map_memory(const char *path)
{
    void *at;
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) {
        fprintf(stderr, "fa4gen recorder: cannot open %s\n", path);
        return UNKNOWN;
    }
    at = mmap((void *)(uintptr_t)memory_base, memory_size, PROT_READ | PROT_WRITE,
              MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, file, 0);
    close(file);
    if (at != (void *)(uintptr_t)memory_base) {
        fprintf(stderr, "fa4gen recorder: this program uses the addresses from %#llx itself\n",
                (unsigned long long)memory_base);
        return OUT_OF_MEMORY;
    }
    return SUCCESS;
}

static CUresult start(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct message request = {0}, reply;
    const char *path = getenv("FA4GEN_RECORDER");
    char *file;
    uint32_t count;
    CUresult result;
    if (!path || strlen(path) >= sizeof address.sun_path) {
        fprintf(stderr, "fa4gen recorder: start the program with fa4gen record\n");
        return NOT_INITIALIZED;
    }
    strcpy(address.sun_path, path);
    connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection < 0 || connect(connection, (struct sockaddr *)&address, sizeof address)) {
        fprintf(stderr, "fa4gen recorder: nobody listens at %s\n", path);
        close(connection);
        connection = -1;
        return NOT_INITIALIZED;
    }
    owner = getpid();
    put_u32(&request, (uint32_t)owner);
    result = ask(HELLO, &request, &reply);
    if (!result) {
        file = get_text(&reply);
        memory_base = get_u64(&reply);
        memory_size = get_u64(&reply);
        driver_version = (int)get_u32(&reply);
        device_name = get_text(&reply);
        for (count = get_u32(&reply); count; count--) {
            uint32_t at = get_u32(&reply), value = get_u32(&reply);
            if (at < MAX_ATTRIBUTE) {
                device_attribute[at] = (int)value;
                device_has[at] = 1;
            }
        }
        result = map_memory(file);
        free(file);
    }
    free(reply.data);
    if (result) {
        close(connection);
        connection = -1;
    }
    return result;
}

API CUresult cuInit(unsigned flags)
{
    CUresult result = SUCCESS;
    if (flags) return INVALID_VALUE;
    pthread_mutex_lock(&init_lock);
    if (connection < 0)
        result = start();
    else if (owner != getpid())
        result = NOT_INITIALIZED; /* as the driver: not after fork */
    pthread_mutex_unlock(&init_lock);
    return result;
}

API CUresult cuDriverGetVersion(int *version)
{
    if (!version) return INVALID_VALUE;
    *version = driver_version ? driver_version : 13000;
    return SUCCESS;
}
