/* CUDA graphs as one stream's launches and fills, captured and replayed one after the other.
 *
 * What else a program does on a stream that is being captured is not provided: see not_captured.
 */
#include "recorder.h"

#include <stdlib.h>
#include <string.h>

#define GRAPH_MAGIC 0x66613467u
#define EXECUTABLE_MAGIC 0x66613465u

struct node {
    struct message launch; /* empty: a fill */
    struct fill fill;
};

struct graph {
    uint32_t magic;
    unsigned count;
    struct node *nodes;
};

static int built_in(CUstream stream) { return (uintptr_t)stream < 3; }

int is_captured(CUstream stream) { return !built_in(stream) && stream->graph; }

CUresult not_captured(CUstream stream, const char *what)
{
    if (!is_captured(stream)) return SUCCESS;
    note(what);
    return NOT_SUPPORTED;
}

static struct node *add(struct graph *graph)
{
    graph->nodes = realloc(graph->nodes, (graph->count + 1) * sizeof *graph->nodes);
    memset(graph->nodes + graph->count, 0, sizeof *graph->nodes);
    return graph->nodes + graph->count++;
}

void capture_launch(CUstream stream, const struct message *request)
{
    add(stream->graph)->launch = *request;
}

void capture_fill(CUstream stream, const struct fill *fill) { add(stream->graph)->fill = *fill; }

static struct graph *make(uint32_t magic)
{
    struct graph *made = calloc(1, sizeof *made);
    made->magic = magic;
    return made;
}

static struct message copied(const struct message *request)
{
    struct message made = {0};
    put_bytes(&made, request->data, request->size);
    return made;
}

static CUresult destroy(struct graph *graph, uint32_t magic)
{
    unsigned at;
    TRY(ready());
    if (!graph || graph->magic != magic) return INVALID_VALUE;
    for (at = 0; at < graph->count; at++) free(graph->nodes[at].launch.data);
    graph->magic = 0;
    free(graph->nodes);
    free(graph);
    return SUCCESS;
}

API CUresult cuStreamBeginCapture_v2(CUstream stream, int mode)
{
    (void)mode; /* which other calls are refused meanwhile: none is unsafe here */
    TRY(require_context());
    if (built_in(stream)) return CAPTURE_UNSUPPORTED;
    if (stream->graph) return ILLEGAL_STATE;
    stream->graph = make(GRAPH_MAGIC);
    return SUCCESS;
}

API CUresult cuStreamEndCapture(CUstream stream, struct graph **graph)
{
    TRY(require_context());
    if (!graph) return INVALID_VALUE;
    if (!is_captured(stream)) return ILLEGAL_STATE;
    *graph = stream->graph;
    stream->graph = NULL;
    return SUCCESS;
}

API CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
    *status = is_captured(stream); /* 1: CU_STREAM_CAPTURE_STATUS_ACTIVE */
    return require_context();
}

API CUresult cuStreamGetCaptureInfo_v2(CUstream stream, int *status, uint64_t *id, void **graph,
                                       const void **dependencies, size_t *count)
{
    int captured = is_captured(stream);
    if (status) *status = captured;
    if (id) *id = captured ? (uintptr_t)stream->graph : 0;
    if (graph) *graph = captured ? stream->graph : NULL;
    if (dependencies) *dependencies = NULL;
    if (count) *count = 0;
    return require_context();
}

API CUresult cuStreamGetCaptureInfo_v3(CUstream stream, int *status, uint64_t *id, void **graph,
                                       const void **dependencies, const void **edges, size_t *count)
{
    if (edges) *edges = NULL;
    return cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count);
}

/* An executable is a copy: the graph may be destroyed. */
API CUresult cuGraphInstantiateWithFlags(struct graph **executable, struct graph *graph, uint64_t flags)
{
    unsigned at;
    (void)flags;
    TRY(require_context());
    if (!executable || !graph || graph->magic != GRAPH_MAGIC) return INVALID_VALUE;
    *executable = make(EXECUTABLE_MAGIC);
    for (at = 0; at < graph->count; at++) {
        struct node *node = add(*executable);
        *node = graph->nodes[at];
        if (node->launch.data) node->launch = copied(&node->launch);
    }
    return SUCCESS;
}

API CUresult cuGraphUpload(struct graph *executable, CUstream stream)
{
    TRY(require_context());
    TRY(not_captured(stream, "cuGraphUpload on a captured stream"));
    return executable && executable->magic == EXECUTABLE_MAGIC ? SUCCESS : INVALID_VALUE;
}

API CUresult cuGraphLaunch(struct graph *executable, CUstream stream)
{
    unsigned at;
    TRY(cuGraphUpload(executable, stream));
    for (at = 0; at < executable->count; at++) {
        const struct node *node = executable->nodes + at;
        if (node->launch.data) {
            struct message request = copied(&node->launch);
            TRY(send_launch(&request));
        } else {
            TRY(run_fill(&node->fill));
        }
    }
    return SUCCESS;
}

API CUresult cuGraphExecDestroy(struct graph *executable) { return destroy(executable, EXECUTABLE_MAGIC); }

API CUresult cuGraphDestroy(struct graph *graph) { return destroy(graph, GRAPH_MAGIC); }
