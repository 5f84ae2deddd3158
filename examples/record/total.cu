// SPDX-License-Identifier: Apache-2.0
// Sums 256 numbers, and lacks a barrier. The right sum may come out nevertheless.
#include <cstdio>

__global__ void total(const int* numbers, int* sum) {
  __shared__ int part[256];
  part[threadIdx.x] = numbers[threadIdx.x];
  __syncthreads();
  for (unsigned half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    // __syncthreads() is missing here
  }
  if (threadIdx.x == 0) *sum = part[0];
}

int main() {
  int host[256], *numbers, *sum, result = 0;
  for (int i = 0; i < 256; ++i) host[i] = i;
  cudaMalloc(&numbers, sizeof host);
  cudaMalloc(&sum, sizeof result);
  cudaMemcpy(numbers, host, sizeof host, cudaMemcpyHostToDevice);
  total<<<1, 256>>>(numbers, sum);
  cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost);
  std::printf("%d: %s\n", result, cudaGetErrorString(cudaGetLastError()));
}
