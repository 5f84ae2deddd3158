/* Mean seconds of `count` launches by cuLaunchKernelEx; -1 where one fails. */
#include <string.h>
#include <time.h>

typedef struct launch_config { /* CUlaunchConfig */
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned dynamic_shared_bytes;
  void *stream, *attributes;
  unsigned attribute_count;
} launch_config;

typedef int (*launch_function)(const launch_config *, void *, void **, void **);

double launch_seconds(launch_function launch, void *function, unsigned grid, unsigned block,
                      unsigned shared_bytes, void *stream, void **parameters, int count);

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

double launch_seconds(launch_function launch, void *function, unsigned grid, unsigned block,
                      unsigned shared_bytes, void *stream, void **parameters, int count) {
  launch_config config;
  double begin;
  int i;
  memset(&config, 0, sizeof config);
  config.grid_x = grid;
  config.grid_y = config.grid_z = 1;
  config.block_x = block;
  config.block_y = config.block_z = 1;
  config.dynamic_shared_bytes = shared_bytes;
  config.stream = stream;
  begin = now();
  for (i = 0; i < count; ++i) {
    if (launch(&config, function, parameters, NULL) != 0) return -1.0;
  }
  return (now() - begin) / count;
}
