// D = A B + C / 2 in bfloat16 with float32 sums, by a kernel of CUTLASS's collective builders.
// A and B are K-major, C and D row-major. The compiler's command line gives architecture and tiles:
//   ARCH, SCHEDULE, EPILOGUE; TILE_M and TILE_N, by 64 of K, for clusters of two CTAs along M.
// A persistent kernel starts one cluster only, whose CTAs then have several tiles each.
// Arguments: m n k, and the file that gets the addresses of A, B, C and D.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/dispatch_policy.hpp"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/util/packed_stride.hpp"

using namespace cute;
using Element = cutlass::bfloat16_t;
using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;
using TileShape = Shape<Int<TILE_M>, Int<TILE_N>, _64>;
using ClusterShape = Shape<_2, _1, _1>;
constexpr int kAlignment = 8;
constexpr int kProcessors = 2;

using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::ARCH, cutlass::arch::OpClassTensorOp, TileShape, ClusterShape,
    cutlass::epilogue::collective::EpilogueTileAuto, float, float, Element, Row, kAlignment,
    Element, Row, kAlignment, cutlass::epilogue::EPILOGUE>::CollectiveOp;

using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::ARCH, cutlass::arch::OpClassTensorOp, Element, Row, kAlignment, Element, Column,
    kAlignment, float, TileShape, ClusterShape,
    cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(
        sizeof(typename Epilogue::SharedStorage))>,
    cutlass::gemm::SCHEDULE>::CollectiveOp;

using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

static void check(bool good, const char *what)
{
    if (good) return;
    std::fprintf(stderr, "%s failed\n", what);
    std::exit(1);
}

static Element *filled(std::size_t count, std::uint32_t state)
{
    std::vector<Element> host(count);
    for (Element &one : host) {
        state = state * 1664525u + 1013904223u;
        one = Element(static_cast<float>(state >> 8) / 8388608.0f - 1.0f);
    }
    Element *device = nullptr;
    const std::size_t bytes = count * sizeof(Element);
    check(cudaMalloc(&device, bytes) == cudaSuccess, "cudaMalloc");
    check(cudaMemcpy(device, host.data(), bytes, cudaMemcpyHostToDevice) == cudaSuccess,
          "cudaMemcpy");
    return device;
}

int main(int argc, char **argv)
{
    check(argc == 5, "reading the arguments");
    const int m = std::atoi(argv[1]), n = std::atoi(argv[2]), k = std::atoi(argv[3]);
    Element *a = filled(std::size_t(m) * k, 1), *b = filled(std::size_t(n) * k, 2);
    Element *c = filled(std::size_t(m) * n, 3), *d = nullptr;
    const std::size_t bytes = std::size_t(m) * n * sizeof(Element);
    check(cudaMalloc(&d, bytes) == cudaSuccess, "cudaMalloc");
    check(cudaMemset(d, 0xff, bytes) == cudaSuccess, "cudaMemset");

    cutlass::KernelHardwareInfo hardware =
        cutlass::KernelHardwareInfo::make_kernel_hardware_info<Kernel>(0, kProcessors);
    typename Gemm::Arguments arguments{
        cutlass::gemm::GemmUniversalMode::kGemm,
        {m, n, k, 1},
        {a, cutlass::make_cute_packed_stride(typename Kernel::StrideA{}, {m, k, 1}), b,
         cutlass::make_cute_packed_stride(typename Kernel::StrideB{}, {n, k, 1})},
        {{1.0f, 0.5f},
         c, cutlass::make_cute_packed_stride(typename Kernel::StrideC{}, {m, n, 1}),
         d, cutlass::make_cute_packed_stride(typename Kernel::StrideD{}, {m, n, 1})},
        hardware};
    Gemm gemm;
    void *workspace = nullptr;
    const std::size_t wanted = Gemm::get_workspace_size(arguments);
    if (wanted) check(cudaMalloc(&workspace, wanted) == cudaSuccess, "cudaMalloc");
    check(gemm.can_implement(arguments) == cutlass::Status::kSuccess, "can_implement");
    check(gemm.initialize(arguments, workspace) == cutlass::Status::kSuccess, "initialize");
    check(gemm.run() == cutlass::Status::kSuccess, "run");
    check(cudaDeviceSynchronize() == cudaSuccess, "cudaDeviceSynchronize");

    std::FILE *out = std::fopen(argv[4], "w");
    check(out != nullptr, "fopen");
    for (const void *p : {(void *)a, (void *)b, (void *)c, (void *)d})
        std::fprintf(out, "%llu\n", (unsigned long long)(std::uintptr_t)p);
    std::fclose(out);
    return 0;
}
