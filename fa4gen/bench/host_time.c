/* Host time of launches: how long one call takes the calling thread.
 *
 * The caller sees to it that the stream's queue has room for all calls, so that none waits for the
 * GPU. Both functions return the mean seconds of `count` calls, -1 where one of them failed.
 */
#include <time.h>

typedef int (*launch_function)(const void *args, void *stream);
typedef int (*driver_launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                             unsigned block_x, unsigned block_y, unsigned block_z,
                             unsigned shared_bytes, void *stream, void **parameters, void **extra);

double fa4gen_host_seconds(launch_function launch, const void *args, void *stream, int count);
double fa4gen_driver_seconds(driver_launch launch, void *function, unsigned grid, unsigned block,
                             unsigned shared_bytes, void *stream, void **parameters, int count);

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Calls of a vendored function, prepared or not. */
double fa4gen_host_seconds(launch_function launch, const void *args, void *stream, int count) {
  const double begin = now();
  int i;
  for (i = 0; i < count; ++i) {
    if (launch(args, stream) != 0) return -1.0;
  }
  return (now() - begin) / count;
}

/* Calls of cuLaunchKernel itself: a lower bound for every launcher. */
double fa4gen_driver_seconds(driver_launch launch, void *function, unsigned grid, unsigned block,
                             unsigned shared_bytes, void *stream, void **parameters, int count) {
  const double begin = now();
  int i;
  for (i = 0; i < count; ++i) {
    if (launch(function, grid, 1, 1, block, 1, 1, shared_bytes, stream, parameters, NULL) != 0) {
      return -1.0;
    }
  }
  return (now() - begin) / count;
}
