/* Stands in for the runtime library of CuTe DSL (libcute_dsl_runtime.so) on a machine without a
 * GPU: host code that CuTe DSL compiled loads its module and launches its kernel here, and the
 * launch is handed to a function of the process instead of a driver.
 *
 * Only what such host code calls is there. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The beginning of cudaLaunchConfig_t: sizes in CTAs and threads, attributes of 72 bytes each. */
typedef struct {
    uint32_t grid[3], block[3];
    size_t dynamic_shared;
    void *stream;
    const void *attributes;
    uint32_t attribute_count;
} launch_config;

typedef void (*launch_handler)(const char *kernel, const launch_config *config, void **arguments);

enum { MULTIPROCESSORS_ATTRIBUTE = 16, SHARED_OPTIN_ATTRIBUTE = 97, SHARED_OPTIN = 232448 };

static launch_handler handler;
static int multiprocessors = 148;

void standin_configure(launch_handler on_launch, int multiprocessor_count) {
    handler = on_launch;
    multiprocessors = multiprocessor_count;
}

int cuda_dialect_init_library_once(void **library, int (*load)(void **),
                                   int (*prepare)(void **, int),
                                   void (*fail)(const char *, const char *)) {
    (void)fail;
    if (*library == NULL) {
        void *loaded = NULL;
        int status = load(&loaded);
        if (status == 0 && prepare != NULL)
            status = prepare(&loaded, 0);
        if (status != 0)
            return status;
        *library = loaded;
    }
    return 0;
}

void cuda_dialect_unload_library_once(void **library) { *library = NULL; }
void cuda_dialect_assert_success(int status) {
    if (status != 0)
        abort();
}
const char *cuda_dialect_get_error_name(int status) {
    (void)status;
    return "error of the stand-in";
}
void cuda_dialect_print_on_error(int status) { (void)status; }

int _cudaLibraryLoadData(void **library, const void *data, void *a, void *b, unsigned c, void *d,
                         void *e, unsigned f) {
    (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
    *library = (void *)data;
    return 0;
}
int _cudaLibraryUnload(void *library) {
    (void)library;
    return 0;
}
int _cudaLibraryGetKernel(void **kernel, void *library, const char *name) {
    (void)library;
    *kernel = strdup(name); /* the caller's string does not outlive the call */
    return *kernel == NULL;
}
int _cudaFuncSetAttribute(void *kernel, int attribute, int value) {
    (void)kernel, (void)attribute, (void)value;
    return 0;
}
int _cudaKernelSetAttributeForDevice(void *kernel, int attribute, int value, int device) {
    (void)kernel, (void)attribute, (void)value, (void)device;
    return 0;
}
int _cuKernelGetAttribute(int *value, int attribute, void *kernel, int device) {
    (void)attribute, (void)kernel, (void)device;
    *value = 0; /* static shared memory among them: the kernels have none */
    return 0;
}
int _cudaGetDevice(int *device) {
    *device = 0;
    return 0;
}
int _cudaSetDevice(int device) { return device != 0; }
int _cudaGetDeviceCount(int *count) {
    *count = 1;
    return 0;
}
int _cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return 0;
}
int _cudaDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    *value = attribute == MULTIPROCESSORS_ATTRIBUTE  ? multiprocessors
             : attribute == SHARED_OPTIN_ATTRIBUTE ? SHARED_OPTIN
                                                   : 0;
    return 0;
}
int _cudaGetLastError(void) { return 0; }
int _cudaLaunchKernelEx(const launch_config *config, void *kernel, void **arguments) {
    if (handler == NULL)
        return 1;
    handler(kernel, config, arguments);
    return 0;
}
