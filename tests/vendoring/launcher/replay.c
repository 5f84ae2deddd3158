/* Replays recorded calls of the launcher in several threads at once, and compares each status with
 * the recorded one: replay RECORDS THREADS.
 *
 * A record is a struct record and the bytes of the arguments. Each thread makes every call directly
 * and as a prepared launch that was moved in between; threads begin at the same record, so that they
 * meet in what is done once. Prepared launches of all threads have to be the same, bit for bit.
 */
#include "acme.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS 64

struct record {
  int32_t kernel, device, status, bytes;
};

static unsigned char *file;
static size_t file_bytes;
static int record_count, thread_count;
static pthread_barrier_t barrier;
static acme_prepared *prepared[MAX_THREADS];
static int failures[MAX_THREADS];
static void (*set_thread)(int device);

static const int too_large = ACME_NO_KERNEL + 256 * ACME_ARG_PROBLEM;

/* No kernel can number its tiles, and no arithmetic may overflow on the way to that. */
static int best_of_the_largest(int device, acme_problem *problem) {
  const acme_kernel *best;
  problem->batch = problem->query_rows = problem->key_rows = INT32_MAX;
  problem->query_heads = problem->key_heads = INT32_MAX;
  problem->m = problem->n = problem->k = INT32_MAX;
  return acme_best(device, problem, &best);
}

static void replay_one(int thread, int number, const struct record *record, const void *bytes) {
  const acme_kernel *kernel = acme_kernel_at(record->kernel);
  acme_problem traits;
  acme_prepared moved;
  char hash[65];
  int direct, status;
  /* exactly as large as the struct, so that nothing past it can be read unseen */
  void *args = malloc((size_t)record->bytes);
  memcpy(args, bytes, (size_t)record->bytes);
  traits.struct_size = sizeof traits;
  acme_kernel_traits(kernel, &traits);
  set_thread(record->device);
  if (traits.family == ACME_GEMM) {
    direct = acme_gemm(kernel, (const acme_gemm_args *)args, NULL);
  } else {
    direct = acme_attention(kernel, (const acme_attention_args *)args, NULL);
  }
  status = acme_prepare(kernel, args, &prepared[thread][number]);
  if (status == ACME_OK) {
    memcpy(&moved, &prepared[thread][number], sizeof moved);
    status = acme_launch_prepared(&moved, NULL);
  }
  free(args);
  if (direct != record->status || status != record->status) {
    printf("record %d, %s: expected %#x, got %#x and, prepared, %#x: %s\n", number,
           acme_kernel_name(kernel), (unsigned)record->status, (unsigned)direct, (unsigned)status,
           acme_status_text(direct));
    ++failures[thread];
  }
  if (number % 16 == 0 && best_of_the_largest(record->device, &traits) != too_large) {
    printf("record %d: the largest problem has a kernel\n", number);
    ++failures[thread];
  }
  if (number % 16 == 0 && (acme_kernel_sha256(kernel, hash) != ACME_OK || strlen(hash) != 64 ||
                           acme_load(kernel) != ACME_OK)) {
    printf("record %d: the kernel cannot be read\n", number);
    ++failures[thread];
  }
}

static void *replay(void *argument) {
  int thread = *(const int *)argument;
  size_t at = 0;
  int number = 0;
  pthread_barrier_wait(&barrier);
  for (; at < file_bytes; ++number) {
    struct record record;
    memcpy(&record, file + at, sizeof record);
    at += sizeof record;
    replay_one(thread, number, &record, file + at);
    at += (size_t)record.bytes;
  }
  return NULL;
}

static void read_file(const char *path) {
  FILE *stream = fopen(path, "rb");
  size_t at = 0;
  if (stream == NULL) exit(2);
  fseek(stream, 0, SEEK_END);
  file_bytes = (size_t)ftell(stream);
  rewind(stream);
  file = malloc(file_bytes + 1);
  if (fread(file, 1, file_bytes, stream) != file_bytes) exit(2);
  fclose(stream);
  for (; at < file_bytes; ++record_count) {
    struct record record;
    memcpy(&record, file + at, sizeof record);
    at += sizeof record + (size_t)record.bytes;
  }
}

/* Devices: the compute capability and the multiprocessors of each, as in shared_devices of Python. */
static void set_up(void) {
  static const int sm[] = {90, 90, 90, 90, 100, 100, 100, 100, 103, 103, 103, 103};
  static const int units[] = {132, 1, 77, 148, 132, 1, 77, 148, 132, 1, 77, 148};
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  int (*set_devices)(int, const int *, const int *);
  void *found = driver ? dlsym(driver, "standin_set_devices") : NULL;
  if (found == NULL) exit(2);
  memcpy(&set_devices, &found, sizeof found);
  found = dlsym(driver, "standin_set_thread");
  memcpy(&set_thread, &found, sizeof found);
  set_devices(12, sm, units);
}

int main(int argc, char **argv) {
  pthread_t threads[MAX_THREADS];
  int numbers[MAX_THREADS];
  int i, failed = 0;
  if (argc != 3) return 2;
  read_file(argv[1]);
  thread_count = atoi(argv[2]);
  set_up();
  pthread_barrier_init(&barrier, NULL, (unsigned)thread_count);
  for (i = 0; i < thread_count; ++i) {
    numbers[i] = i;
    prepared[i] = calloc((size_t)record_count, sizeof(acme_prepared));
    if (pthread_create(&threads[i], NULL, replay, &numbers[i])) return 2;
  }
  for (i = 0; i < thread_count; ++i) {
    pthread_join(threads[i], NULL);
    failed += failures[i];
  }
  for (i = 1; i < thread_count; ++i) {
    if (memcmp(prepared[0], prepared[i], (size_t)record_count * sizeof(acme_prepared))) {
      printf("thread %d prepared other launches than thread 0\n", i);
      ++failed;
    }
  }
  printf("%d records, %d threads, %d failures\n", record_count, thread_count, failed);
  return failed != 0;
}
