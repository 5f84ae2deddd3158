/* Modules and libraries: images go to the recorder, which says what is in them. */
#include "recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FATBIN_WRAPPER 0x466243b1u
#define FATBIN 0xba55ed50u

static uint64_t read_number(const unsigned char *from, int bytes)
{
    uint64_t value = 0;
    memcpy(&value, from, (size_t)bytes);
    return value;
}

/* Images come without their size: text ends with a zero, the others say how long they are. */
static size_t image_size(const unsigned char **image)
{
    const unsigned char *at = *image;
    if (read_number(at, 4) == FATBIN_WRAPPER) *image = at = (const unsigned char *)read_number(at + 8, 8);
    if (read_number(at, 4) == FATBIN) return read_number(at + 6, 2) + read_number(at + 8, 8);
    if (!memcmp(at, "\177ELF", 4)) {
        uint64_t table = read_number(at + 0x28, 8), size = 64;
        uint64_t bytes = read_number(at + 0x3a, 2), number = read_number(at + 0x3c, 2);
        uint64_t segments = read_number(at + 0x20, 8) + read_number(at + 0x36, 2) * read_number(at + 0x38, 2);
        if (table + bytes * number > size) size = table + bytes * number;
        if (segments > size) size = segments;
        for (; number; number--, table += bytes) {
            uint64_t stop = read_number(at + table + 0x18, 8) + read_number(at + table + 0x20, 8);
            if (read_number(at + table + 4, 4) != 8 && stop > size) size = stop; /* 8: no bits */
        }
        return size;
    }
    return strlen((const char *)at);
}

static CUresult place_variables(CUmodule module)
{
    struct message request = {0}, reply;
    uint32_t at;
    CUresult result;
    if (!module->variables) return SUCCESS;
    put_u32(&request, module->id);
    for (at = 0; at < module->variables; at++) {
        struct variable *variable = module->variable + at;
        variable->address = memory_take(variable->size ? variable->size : 1);
        if (!variable->address) return OUT_OF_MEMORY;
        put_u64(&request, variable->address);
    }
    result = ask(PLACE, &request, &reply);
    free(reply.data);
    return result;
}

static CUresult load(CUmodule *to, const void *image, char *log, size_t log_size)
{
    struct message request = {0}, reply;
    const unsigned char *at = image;
    CUmodule module;
    CUresult result;
    uint32_t index, axis;
    TRY(ready());
    if (!to || !image) return INVALID_VALUE;
    size_t size = image_size(&at);
    put_bytes(&request, at, size);
    result = ask(MODULE, &request, &reply);
    if (result) {
        if (log && log_size && reply.size > 4) {
            char *message = get_text(&reply);
            snprintf(log, log_size, "%s", message);
            free(message);
        }
        free(reply.data);
        return result;
    }
    module = calloc(1, sizeof *module);
    module->magic = MODULE_MAGIC;
    module->id = get_u32(&reply);
    module->functions = get_u32(&reply);
    module->function = calloc(module->functions + 1, sizeof *module->function);
    for (index = 0; index < module->functions; index++) {
        struct function *function = module->function + index;
        function->magic = FUNCTION_MAGIC;
        function->module = module;
        function->name = get_text(&reply);
        function->parameters = get_u32(&reply);
        function->parameter = calloc(function->parameters + 1, sizeof *function->parameter);
        for (axis = 0; axis < function->parameters; axis++) {
            function->parameter[axis].offset = get_u32(&reply);
            function->parameter[axis].size = get_u32(&reply);
        }
        function->static_shared = (int)get_u32(&reply);
        function->local = (int)get_u32(&reply);
        function->max_threads = (int)get_u32(&reply);
        function->registers = (int)get_u32(&reply);
        for (axis = 0; axis < 3; axis++) function->cluster[axis] = (int)get_u32(&reply);
        function->max_dynamic = device_attribute[8] - function->static_shared;
        function->carveout = -1;
    }
    module->variables = get_u32(&reply);
    module->variable = calloc(module->variables + 1, sizeof *module->variable);
    for (index = 0; index < module->variables; index++) {
        module->variable[index].name = get_text(&reply);
        module->variable[index].size = get_u64(&reply);
    }
    free(reply.data);
    *to = module;
    return place_variables(module);
}

/* The log buffers among options: CU_JIT_ERROR_LOG_BUFFER is 5, its size 6. */
static CUresult load_with(CUmodule *to, const void *image, unsigned n, int *options, void **values)
{
    char *log = NULL;
    size_t log_size = 0;
    unsigned at;
    for (at = 0; options && values && at < n; at++) {
        if (options[at] == 5) log = values[at];
        if (options[at] == 6) log_size = (size_t)(uintptr_t)values[at];
    }
    return load(to, image, log, log_size);
}

API CUresult cuModuleLoadDataEx(CUmodule *to, const void *image, unsigned n, int *options, void **values)
{
    TRY(require_context());
    return load_with(to, image, n, options, values);
}

API CUresult cuModuleLoadData(CUmodule *to, const void *image)
{
    return cuModuleLoadDataEx(to, image, 0, NULL, NULL);
}

API CUresult cuModuleLoadFatBinary(CUmodule *to, const void *image) { return cuModuleLoadData(to, image); }

API CUresult cuLibraryLoadData(CUmodule *to, const void *image, int *options, void **values, unsigned n,
                               int *library_options, void **library_values, unsigned m)
{
    (void)library_options, (void)library_values, (void)m;
    return load_with(to, image, n, options, values);
}

static CUresult load_file(CUmodule *to, const char *path, unsigned n, int *options, void **values)
{
    FILE *file = path ? fopen(path, "rb") : NULL;
    char *image;
    long size;
    CUresult result;
    if (!file) return 301; /* CUDA_ERROR_FILE_NOT_FOUND */
    fseek(file, 0, SEEK_END);
    size = ftell(file);
    rewind(file);
    image = calloc(1, (size_t)size + 1);
    size = (long)fread(image, 1, (size_t)size, file);
    fclose(file);
    result = load_with(to, image, n, options, values);
    free(image);
    return result;
}

API CUresult cuModuleLoad(CUmodule *to, const char *path)
{
    TRY(require_context());
    return load_file(to, path, 0, NULL, NULL);
}

API CUresult cuLibraryLoadFromFile(CUmodule *to, const char *path, int *options, void **values, unsigned n,
                                   int *library_options, void **library_values, unsigned m)
{
    (void)library_options, (void)library_values, (void)m;
    TRY(ready());
    return load_file(to, path, n, options, values);
}

static int is_module(CUmodule module) { return module && module->magic == MODULE_MAGIC; }
static int is_function(CUfunction function) { return function && function->magic == FUNCTION_MAGIC; }

API CUresult cuModuleUnload(CUmodule module) /* functions of it may be in use still: kept */
{
    uint32_t at;
    TRY(ready());
    if (!is_module(module)) return INVALID_HANDLE;
    for (at = 0; at < module->variables; at++) memory_give(module->variable[at].address);
    module->variables = 0;
    return SUCCESS;
}

API CUresult cuLibraryUnload(CUmodule module) { return cuModuleUnload(module); }

API CUresult cuModuleGetLoadingMode(int *mode)
{
    *mode = 1;
    return ready();
}

API CUresult cuModuleGetFunction(CUfunction *to, CUmodule module, const char *name)
{
    uint32_t at;
    TRY(ready());
    if (!to || !name) return INVALID_VALUE;
    if (!is_module(module)) return INVALID_HANDLE;
    for (at = 0; at < module->functions; at++) {
        if (!strcmp(module->function[at].name, name)) {
            *to = module->function + at;
            return SUCCESS;
        }
    }
    return NOT_FOUND;
}

API CUresult cuLibraryGetKernel(CUfunction *to, CUmodule module, const char *name)
{
    return cuModuleGetFunction(to, module, name);
}

API CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module)
{
    TRY(ready());
    if (!is_module(module)) return INVALID_HANDLE;
    *count = module->functions;
    return SUCCESS;
}

API CUresult cuLibraryGetKernelCount(unsigned *count, CUmodule module)
{
    return cuModuleGetFunctionCount(count, module);
}

API CUresult cuModuleEnumerateFunctions(CUfunction *to, unsigned count, CUmodule module)
{
    unsigned at;
    TRY(ready());
    if (!is_module(module)) return INVALID_HANDLE;
    for (at = 0; at < count && at < module->functions; at++) to[at] = module->function + at;
    return SUCCESS;
}

API CUresult cuLibraryEnumerateKernels(CUfunction *to, unsigned count, CUmodule module)
{
    return cuModuleEnumerateFunctions(to, count, module);
}

API CUresult cuLibraryGetModule(CUmodule *to, CUmodule module)
{
    TRY(ready());
    if (!is_module(module)) return INVALID_HANDLE;
    *to = module;
    return SUCCESS;
}

API CUresult cuKernelGetFunction(CUfunction *to, CUfunction kernel)
{
    TRY(ready());
    if (!is_function(kernel)) return INVALID_HANDLE;
    *to = kernel;
    return SUCCESS;
}

API CUresult cuKernelGetLibrary(CUmodule *to, CUfunction kernel)
{
    TRY(ready());
    if (!is_function(kernel)) return INVALID_HANDLE;
    *to = kernel->module;
    return SUCCESS;
}

API CUresult cuFuncGetModule(CUmodule *to, CUfunction function) { return cuKernelGetLibrary(to, function); }

API CUresult cuFuncGetName(const char **name, CUfunction function)
{
    TRY(ready());
    if (!is_function(function)) return INVALID_HANDLE;
    *name = function->name;
    return SUCCESS;
}

API CUresult cuKernelGetName(const char **name, CUfunction kernel) { return cuFuncGetName(name, kernel); }

API CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size)
{
    TRY(ready());
    if (!is_function(function)) return INVALID_HANDLE;
    if (index >= function->parameters) return INVALID_VALUE;
    *offset = function->parameter[index].offset;
    if (size) *size = function->parameter[index].size;
    return SUCCESS;
}

API CUresult cuKernelGetParamInfo(CUfunction kernel, size_t index, size_t *offset, size_t *size)
{
    return cuFuncGetParamInfo(kernel, index, offset, size);
}

API CUresult cuFuncIsLoaded(int *state, CUfunction function)
{
    (void)function;
    *state = 1;
    return ready();
}

API CUresult cuFuncLoad(CUfunction function) { return is_function(function) ? ready() : INVALID_HANDLE; }

API CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *size, CUmodule module, const char *name)
{
    uint32_t at;
    TRY(ready());
    if (!is_module(module)) return INVALID_HANDLE;
    if (!name) return INVALID_VALUE;
    for (at = 0; at < module->variables; at++) {
        if (!strcmp(module->variable[at].name, name)) {
            if (address) *address = module->variable[at].address;
            if (size) *size = module->variable[at].size;
            return SUCCESS;
        }
    }
    return NOT_FOUND;
}

API CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *size, CUmodule module, const char *name)
{
    return cuModuleGetGlobal_v2(address, size, module, name);
}
