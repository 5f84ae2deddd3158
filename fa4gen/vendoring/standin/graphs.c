/* Streams that are captured, and executable graphs: launching one records its launches. */
#include "standin.h"

#include <stdlib.h>
#include <string.h>

#define STREAM_MAGIC 0x66615354u
#define GRAPH_MAGIC 0x66614752u
#define EXECUTABLE_MAGIC 0x66614758u
#define NON_BLOCKING 1
#define RELAXED 2
#define MOST_STREAMS 256
#define MOST_NODES 8

/* Nodes follow one another, as they do in one stream. What is destroyed keeps its memory, so that a
 * handle that is used afterwards is refused. */
struct graph {
    uint32_t magic;
    int count, device;
    char *nodes[MOST_NODES]; /* the words of launches */
};

struct stream {
    uint32_t magic;
    struct graph *graph; /* while it is captured */
};

static struct stream *streams[MOST_STREAMS];
static void *captured_elsewhere;
static int living = 0;

static void *make(size_t bytes, uint32_t magic) {
    uint32_t *made = take(bytes);
    *made = magic;
    ++living;
    return made;
}

static CUresult destroy(void *object, uint32_t magic) {
    CUresult result = INVALID_HANDLE;
    lock();
    if (object && *(uint32_t *)object == magic) {
        *(uint32_t *)object = 0;
        --living;
        result = SUCCESS;
    }
    unlock();
    return result;
}

/* Handles that tests make up are no addresses: only ours are followed. */
static struct stream *find(const void *stream) {
    for (int i = 0; i < MOST_STREAMS; ++i)
        if (streams[i] && streams[i] == stream && streams[i]->magic) return streams[i];
    return NULL;
}

CUresult enqueue(void *stream, const char *launch) {
    CUresult result = SUCCESS;
    lock();
    struct stream *of = find(stream);
    if (!of || !of->graph) {
        record("launch %llu %s", (unsigned long long)(uintptr_t)stream, launch);
    } else if (of->graph->count == MOST_NODES) {
        result = OUT_OF_RESOURCES;
    } else {
        of->graph->nodes[of->graph->count++] = strdup(launch);
    }
    unlock();
    return result;
}

/* ---- Set and asked by tests -------------------------------------------------------------------- */

/* Somebody else captures this stream: what is launched there is recorded as ever. 0: none. */
API void standin_set_captured(uint64_t stream) { captured_elsewhere = (void *)(uintptr_t)stream; }

/* Streams, graphs and executable graphs that were made and not destroyed. */
API int standin_living(void) { return living; }

/* ---- The driver's ------------------------------------------------------------------------------ */

API CUresult cuStreamCreate(void **stream, unsigned flags) {
    TRY(begin("cuStreamCreate"));
    if (current_device() < 0) return INVALID_CONTEXT;
    if (flags > NON_BLOCKING) return INVALID_VALUE;
    lock();
    int i = 0;
    while (i < MOST_STREAMS && streams[i] && streams[i]->magic) ++i;
    if (i < MOST_STREAMS) *stream = streams[i] = make(sizeof *streams[i], STREAM_MAGIC);
    unlock();
    return i < MOST_STREAMS ? SUCCESS : OUT_OF_RESOURCES;
}

API CUresult cuStreamDestroy_v2(void *stream) {
    TRY(begin("cuStreamDestroy_v2"));
    struct stream *of = find(stream);
    if (of && of->graph) (void)destroy(of->graph, GRAPH_MAGIC); /* its capture was never ended */
    return destroy(of, STREAM_MAGIC);
}

/* Others than relaxed ones hinder what threads may do meanwhile, which a launcher must not. */
API CUresult cuStreamBeginCapture_v2(void *stream, int mode) {
    TRY(begin("cuStreamBeginCapture_v2"));
    struct stream *of = find(stream);
    if (!of || of->graph || mode != RELAXED) return INVALID_VALUE;
    lock();
    of->graph = make(sizeof *of->graph, GRAPH_MAGIC);
    of->graph->device = current_device();
    unlock();
    return SUCCESS;
}

API CUresult cuStreamEndCapture(void *stream, struct graph **graph) {
    TRY(begin("cuStreamEndCapture"));
    struct stream *of = find(stream);
    if (!of || !of->graph) return INVALID_VALUE;
    *graph = of->graph;
    of->graph = NULL;
    return SUCCESS;
}

API CUresult cuStreamIsCapturing(void *stream, int *status) {
    TRY(begin("cuStreamIsCapturing"));
    struct stream *of = find(stream);
    *status = (stream && stream == captured_elsewhere) || (of && of->graph);
    return SUCCESS;
}

API CUresult cuGraphDestroy(struct graph *graph) {
    TRY(begin("cuGraphDestroy"));
    return destroy(graph, GRAPH_MAGIC);
}

API CUresult cuGraphInstantiateWithFlags(struct graph **executable, const struct graph *graph,
                                         unsigned long long flags) {
    TRY(begin("cuGraphInstantiateWithFlags"));
    if (!graph || graph->magic != GRAPH_MAGIC) return INVALID_HANDLE;
    if (flags) return INVALID_VALUE;
    lock();
    struct graph *made = make(sizeof *made, EXECUTABLE_MAGIC);
    made->count = graph->count;
    made->device = graph->device;
    memcpy(made->nodes, graph->nodes, sizeof made->nodes);
    unlock();
    *executable = made;
    return SUCCESS;
}

API CUresult cuGraphLaunch(const struct graph *executable, void *stream) {
    TRY(begin("cuGraphLaunch"));
    if (!executable || executable->magic != EXECUTABLE_MAGIC) return INVALID_HANDLE;
    if (executable->device != current_device()) return INVALID_CONTEXT;
    if (stream && stream == captured_elsewhere) return CAPTURE_UNSUPPORTED;
    for (int i = 0; i < executable->count; ++i) TRY(enqueue(stream, executable->nodes[i]));
    return SUCCESS;
}

API CUresult cuGraphExecDestroy(struct graph *executable) {
    TRY(begin("cuGraphExecDestroy"));
    return destroy(executable, EXECUTABLE_MAGIC);
}
