/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cuda/module.h"

#include <string.h>

#include "sim/cuda/api_launch.h"

enum { GLOBAL_SIZE = 4096 }; /* size of every variable */

static CUmodule libraries;

/* ---- names ---- */

static CUfunction find_name(CUfunction list, const char *name) {
        while (list && strcmp(list->name, name) != 0)
                list = list->next;
        return list;
}

/* Makes the function that is asked for: an image is not read, and has every function. */
static CUresult get_function(CUmodule m, const char *name, CUfunction *ret) {
        CUfunction f;

        if (!ret || !name || name[0] == '\0')
                return name && name[0] == '\0' ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
        f = find_name(m->functions, name);
        if (!f) {
                f = calloc(1, sizeof *f);
                if (!f)
                        return CUDA_ERROR_OUT_OF_MEMORY;
                f->name = strdup(name);
                if (!f->name) {
                        free(f);
                        return CUDA_ERROR_OUT_OF_MEMORY;
                }
                f->module = m;
                f->sleeps = strstr(name, "sleep_us") != NULL;
                f->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024;
                f->attributes[CU_FUNC_ATTRIBUTE_NUM_REGS] = 32;
                f->attributes[CU_FUNC_ATTRIBUTE_PTX_VERSION] = 70;
                f->attributes[CU_FUNC_ATTRIBUTE_BINARY_VERSION] = 70;
                f->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 49152;
                f->next = m->functions;
                m->functions = f;
        }
        *ret = f;
        return CUDA_SUCCESS;
}

static void free_functions(CUmodule m) {
        while (m->functions) {
                CUfunction f = m->functions;

                m->functions = f->next;
                free(f->name);
                free(f);
        }
}

static CUresult check_in(CUmodule list, CUmodule module) {
        for (; list; list = list->next)
                if (list == module)
                        return CUDA_SUCCESS;
        return CUDA_ERROR_INVALID_HANDLE;
}

static CUresult check_module(CUmodule module) {
        for (CUcontext c = state.contexts; c; c = c->next)
                if (check_in(c->modules, module) == CUDA_SUCCESS)
                        return CUDA_SUCCESS;
        return check_in(libraries, module);
}

CUresult function_check(CUfunction f) {
        for (CUcontext c = state.contexts; c; c = c->next)
                for (CUmodule m = c->modules; m; m = m->next)
                        for (CUfunction known = m->functions; known; known = known->next)
                                if (known == f)
                                        return CUDA_SUCCESS;
        for (CUmodule m = libraries; m; m = m->next)
                for (CUfunction known = m->functions; known; known = known->next)
                        if (known == f)
                                return CUDA_SUCCESS;
        return CUDA_ERROR_INVALID_HANDLE;
}

/* ---- variables ---- */

typedef struct Variable {
        struct Variable *next;
        CUmodule module;
        CUcontext context;
        char *name;
        Range *range;
} Variable;

static Variable *variables;

static CUresult new_variable(CUmodule m, CUcontext c, const char *name, Variable **ret) {
        Range range = {.kind = RANGE_MODULE, .size = GLOBAL_SIZE, .context = c, .device = c->device};
        Variable *v = calloc(1, sizeof *v);
        CUresult r;

        if (!v)
                return CUDA_ERROR_OUT_OF_MEMORY;
        *v = (Variable){.next = variables, .module = m, .context = c, .name = strdup(name)};
        r = v->name ? heap_alloc(c->heap, range.size, &range.start, &range.chunk) : CUDA_ERROR_OUT_OF_MEMORY;
        if (r == CUDA_SUCCESS) {
                range.block = chunk_block(range.chunk);
                v->range = range_add(&range);
        }
        if (!v->range) {
                free(v->name);
                free(v);
                return r == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : r;
        }
        variables = v;
        *ret = v;
        return CUDA_SUCCESS;
}

static CUresult get_variable(CUmodule m, CUcontext c, const char *name, CUdeviceptr *ret, size_t *size) {
        Variable *v = variables;
        CUresult r;

        if (!name || name[0] == '\0')
                return CUDA_ERROR_INVALID_VALUE;
        while (v && (v->module != m || v->context != c || strcmp(v->name, name) != 0))
                v = v->next;
        if (!v) {
                r = new_variable(m, c, name, &v);
                if (r != CUDA_SUCCESS)
                        return r;
        }
        if (ret)
                *ret = v->range->start;
        if (size)
                *size = v->range->size;
        return CUDA_SUCCESS;
}

/* Of a module (context NULL) or of a context (module NULL). */
static void free_variables(CUmodule m, CUcontext c) {
        for (Variable **link = &variables; *link;) {
                Variable *v = *link;

                if ((m && v->module != m) || (c && v->context != c)) {
                        link = &v->next;
                        continue;
                }
                *link = v->next;
                range_free(v->range);
                free(v->name);
                free(v);
        }
}

/* ---- modules ---- */

static CUresult load(CUmodule *ret, const void *image) {
        CUcontext c;
        CUresult r = context_enter(&c);
        CUmodule m;

        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || !image)
                return CUDA_ERROR_INVALID_VALUE;
        m = calloc(1, sizeof *m);
        if (!m)
                return CUDA_ERROR_OUT_OF_MEMORY;
        m->context = c;
        m->next = c->modules;
        c->modules = m;
        *ret = m;
        return CUDA_SUCCESS;
}

static void unload(CUmodule *list, CUmodule m) {
        for (; *list; list = &(*list)->next)
                if (*list == m) {
                        *list = m->next;
                        break;
                }
        free_variables(m, NULL);
        free_functions(m);
        free(m);
}

void modules_end_context(CUcontext c) {
        free_variables(NULL, c);
        while (c->modules)
                unload(&c->modules, c->modules);
}

CUDA_API CUresult cuModuleLoad(CUmodule *ret, const char *path) {
        LOCKED;

        if (!path)
                return CUDA_ERROR_INVALID_VALUE;
        return access(path, R_OK) == 0 ? load(ret, path) : CUDA_ERROR_FILE_NOT_FOUND;
}

CUDA_API CUresult cuModuleLoadData(CUmodule *ret, const void *image) {
        LOCKED;

        return load(ret, image);
}

CUDA_API CUresult cuModuleLoadDataEx(CUmodule *ret, const void *image, unsigned n, int *options,
                                     void **values) {
        LOCKED;

        return load(ret, image);
}

CUDA_API CUresult cuModuleLoadFatBinary(CUmodule *ret, const void *image) {
        LOCKED;

        return load(ret, image);
}

CUDA_API CUresult cuModuleUnload(CUmodule m) {
        LOCKED;
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r == CUDA_SUCCESS)
                r = check_module(m);
        if (r != CUDA_SUCCESS)
                return r;
        if (!m->context)
                return CUDA_ERROR_INVALID_HANDLE;
        unload(&m->context->modules, m);
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuModuleGetFunction(CUfunction *ret, CUmodule m, const char *name) {
        LOCKED;
        CUresult r = check_module(m);

        return r == CUDA_SUCCESS ? get_function(m, name, ret) : r;
}

static CUresult count_functions(CUmodule m, unsigned *ret) {
        CUresult r = check_module(m);

        if (r != CUDA_SUCCESS || !ret)
                return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
        *ret = 0;
        for (CUfunction f = m->functions; f; f = f->next)
                (*ret)++;
        return CUDA_SUCCESS;
}

static CUresult enumerate(CUfunction *ret, unsigned n, CUmodule m) {
        CUresult r = check_module(m);

        if (r != CUDA_SUCCESS || !ret)
                return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
        for (CUfunction f = m->functions; f && n > 0; f = f->next, n--)
                *ret++ = f;
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuModuleGetFunctionCount(unsigned *ret, CUmodule m) {
        LOCKED;

        return count_functions(m, ret);
}

CUDA_API CUresult cuModuleEnumerateFunctions(CUfunction *ret, unsigned n, CUmodule m) {
        LOCKED;

        return enumerate(ret, n, m);
}

CUDA_API CUresult cuModuleGetGlobal_v2(CUdeviceptr *ret, size_t *size, CUmodule m, const char *name) {
        LOCKED;
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r == CUDA_SUCCESS)
                r = check_module(m);
        return r == CUDA_SUCCESS ? get_variable(m, m->context ? m->context : c, name, ret, size) : r;
}

CUDA_API CUresult cuModuleGetLoadingMode(int *ret) {
        if (!ret)
                return CUDA_ERROR_INVALID_VALUE;
        *ret = CU_MODULE_EAGER_LOADING;
        return CUDA_SUCCESS;
}

/* ---- libraries ---- */

static CUresult load_library(CUlibrary *ret, const void *code) {
        CUresult r = state_check();
        CUmodule m;

        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || !code)
                return CUDA_ERROR_INVALID_VALUE;
        m = calloc(1, sizeof *m);
        if (!m)
                return CUDA_ERROR_OUT_OF_MEMORY;
        m->next = libraries;
        libraries = m;
        *ret = (CUlibrary) m;
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuLibraryLoadData(CUlibrary *ret, const void *code, int *options, void **values, unsigned n,
                                    int *library_options, void **library_values, unsigned n_library) {
        LOCKED;

        return load_library(ret, code);
}

CUDA_API CUresult cuLibraryLoadFromFile(CUlibrary *ret, const char *path, int *options, void **values,
                                        unsigned n, int *library_options, void **library_values,
                                        unsigned n_library) {
        LOCKED;

        if (!path)
                return CUDA_ERROR_INVALID_VALUE;
        return access(path, R_OK) == 0 ? load_library(ret, path) : CUDA_ERROR_FILE_NOT_FOUND;
}

CUDA_API CUresult cuLibraryUnload(CUlibrary library) {
        LOCKED;
        CUmodule m = (CUmodule) library;
        CUresult r = check_in(libraries, m);

        if (r == CUDA_SUCCESS)
                unload(&libraries, m);
        return r;
}

CUDA_API CUresult cuLibraryGetKernel(CUkernel *ret, CUlibrary library, const char *name) {
        LOCKED;
        CUmodule m = (CUmodule) library;
        CUresult r = check_in(libraries, m);

        return r == CUDA_SUCCESS ? get_function(m, name, (CUfunction *) ret) : r;
}

CUDA_API CUresult cuLibraryGetKernelCount(unsigned *ret, CUlibrary library) {
        LOCKED;

        return count_functions((CUmodule) library, ret);
}

CUDA_API CUresult cuLibraryEnumerateKernels(CUkernel *ret, unsigned n, CUlibrary library) {
        LOCKED;

        return enumerate((CUfunction *) ret, n, (CUmodule) library);
}

CUDA_API CUresult cuLibraryGetModule(CUmodule *ret, CUlibrary library) {
        LOCKED;
        CUresult r = check_in(libraries, (CUmodule) library);

        if (r == CUDA_SUCCESS)
                *ret = (CUmodule) library;
        return r;
}

CUDA_API CUresult cuLibraryGetGlobal(CUdeviceptr *ret, size_t *size, CUlibrary library, const char *name) {
        LOCKED;
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r == CUDA_SUCCESS)
                r = check_in(libraries, (CUmodule) library);
        return r == CUDA_SUCCESS ? get_variable((CUmodule) library, c, name, ret, size) : r;
}

CUDA_API CUresult cuKernelGetFunction(CUfunction *ret, CUkernel kernel) {
        LOCKED;
        CUresult r = function_check((CUfunction) kernel);

        if (r == CUDA_SUCCESS)
                *ret = (CUfunction) kernel;
        return r;
}

CUDA_API CUresult cuKernelGetLibrary(CUlibrary *ret, CUkernel kernel) {
        LOCKED;
        CUresult r = function_check((CUfunction) kernel);

        if (r == CUDA_SUCCESS)
                *ret = (CUlibrary) ((CUfunction) kernel)->module;
        return r;
}
