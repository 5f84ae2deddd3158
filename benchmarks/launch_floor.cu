// Kernels that do nothing, by the bytes of their parameters; see launch_floor.c.
template <int kBytes>
struct alignas(8) Bytes {
  char bytes[kBytes];
};
struct alignas(64) Map {
  char bytes[128];
};

#define KERNEL(bytes) \
  extern "C" __global__ void p##bytes(const __grid_constant__ Bytes<bytes> parameters) {}
KERNEL(8)
KERNEL(64)
KERNEL(256)
KERNEL(512)
KERNEL(1024)
KERNEL(2048)

extern "C" __global__ void maps4(const __grid_constant__ Map a, const __grid_constant__ Map b,
                                 const __grid_constant__ Map c, const __grid_constant__ Map d) {}

extern "C" __global__ void __cluster_dims__(2, 1, 1)
    pair8(const __grid_constant__ Bytes<8> parameters) {}

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(384, 1)
    pair1024(const __grid_constant__ Bytes<1024> parameters) {}

// Keeps the GPU busy.
extern "C" __global__ void spin(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}
