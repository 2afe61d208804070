/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cuda/module.h"

#include <string.h>

#include "sim/cuda/api_launch.h"

enum {
        GLOBAL_SIZE = 4096, /* size of every variable */
        KERNEL_NSEC = 5000,
};

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
                f->sleeps = strstr(name, "sleep_us") != NULL;
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

static CUresult check_module(CUmodule module) {
        for (CUcontext c = state.contexts; c; c = c->next)
                for (CUmodule m = c->modules; m; m = m->next)
                        if (m == module)
                                return CUDA_SUCCESS;
        return CUDA_ERROR_INVALID_HANDLE;
}

CUresult function_check(CUfunction f) {
        for (CUcontext c = state.contexts; c; c = c->next)
                for (CUmodule m = c->modules; m; m = m->next)
                        for (CUfunction known = m->functions; known; known = known->next)
                                if (known == f)
                                        return CUDA_SUCCESS;
        return CUDA_ERROR_INVALID_HANDLE;
}

/* The first argument, from a list of pointers or a packed buffer. NULL: there is none. */
static const void *first_argument(void **params, void **extra) {
        if (params)
                return params[0];
        for (size_t i = 0; extra && extra[i] != CU_LAUNCH_PARAM_END; i += 2)
                if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
                        return extra[i + 1];
        return NULL;
}

uint64_t function_time(CUfunction f, void **params, void **extra) {
        const void *argument = f->sleeps ? first_argument(params, extra) : NULL;
        uint32_t us;

        if (!argument)
                return KERNEL_NSEC;
        memcpy(&us, argument, sizeof us);
        return (uint64_t) us * 1000;
}

/* ---- variables ---- */

typedef struct Variable {
        struct Variable *next;
        CUmodule module;
        char *name;
        Range *range;
} Variable;

static Variable *variables;

static CUresult new_variable(CUmodule m, const char *name, Variable **ret) {
        CUcontext c = m->context;
        Range range = {.kind = RANGE_MODULE, .size = GLOBAL_SIZE, .context = c, .device = c->device};
        Variable *v = calloc(1, sizeof *v);
        CUresult r;

        if (!v)
                return CUDA_ERROR_OUT_OF_MEMORY;
        *v = (Variable){.next = variables, .module = m, .name = strdup(name)};
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

static CUresult get_variable(CUmodule m, const char *name, CUdeviceptr *ret, size_t *size) {
        Variable *v = variables;
        CUresult r;

        if (!name || name[0] == '\0')
                return CUDA_ERROR_INVALID_VALUE;
        while (v && (v->module != m || strcmp(v->name, name) != 0))
                v = v->next;
        if (!v) {
                r = new_variable(m, name, &v);
                if (r != CUDA_SUCCESS)
                        return r;
        }
        if (ret)
                *ret = v->range->start;
        if (size)
                *size = v->range->size;
        return CUDA_SUCCESS;
}

static void free_variables(CUmodule m) {
        for (Variable **link = &variables; *link;) {
                Variable *v = *link;

                if (v->module != m) {
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
        free_variables(m);
        free_functions(m);
        free(m);
}

void modules_end_context(CUcontext c) {
        while (c->modules)
                unload(&c->modules, c->modules);
}

CUDA_API CUresult cuModuleLoadData(CUmodule *ret, const void *image) {
        LOCKED;

        return load(ret, image);
}

CUDA_API CUresult cuModuleUnload(CUmodule m) {
        LOCKED;
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r == CUDA_SUCCESS)
                r = check_module(m);
        if (r == CUDA_SUCCESS)
                unload(&m->context->modules, m);
        return r;
}

CUDA_API CUresult cuModuleGetFunction(CUfunction *ret, CUmodule m, const char *name) {
        LOCKED;
        CUresult r = check_module(m);

        return r == CUDA_SUCCESS ? get_function(m, name, ret) : r;
}

CUDA_API CUresult cuModuleGetGlobal_v2(CUdeviceptr *ret, size_t *size, CUmodule m, const char *name) {
        LOCKED;
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r == CUDA_SUCCESS)
                r = check_module(m);
        return r == CUDA_SUCCESS ? get_variable(m, name, ret, size) : r;
}
