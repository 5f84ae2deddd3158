// SPDX-License-Identifier: Apache-2.0
//
// Device memory and a stream over the CUDA driver API, opened at run time so that the example builds
// without a CUDA toolkit. A project that has torch, CuPy or the CUDA runtime has all of this already.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

class Driver {
 public:
  Driver() {
    library_ = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library_) throw std::runtime_error("no CUDA driver on this machine");
    check("cuInit", call<int(unsigned)>("cuInit")(0));
    check("cuDeviceGet", call<int(int *, int)>("cuDeviceGet")(&ordinal_, 0));
    void *context = nullptr;
    check("cuDevicePrimaryCtxRetain",
          call<int(void **, int)>("cuDevicePrimaryCtxRetain")(&context, ordinal_));
    check("cuCtxSetCurrent", call<int(void *)>("cuCtxSetCurrent")(context));
  }

  int ordinal() const { return ordinal_; }

  void *allocate(std::size_t bytes) {
    std::uint64_t address = 0;
    check("cuMemAlloc", call<int(std::uint64_t *, std::size_t)>("cuMemAlloc_v2")(&address, bytes));
    return reinterpret_cast<void *>(address);
  }

  template <typename T>
  void *upload(const std::vector<T> &values) {
    void *memory = allocate(values.size() * sizeof(T));
    check("cuMemcpyHtoD", call<int(std::uint64_t, const void *, std::size_t)>("cuMemcpyHtoD_v2")(
                              reinterpret_cast<std::uint64_t>(memory), values.data(),
                              values.size() * sizeof(T)));
    return memory;
  }

  // Waits for everything that was enqueued on the default stream.
  template <typename T>
  std::vector<T> download(const void *memory, std::size_t count) {
    std::vector<T> values(count);
    check("cuMemcpyDtoH", call<int(void *, std::uint64_t, std::size_t)>("cuMemcpyDtoH_v2")(
                              values.data(), reinterpret_cast<std::uint64_t>(memory),
                              count * sizeof(T)));
    return values;
  }

 private:
  template <typename F>
  F *call(const char *name) {
    void *found = dlsym(library_, name);
    if (!found) throw std::runtime_error(std::string("the CUDA driver lacks ") + name);
    return reinterpret_cast<F *>(found);
  }

  static void check(const char *what, int error) {
    if (error) throw std::runtime_error(std::string(what) + " gives CUresult " + std::to_string(error));
  }

  void *library_ = nullptr;
  int ordinal_ = 0;
};
