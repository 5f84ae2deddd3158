// A struct parameter with pointers and a tensor map, as CUTLASS and others have it.
struct alignas(128) Map {
  char bytes[128];
};
struct Problem {
  Map map;
  float *out;
  const float *bias;
  int rows;
  float factor;
};

__device__ int launches = 40;

// out[r][c] = source[r + 8 * block][c] * factor + bias[c], a box of 8 rows of 32 through TMA
extern "C" __global__ void scale(const __grid_constant__ Problem problem) {
  __shared__ alignas(128) float tile[8 * 32];
  __shared__ alignas(8) unsigned long long bar;
  unsigned barrier = (unsigned)__cvta_generic_to_shared(&bar);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(barrier) : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
        ::"r"((unsigned)__cvta_generic_to_shared(tile)), "l"(&problem.map), "r"(0), "r"(8 * blockIdx.x),
          "r"(barrier)
        : "memory");
    atomicAdd(&launches, 1);
  }
  __syncthreads();
  asm volatile(
      "{.reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra W;}" ::"r"(barrier)
      : "memory");
  for (int row = 0; row < 8; row++)
    if (8 * blockIdx.x + row < problem.rows)
      problem.out[(8 * blockIdx.x + row) * 32 + threadIdx.x] =
          tile[row * 32 + threadIdx.x] * problem.factor + problem.bias[threadIdx.x];
}

// the rank in the cluster, and dynamic shared memory
extern "C" __global__ void ranks(int *out) {
  extern __shared__ int values[];
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  values[8000 + threadIdx.x] = rank;
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = values[8000 + threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(64) stray(int *out) { out[1 << 20] = 1; }

// Two launches of which the second may start before the first has ended: it reads what that writes.
extern "C" __global__ void produce(int *values) { values[threadIdx.x] = threadIdx.x + 1; }

__device__ __noinline__ void let_go() { asm volatile("griddepcontrol.launch_dependents;"); }
extern "C" __global__ void produce_late(int *values) {
  let_go();
  values[threadIdx.x] = threadIdx.x + 1;
}

extern "C" __global__ void hasty(const int *values, int *out) {
  out[threadIdx.x] = *(volatile const int *)(values + threadIdx.x);
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

extern "C" __global__ void patient(const int *values, int *out) {
  int other = *(volatile const int *)(values + 1024);  // nobody writes that
  asm volatile("griddepcontrol.wait;" ::: "memory");
  out[threadIdx.x] = *(volatile const int *)(values + threadIdx.x) + other;
}
