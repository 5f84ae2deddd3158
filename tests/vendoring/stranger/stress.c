/* The first case of the self-test, launched from a captured graph and from threads of its own
 * streams: stress REPLAYS THREADS [KERNEL].
 *
 * Compiled with the folder, whose prefix is acme, among the places of headers. Prints a line for
 * each kernel that the first device runs; the exit status is 0, or 1 where something is wrong. */
#define _POSIX_C_SOURCE 200809L
#define main selftest_main
#include "test/selftest.c"
#undef main

#include <pthread.h>

#define MORE_FUNCTIONS(ONE) \
  ONE(cuStreamCreate, (void **, unsigned)) \
  ONE(cuStreamSynchronize, (void *)) \
  ONE(cuStreamDestroy_v2, (void *)) \
  ONE(cuStreamBeginCapture_v2, (void *, int)) \
  ONE(cuStreamEndCapture, (void *, void **)) \
  ONE(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long)) \
  ONE(cuGraphLaunch, (void *, void *)) \
  ONE(cuGraphExecDestroy, (void *)) \
  ONE(cuGraphDestroy, (void *))

static struct {
  MORE_FUNCTIONS(POINTER)
} streams;

#define STREAMS(call) expect_driver(streams.call, #call)

#ifndef LAUNCHES_A_THREAD
#define LAUNCHES_A_THREAD 20
#endif

enum { NON_BLOCKING_STREAM = 1, CAPTURE_GLOBAL = 0 };

static void upload_outputs(const Problem *p) {
  upload(&p->tensors[OUT]);
  upload(&p->tensors[LSE]);
}

/* Whether the downloaded outputs are the bits of the first launch. */
static int same_result(const Problem *first, const Problem *p, const char *what) {
  int i;
  for (i = 0; i < WORKSPACE; i++) {
    const Tensor *t = &p->tensors[i];
    if (t->before && memcmp(first->tensors[i].after, t->after, t->bytes))
      return failed("%s: %s differs from the first launch's", what, t->name);
  }
  return workspace_is_zero(p);
}

/* The same problem with outputs and a workspace of its own. */
static Problem with_own_outputs(const Problem *p) {
  Problem own = *p;
  int i;
  for (i = 0; i < OUTPUTS; i++) {
    const Tensor *t = &p->tensors[i];
    if (!t->before) continue;
    allocate(&own.tensors[i]);
    memcpy(own.tensors[i].before, t->before, t->bytes);
  }
  bind_outputs(&own);
  return own;
}

/* Capture one launch by name, one prepared and one prepared with a graph, and replay all. */
static int check_graph(const Problem *first, int replays) {
  Problem p = with_own_outputs(first);
  void *stream = NULL, *graph = NULL, *executable = NULL;
  acme_prepared prepared;
  int passed, i;
  upload_outputs(&p);
  passed = succeeded(acme_prepare(p.facts->kernel(), &p.args, &prepared), "acme_prepare") &&
           succeeded(acme_prepare_graph(&prepared), "acme_prepare_graph");
  STREAMS(cuStreamCreate(&stream, NON_BLOCKING_STREAM));
  passed &= clean_workspace(&p, stream);
  STREAMS(cuStreamSynchronize(stream));
  STREAMS(cuStreamBeginCapture_v2(stream, CAPTURE_GLOBAL));
  passed &= succeeded(enqueue(&p, BY_NAME, stream), "a launch inside a capture");
  passed &= succeeded(enqueue(&p, PREPARED, stream), "a prepared launch inside a capture");
  passed &= succeeded(acme_launch_prepared(&prepared, stream), "one with a graph in a capture");
  STREAMS(cuStreamEndCapture(stream, &graph));
  for (i = 0; i < replays && passed; i++)
    passed = succeeded(acme_launch_prepared(&prepared, stream), "the graph of a launch");
  passed &= succeeded(acme_release_graph(&prepared), "acme_release_graph"); /* while it runs */
  if (passed) {
    STREAMS(cuStreamSynchronize(stream));
    download(p.tensors, OUTPUTS);
    passed = same_result(first, &p, "the graph of a launch");
    upload_outputs(&p);
    STREAMS(cuGraphInstantiateWithFlags(&executable, graph, 0));
    for (i = 0; i < replays; i++) STREAMS(cuGraphLaunch(executable, stream));
    STREAMS(cuStreamSynchronize(stream));
    download(p.tensors, OUTPUTS);
    passed &= same_result(first, &p, "a replayed graph");
    STREAMS(cuGraphExecDestroy(executable));
  }
  STREAMS(cuGraphDestroy(graph));
  STREAMS(cuStreamDestroy_v2(stream));
  free_tensors(p.tensors, OUTPUTS);
  return passed;
}

struct worker {
  Problem problem;
  void *context, *stream;
  int status;
};

static void *run_worker(void *of) {
  struct worker *worker = (struct worker *)of;
  int i;
  worker->status = driver.cuCtxSetCurrent(worker->context) ? -1 : 0;
  for (i = 0; i < LAUNCHES_A_THREAD && !worker->status; i++)
    worker->status = enqueue(&worker->problem, (enum launch)(i % LAUNCH_KINDS), worker->stream);
  if (!worker->status) worker->status = streams.cuStreamSynchronize(worker->stream) ? -1 : 0;
  return NULL;
}

static int check_threads(const Problem *first, void *context, int threads) {
  struct worker *workers = (struct worker *)take(sizeof *workers * (size_t)threads);
  pthread_t *handles = (pthread_t *)take(sizeof *handles * (size_t)threads);
  int i, started = 0, passed = 1;
  for (i = 0; i < threads; i++) {
    workers[i].problem = with_own_outputs(first);
    workers[i].context = context;
    STREAMS(cuStreamCreate(&workers[i].stream, NON_BLOCKING_STREAM));
    upload_outputs(&workers[i].problem);
    passed &= clean_workspace(&workers[i].problem, workers[i].stream);
  }
  while (started < threads &&
         pthread_create(&handles[started], NULL, run_worker, &workers[started]) == 0)
    started++;
  for (i = 0; i < started; i++) pthread_join(handles[i], NULL);
  if (started < threads) passed = failed("only %d threads could be started", started);
  for (i = 0; i < started; i++) {
    passed &= succeeded(workers[i].status, "a launch beside other threads");
    download(workers[i].problem.tensors, OUTPUTS);
    passed &= same_result(first, &workers[i].problem, "a launch beside other threads");
  }
  for (i = 0; i < threads; i++) {
    free_tensors(workers[i].problem.tensors, OUTPUTS);
    STREAMS(cuStreamDestroy_v2(workers[i].stream));
  }
  free(workers);
  free(handles);
  return passed;
}

static int stress(const Facts *facts, void *context, int replays, int threads) {
  Counts counts = {0, 0, 0};
  Random random = {5};
  Problem p;
  int passed = make_case(&p, facts, 1, 0, &random) == 1 && run_problem(&p, &random, 1, &counts);
  if (passed && replays) passed &= check_graph(&p, replays);
  if (passed && threads) passed &= check_threads(&p, context, threads);
  free_tensors(p.tensors, TENSORS);
  current_case = "";
  printf("%s: %s: %d graph replays, %d threads\n", facts->name, passed ? "passed" : "FAILED",
         replays, threads);
  fflush(stdout);
  return passed;
}

int main(int count, char **words) {
  const int replays = count > 2 ? atoi(words[1]) : 0, threads = count > 2 ? atoi(words[2]) : 0;
  const char *why = open_driver();
  void *library = OPEN_DRIVER(), *context = NULL;
  int device = 0, index, found = 1, passed = 1;
#define FIND_MORE(name, parameters) found &= find_function(library, #name, &streams.name);
  MORE_FUNCTIONS(FIND_MORE)
  if (why || !found || count < 3) {
    printf("%s\n", why ? why : "stress REPLAYS THREADS [KERNEL]");
    return 1;
  }
  DRIVER(cuDeviceGet(&device, 0));
  DRIVER(cuDevicePrimaryCtxRetain(&context, device));
  DRIVER(cuCtxSetCurrent(context));
  for (index = 0; index < KERNELS; index++) {
    if (!selected(&kernels[index], count > 3 ? words[3] : NULL)) continue;
    current_kernel = kernels[index].name;
    if (acme_load(kernels[index].kernel()) == 0)
      passed &= stress(&kernels[index], context, replays, threads);
  }
  return passed ? 0 : 1;
}
