/* Host time of launches: how long one call takes the calling thread. */
#include <stdint.h>
#include <time.h>

double fa4gen_host_seconds(int (*launch)(const void *, void *), const void *args, void *stream,
                           int count);

/* Mean seconds of `count` calls; -1 where one of them failed. The caller sees to it that the
 * stream's queue has room for all of them, so that no call waits for the GPU. */
double fa4gen_host_seconds(int (*launch)(const void *, void *), const void *args, void *stream,
                           int count) {
  struct timespec begin, end;
  int i;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (i = 0; i < count; ++i) {
    if (launch(args, stream) != 0) return -1.0;
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  return ((double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec)) /
         count;
}
