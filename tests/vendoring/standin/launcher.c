/* As little of a launcher as shows where its calls end up. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

typedef int (*any)();

int launch(const void *image, const char *entry, int dynamic_shared, unsigned grid, unsigned block,
           unsigned cluster, void *stream, void **parameters) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *library, *kernel, *function;
    int device, result;
    if (!driver) return -1;
    struct {
        unsigned grid[3], block[3], shared;
        void *stream;
        const void *attributes;
        unsigned count;
    } config = {{grid, 1, 1}, {block, 1, 1}, (unsigned)dynamic_shared, stream, NULL, 0};
    struct {
        int id, padding;
        unsigned dims[16];
    } attribute = {4, 0, {cluster, 1, 1}};
    if (cluster) config.attributes = &attribute, config.count = 1;
    if ((result = ((int (*)(int *))dlsym(driver, "cuCtxGetDevice"))(&device))) return result;
    result = ((int (*)(void **, const void *, void *, void *, unsigned, void *, void *, unsigned))
                  dlsym(driver, "cuLibraryLoadData"))(&library, image, 0, 0, 0, 0, 0, 0);
    if (result) return result;
    result = ((int (*)(void **, void *, const char *))dlsym(driver, "cuLibraryGetKernel"))(
        &kernel, library, entry);
    if (result) return result;
    result = ((int (*)(int, int, void *, int))dlsym(driver, "cuKernelSetAttribute"))(
        8, dynamic_shared, kernel, device);
    if (result) return result;
    result = ((int (*)(void **, void *))dlsym(driver, "cuKernelGetFunction"))(&function, kernel);
    if (result) return result;
    return ((int (*)(const void *, void *, void **, void **))dlsym(driver, "cuLaunchKernelEx"))(
        &config, function, parameters, NULL);
}
