/* Libraries, kernels and launches. */
#include "standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY_MAGIC 0x66614c49u
#define DYNAMIC_SHARED_ATTRIBUTE 8
#define DEFAULT_SHARED (48 << 10)
#define MOST_SHARED (227 << 10)
#define ATTRIBUTE_BYTES 72 /* of a CUlaunchAttribute: its number, padding, 64 bytes of value */
#define CLUSTER_DIMENSION 4
#define MAX_KERNELS 64

struct library {
    uint32_t magic;
    unsigned char *image;
    size_t size;
    uint32_t num_kernels;
    struct kernel *kernels[MAX_KERNELS];
};

struct config {
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared;
    void *stream;
    const unsigned char *attributes;
    uint32_t num_attributes;
};

static int loaded;

API CUresult cuLibraryLoadData(struct library **library, const void *code, void *jit_options,
                               void **jit_values, unsigned num_jit, void *options, void **values,
                               unsigned num_options) {
    (void)jit_options, (void)jit_values, (void)options, (void)values;
    TRY(begin("cuLibraryLoadData"));
    if (!library || !code || num_jit || num_options) return INVALID_VALUE;
    size_t size = image_size(code);
    if (!size) return INVALID_IMAGE;
    struct library *made = take(sizeof *made);
    made->magic = LIBRARY_MAGIC;
    made->image = take(size); /* the caller may free its copy */
    memcpy(made->image, code, size);
    made->size = size;
    lock();
    ++loaded;
    record("image %llu %zu", (unsigned long long)(uintptr_t)made->image, size);
    unlock();
    *library = made;
    return SUCCESS;
}

API CUresult cuLibraryUnload(struct library *library) {
    TRY(begin("cuLibraryUnload"));
    if (!library || library->magic != LIBRARY_MAGIC) return INVALID_HANDLE;
    lock();
    library->magic = 0; /* its memory stays: records have the image, and old handles are refused */
    for (uint32_t i = 0; i < library->num_kernels; ++i) library->kernels[i]->magic = 0;
    --loaded;
    unlock();
    return SUCCESS;
}

/* Libraries that were loaded and not unloaded. */
API int standin_loaded(void) { return loaded; }

API CUresult cuLibraryGetKernel(struct kernel **kernel, struct library *library, const char *name) {
    TRY(begin("cuLibraryGetKernel"));
    if (!library || library->magic != LIBRARY_MAGIC) return INVALID_HANDLE;
    CUresult result = SUCCESS;
    lock();
    struct kernel *found = NULL;
    for (uint32_t i = 0; i < library->num_kernels; ++i)
        if (!strcmp(library->kernels[i]->entry, name)) found = library->kernels[i];
    if (!found && library->num_kernels < MAX_KERNELS) {
        found = take(sizeof *found);
        if (read_kernel(library->image, library->size, name, found)) {
            found->magic = KERNEL_MAGIC;
            found->entry = take(strlen(name) + 1);
            strcpy(found->entry, name);
            for (int i = 0; i < MAX_DEVICES; ++i) found->max_dynamic_shared[i] = DEFAULT_SHARED;
            library->kernels[library->num_kernels++] = found;
        } else {
            free(found);
            found = NULL;
        }
    }
    if (found) *kernel = found;
    else result = NOT_FOUND;
    unlock();
    return result;
}

static int is_run_by(const struct kernel *kernel, int device) {
    int sm = device_sm(device);
    return kernel->sm == sm || (!kernel->exact && kernel->sm / 10 == sm / 10 && kernel->sm < sm);
}

API CUresult cuKernelSetAttribute(int attribute, int value, struct kernel *kernel, CUdevice device) {
    TRY(begin("cuKernelSetAttribute"));
    if (!kernel || kernel->magic != KERNEL_MAGIC) return INVALID_HANDLE;
    if (device < 0 || device >= MAX_DEVICES) return INVALID_DEVICE;
    if (!is_run_by(kernel, device)) return NO_BINARY_FOR_GPU;
    if (attribute == DYNAMIC_SHARED_ATTRIBUTE && (value < 0 || value > MOST_SHARED))
        return INVALID_VALUE;
    lock();
    record("setting %s %d %d %d", kernel->entry, attribute, value, device);
    if (attribute == DYNAMIC_SHARED_ATTRIBUTE) kernel->max_dynamic_shared[device] = value;
    unlock();
    return SUCCESS;
}

static CUresult function_of(struct kernel *kernel, struct function **function) {
    int device = current_device();
    if (device < 0) return INVALID_CONTEXT;
    if (!is_run_by(kernel, device)) return NO_BINARY_FOR_GPU;
    lock();
    if (!kernel->functions[device]) {
        struct function *made = take(sizeof *made);
        made->magic = FUNCTION_MAGIC;
        made->kernel = kernel;
        made->device = device;
        kernel->functions[device] = made;
    }
    *function = kernel->functions[device];
    unlock();
    return SUCCESS;
}

API CUresult cuKernelGetFunction(struct function **function, struct kernel *kernel) {
    TRY(begin("cuKernelGetFunction"));
    if (!kernel || kernel->magic != KERNEL_MAGIC) return INVALID_HANDLE;
    return function_of(kernel, function);
}

static CUresult check_shape(const struct kernel *kernel, const struct config *config, int device) {
    uint64_t threads = (uint64_t)config->block[0] * config->block[1] * config->block[2];
    if (!config->grid[0] || !config->grid[1] || !config->grid[2] || !threads) return INVALID_VALUE;
    if (config->grid[0] > INT32_MAX || threads > kernel->max_threads) return INVALID_VALUE;
    if ((int)config->dynamic_shared < 0 ||
        (int)config->dynamic_shared > kernel->max_dynamic_shared[device])
        return INVALID_VALUE;
    for (int axis = 0; axis < 3; ++axis)
        if (kernel->cluster[axis] && config->grid[axis] % kernel->cluster[axis])
            return INVALID_CLUSTER_SIZE;
    for (uint32_t i = 0; i < config->num_attributes; ++i) {
        const unsigned char *attribute = config->attributes + (size_t)i * ATTRIBUTE_BYTES;
        uint32_t number, dims[3];
        memcpy(&number, attribute, sizeof number);
        memcpy(dims, attribute + 8, sizeof dims);
        if (number != CLUSTER_DIMENSION) continue;
        for (int axis = 0; axis < 3; ++axis)
            if (!dims[axis] || config->grid[axis] % dims[axis] ||
                (kernel->cluster[axis] && kernel->cluster[axis] != dims[axis]))
                return INVALID_CLUSTER_SIZE;
    }
    return SUCCESS;
}

/* All of a launch but its stream: the shape, the attributes, the bytes of each parameter. */
static char *words_of(const struct kernel *kernel, const struct config *config, int device,
                      void **parameters) {
    char *words, *digits;
    size_t size;
    const uint32_t *grid = config->grid, *block = config->block;
    FILE *file = open_memstream(&words, &size);
    if (!file) abort();
    fprintf(file, "%s %d %u %u %u %u %u %u %u %u", kernel->entry, device, grid[0], grid[1],
            grid[2], block[0], block[1], block[2], config->dynamic_shared, config->num_attributes);
    for (uint32_t i = 0; i < config->num_attributes; ++i) {
        const unsigned char *attribute = config->attributes + (size_t)i * ATTRIBUTE_BYTES;
        uint32_t number;
        memcpy(&number, attribute, sizeof number);
        fprintf(file, " %u %s", number, digits = in_digits(attribute + 8, ATTRIBUTE_BYTES - 8));
        free(digits);
    }
    for (uint32_t i = 0; i < kernel->num_parameters; ++i) {
        fprintf(file, " %s", digits = in_digits(parameters[i], kernel->sizes[i]));
        free(digits);
    }
    fclose(file);
    return words;
}

API CUresult cuLaunchKernelEx(const struct config *config, struct function *function,
                              void **parameters, void **extra) {
    TRY(begin("cuLaunchKernelEx"));
    int device = current_device();
    if (device < 0) return INVALID_CONTEXT;
    if (!function) return INVALID_HANDLE;
    if (function->magic == KERNEL_MAGIC) /* a CUkernel may stand for its function */
        TRY(function_of((struct kernel *)function, &function));
    if (function->magic != FUNCTION_MAGIC || function->device != device) return INVALID_HANDLE;
    const struct kernel *kernel = function->kernel;
    if (extra || (kernel->num_parameters && !parameters)) return INVALID_VALUE;
    TRY(check_shape(kernel, config, device));
    char *words = words_of(kernel, config, device, parameters);
    CUresult result = enqueue(config->stream, words);
    free(words);
    return result;
}
