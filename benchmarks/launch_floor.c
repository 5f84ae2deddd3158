/* What a launch costs the calling thread, by what the launch has, of kernels that do nothing:
 *
 *   nvcc -arch=sm_90a -cubin -o floor.cubin benchmarks/launch_floor.cu
 *   cc -O2 -I/usr/local/cuda/include benchmarks/launch_floor.c -ldl -o floor
 *   ./floor floor.cubin 8 > FLOOR.json
 *
 * All ways in turn, in rounds, for so many seconds: of the means of 64 launches the median, the
 * 10th and the 90th percent, in microseconds. */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CALLS = 64, MOST_ROUNDS = 4000, MOST_WAYS = 64, KB = 1024 };
enum kind { PLAIN, EX, ONE_BUFFER, GRAPH, EVENT, FILL };
enum mode { BURST, SINGLE, BEHIND }; /* in a row, after a synchronisation, behind a busy GPU */

typedef struct way {
  const char *name;
  enum kind kind;
  enum mode mode;
  CUfunction function;
  CUlaunchConfig config;
  CUlaunchAttribute attribute;
  size_t bytes;
  CUgraphExec graph;
  double taken[MOST_ROUNDS];
} way;

static way ways[MOST_WAYS];
static int count;
static void *driver;
static CUlibrary library;
static CUstream stream, blocking;
static CUevent event;
static CUdeviceptr memory;
static CUfunction spin;
static char values[4096];
static void *pointers[4];

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x) /* cuda.h renames some functions by macros */
/* A function of the driver, which is looked up once. */
#define DRIVER(name, found) \
  static __typeof__(&name) found; \
  if (found == NULL) { \
    void *symbol_of = dlsym(driver, TEXT(name)); \
    memcpy(&found, &symbol_of, sizeof found); \
  }
#define CALL(name, ...) \
  do { \
    DRIVER(name, found_here) \
    if (found_here == NULL || found_here(__VA_ARGS__) != CUDA_SUCCESS) { \
      fprintf(stderr, "%s failed\n", TEXT(name)); \
      exit(1); \
    } \
  } while (0)

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static CUkernel find(const char *name, CUfunction *function) {
  CUkernel kernel;
  CALL(cuLibraryGetKernel, &kernel, library, name);
  CALL(cuKernelGetFunction, function, kernel);
  CALL(cuFuncSetAttribute, *function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 227 * KB);
  return kernel;
}

static way *add(const char *name, const char *kernel, enum kind kind, unsigned grid,
                unsigned threads, unsigned shared) {
  way *w = &ways[count++];
  w->name = name;
  w->kind = kind;
  find(kernel, &w->function);
  w->config.gridDimX = grid;
  w->config.gridDimY = w->config.gridDimZ = 1;
  w->config.blockDimX = threads;
  w->config.blockDimY = w->config.blockDimZ = 1;
  w->config.sharedMemBytes = shared;
  w->config.hStream = stream;
  w->bytes = (size_t)atoi(kernel + strcspn(kernel, "0123456789"));
  return w;
}

static way *by_kernel(way *w, const char *kernel) { /* CUkernel in the place of CUfunction */
  CUfunction unused;
  w->function = (CUfunction)find(kernel, &unused);
  return w;
}

static way *with(way *w, CUlaunchAttributeID id, unsigned value) {
  w->attribute.id = id;
  if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
    w->attribute.value.clusterDim.x = value;
    w->attribute.value.clusterDim.y = w->attribute.value.clusterDim.z = 1;
  } else { /* an int at the same place for the others here */
    w->attribute.value.cooperative = (int)value;
  }
  w->config.attrs = &w->attribute;
  w->config.numAttrs = 1;
  return w;
}

static void make_graph(way *w, int nodes) {
  CUgraph graph;
  CUgraphNode node, before = NULL;
  CUDA_KERNEL_NODE_PARAMS p;
  memset(&p, 0, sizeof p);
  p.func = w->function;
  p.gridDimX = p.gridDimY = p.gridDimZ = 1;
  p.blockDimX = w->config.blockDimX;
  p.blockDimY = p.blockDimZ = 1;
  p.kernelParams = pointers;
  CALL(cuGraphCreate, &graph, 0);
  for (; nodes > 0; --nodes) {
    CALL(cuGraphAddKernelNode, &node, graph, before ? &before : NULL, before != NULL, &p);
    before = node;
  }
  CALL(cuGraphInstantiate, &w->graph, graph, 0);
  CALL(cuGraphUpload, w->graph, stream);
}

static void launch(way *w) {
  const CUlaunchConfig *c = &w->config;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, values, CU_LAUNCH_PARAM_BUFFER_SIZE, &w->bytes,
                   CU_LAUNCH_PARAM_END};
  switch (w->kind) {
    case PLAIN:
      CALL(cuLaunchKernel, w->function, c->gridDimX, 1, 1, c->blockDimX, 1, 1, c->sharedMemBytes,
           c->hStream, pointers, NULL);
      break;
    case EX: CALL(cuLaunchKernelEx, c, w->function, pointers, NULL); break;
    case ONE_BUFFER: CALL(cuLaunchKernelEx, c, w->function, NULL, extra); break;
    case GRAPH: CALL(cuGraphLaunch, w->graph, c->hStream); break;
    case EVENT: CALL(cuEventRecord, event, c->hStream); break;
    case FILL: CALL(cuMemsetD8Async, memory, 0, 256, c->hStream); break;
  }
}

static double sample(way *w) {
  long long cycles = 1200000;
  void *spin_parameters[] = {&cycles};
  double taken = 0, begin;
  int i;
  CALL(cuCtxSynchronize);
  if (w->mode == SINGLE) {
    for (i = 0; i < 8; ++i) {
      CALL(cuCtxSynchronize);
      begin = now();
      launch(w);
      taken += now() - begin;
    }
    return taken / 8;
  }
  if (w->mode == BEHIND)
    CALL(cuLaunchKernel, spin, 1, 1, 1, 1, 1, 1, 0, stream, spin_parameters, NULL);
  begin = now();
  for (i = 0; i < CALLS; ++i) launch(w);
  return (now() - begin) / CALLS;
}

static void add_ways(void) {
  const unsigned large = 227 * KB;
  add("8 bytes", "p8", EX, 1, 128, 0);
  add("64 bytes", "p64", EX, 1, 128, 0);
  add("256 bytes", "p256", EX, 1, 128, 0);
  add("512 bytes", "p512", EX, 1, 128, 0);
  add("1024 bytes", "p1024", EX, 1, 128, 0);
  add("2048 bytes", "p2048", EX, 1, 128, 0);
  add("4 parameters of 128 bytes", "maps4", EX, 1, 384, 0);
  add("8 bytes, cuLaunchKernel", "p8", PLAIN, 1, 128, 0);
  by_kernel(add("8 bytes, CUkernel", "p8", EX, 1, 128, 0), "p8");
  add("8 bytes, as one buffer", "p8", ONE_BUFFER, 1, 128, 0);
  add("8 bytes, cluster compiled in", "pair8", EX, 2, 128, 0);
  with(add("8 bytes, cluster as attribute", "p8", EX, 2, 128, 0),
       CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 2);
  with(add("8 bytes, cooperative", "p8", EX, 1, 128, 0), CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1);
  with(add("8 bytes, programmatic serialization", "p8", EX, 1, 128, 0),
       CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 1);
  add("8 bytes, 48 KB shared", "p8", EX, 1, 128, 48 * KB);
  add("8 bytes, 227 KB shared", "p8", EX, 1, 128, large);
  add("8 bytes, 132 CTAs", "p8", EX, 132, 128, 0);
  add("8 bytes, legacy stream", "p8", EX, 1, 128, 0)->config.hStream = NULL;
  add("8 bytes, stream of the thread", "p8", EX, 1, 128, 0)->config.hStream = CU_STREAM_PER_THREAD;
  add("8 bytes, blocking stream", "p8", EX, 1, 128, 0)->config.hStream = blocking;
  add("8 bytes, one after a synchronisation", "p8", EX, 1, 128, 0)->mode = SINGLE;
  add("8 bytes, behind a busy GPU", "p8", EX, 1, 128, 0)->mode = BEHIND;
  add("1024 bytes, as one buffer", "p1024", ONE_BUFFER, 1, 128, 0);
  add("1024 bytes, pair, 384 threads, 227 KB, 132 CTAs", "pair1024", EX, 132, 384, large);
  by_kernel(add("the same, CUkernel", "pair1024", EX, 132, 384, large), "pair1024");
  make_graph(add("graph of one, 8 bytes", "p8", GRAPH, 1, 128, 0), 1);
  make_graph(add("graph of one, 1024 bytes", "p1024", GRAPH, 1, 128, 0), 1);
  make_graph(add("graph of ten, 8 bytes (the whole graph)", "p8", GRAPH, 1, 128, 0), 10);
  add("cuEventRecord", "p8", EVENT, 1, 128, 0);
  add("cuMemsetD8Async of 256 bytes", "p8", FILL, 1, 128, 0);
}

static int order(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  static char cubin[1 << 20], name[200];
  FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
  double begin;
  int rounds = 0, version, i;
  CUdevice device;
  CUcontext context;
  if (file == NULL || fread(cubin, 1, sizeof cubin, file) == 0) return 2;
  driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) return 3;
  CALL(cuInit, 0);
  CALL(cuDeviceGet, &device, 0);
  CALL(cuDeviceGetName, name, sizeof name, device);
  CALL(cuDriverGetVersion, &version);
  CALL(cuDevicePrimaryCtxRetain, &context, device);
  CALL(cuCtxSetCurrent, context);
  CALL(cuLibraryLoadData, &library, cubin, NULL, NULL, 0, NULL, NULL, 0);
  CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  CALL(cuStreamCreate, &blocking, CU_STREAM_DEFAULT);
  CALL(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
  CALL(cuMemAlloc, &memory, 1 << 20);
  find("spin", &spin);
  for (i = 0; i < 4; ++i) pointers[i] = values + 128 * i;
  add_ways();
  for (i = 0; i < 2 * count; ++i) sample(&ways[i % count]);
  begin = now();
  for (; rounds < MOST_ROUNDS && now() - begin < 1e6 * atof(argv[2]); ++rounds)
    for (i = 0; i < count; ++i) ways[i].taken[rounds] = sample(&ways[i]);
  printf("{\"device\": \"%s\", \"driver\": %d, \"core\": %d, ", name, version, sched_getcpu());
  printf("\"rounds\": %d, \"calls\": %d,\n", rounds, (int)CALLS);
  printf(" \"us\": {");
  for (i = 0; i < count; ++i) {
    double *t = ways[i].taken;
    qsort(t, (size_t)rounds, sizeof *t, order);
    printf("%s\n  \"%s\": [%.3f, %.3f, %.3f]", i ? "," : "", ways[i].name, t[rounds / 2],
           t[rounds / 10], t[9 * rounds / 10]);
  }
  printf("\n }}\n");
  return 0;
}
