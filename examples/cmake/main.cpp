// SPDX-License-Identifier: Apache-2.0
//
// Attention and a matrix product by vendored kernels. acme_best picks the one for the GPU that is here:
// the same program runs on Hopper and on Blackwell.
#include <acme.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>

#include "device.hpp"

namespace {

using Bf16 = std::uint16_t;

Bf16 to_bf16(float x) {  // cuts off, which is exact for the numbers used here
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<Bf16>(bits >> 16);
}

float to_float(Bf16 x) {
  const std::uint32_t bits = static_cast<std::uint32_t>(x) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

void check(const char *what, int status) {
  if (status != ACME_OK) throw std::runtime_error(std::string(what) + ": " + acme_status_text(status));
}

// Once for each stream that launches a kernel: zero before the first launch, zero after each.
void *workspace_for(Driver &driver, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  void *workspace = driver.allocate(bytes);
  check("workspace", acme_workspace_init(workspace, bytes, nullptr));
  return workspace;
}

// Every value of a column is the same, so that any weights must give exactly that value back.
bool attention(Driver &driver) {
  const std::int64_t batch = 1, rows = 200, heads = 2, key_heads = 1, depth = 128;
  acme_problem problem = {};
  problem.struct_size = sizeof problem;
  problem.family = ACME_ATTENTION;
  problem.dtype = problem.out_dtype = ACME_BF16;
  problem.batch = batch;
  problem.query_rows = problem.key_rows = rows;
  problem.query_heads = heads;
  problem.key_heads = key_heads;
  problem.depth = problem.value_depth = depth;
  problem.mask = ACME_MASK_CAUSAL;
  problem.lse = 1;
  const acme_kernel *kernel = nullptr;
  check("acme_best", acme_best(driver.ordinal(), &problem, &kernel));

  std::vector<Bf16> query(static_cast<std::size_t>(batch * rows * heads * depth));
  std::vector<Bf16> key(static_cast<std::size_t>(batch * rows * key_heads * depth)), value(key.size());
  for (std::size_t i = 0; i < query.size(); ++i) query[i] = to_bf16(static_cast<float>(i % 7) - 3.0f);
  for (std::size_t i = 0; i < key.size(); ++i) {
    key[i] = to_bf16(0.25f * static_cast<float>(i % 5) - 0.5f);
    value[i] = to_bf16(static_cast<float>(i % 128));
  }
  const std::vector<Bf16> nothing(query.size(), 0x7FC0);  // NaN

  acme_attention_args args = {};
  args.struct_size = sizeof args;
  args.batch = batch;
  args.query_rows = args.key_rows = rows;
  args.query_heads = heads;
  args.key_heads = key_heads;
  args.query = {driver.upload(query), rows * heads * depth, heads * depth, depth};
  args.key = {driver.upload(key), rows * key_heads * depth, key_heads * depth, depth};
  args.value = {driver.upload(value), rows * key_heads * depth, key_heads * depth, depth};
  args.out = {driver.upload(nothing), rows * heads * depth, heads * depth, depth};
  args.lse = static_cast<float *>(
      driver.allocate(static_cast<std::size_t>(batch * heads * rows) * sizeof(float)));
  args.workspace_bytes = static_cast<std::size_t>(acme_workspace_bytes(kernel, &args));
  args.workspace = workspace_for(driver, args.workspace_bytes);
  check("acme_attention", acme_attention(kernel, &args, /*stream=*/nullptr));

  const auto out = driver.download<Bf16>(args.out.data, query.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < out.size(); ++i)
    wrong += !(std::fabs(to_float(out[i]) - static_cast<float>(i % 128)) <= 0.5f);
  std::printf("attention by %s (%s): %zu of %zu elements are wrong\n", acme_kernel_name(kernel),
              acme_kernel_arch(kernel), wrong, out.size());
  return wrong == 0;
}

// A is 1 everywhere, B is 1 / 4: every element of the product is k / 4.
bool product(Driver &driver) {
  const std::int64_t m = 100, n = 136, k = 72;
  acme_problem problem = {};
  problem.struct_size = sizeof problem;
  problem.family = ACME_GEMM;
  problem.dtype = problem.out_dtype = ACME_BF16;
  problem.batch = 1;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  const acme_kernel *kernel = nullptr;
  check("acme_best", acme_best(driver.ordinal(), &problem, &kernel));

  acme_gemm_args args = {};
  args.struct_size = sizeof args;
  args.batch = 1;
  args.m = m;
  args.n = n;
  args.k = k;
  args.a = {driver.upload(std::vector<Bf16>(static_cast<std::size_t>(m * k), to_bf16(1.0f))), 0, k};
  args.b = {driver.upload(std::vector<Bf16>(static_cast<std::size_t>(n * k), to_bf16(0.25f))), 0, k};
  args.out = {driver.upload(std::vector<Bf16>(static_cast<std::size_t>(m * n), 0x7FC0)), 0, n};
  args.alpha = 1;
  args.workspace_bytes = static_cast<std::size_t>(acme_workspace_bytes(kernel, &args));
  args.workspace = workspace_for(driver, args.workspace_bytes);
  check("acme_gemm", acme_gemm(kernel, &args, /*stream=*/nullptr));

  const auto out = driver.download<Bf16>(args.out.data, static_cast<std::size_t>(m * n));
  std::size_t wrong = 0;
  for (const Bf16 x : out) wrong += to_float(x) != 0.25f * static_cast<float>(k);
  std::printf("product by %s (%s): %zu of %zu elements are wrong\n", acme_kernel_name(kernel),
              acme_kernel_arch(kernel), wrong, out.size());
  return wrong == 0;
}

}  // namespace

int main() {
  try {
    Driver driver;
    const bool passed = attention(driver) & product(driver);
    return passed ? 0 : 1;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "example: %s\n", error.what());
    return 1;
  }
}
