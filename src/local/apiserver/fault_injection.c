/* SPDX-License-Identifier: Apache-2.0 */
#include "local/apiserver/fault_injection.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/str.h"

static char *copy(const char *text) {
        return text ? str_dup(str_from(text)) : NULL;
}

int store_faults_add(StoreFaults *f, const StoreFault *fault) {
        _cleanup_free_ char *method = copy(fault->method), *path_prefix = copy(fault->path_prefix);

        if (fault->count == 0 || fault->kind > STORE_FAULT_DELAY)
                return -EINVAL;
        if (fault->kind == STORE_FAULT_STATUS && (fault->status < 200 || fault->status > 599))
                return -EINVAL;
        if (f->n == STORE_FAULTS_MAX)
                return -ENOSPC;
        if ((fault->method && !method) || (fault->path_prefix && !path_prefix))
                return -ENOMEM;
        f->waiting[f->n].fault = *fault;
        f->waiting[f->n].method = TAKE_PTR(method);
        f->waiting[f->n].path_prefix = TAKE_PTR(path_prefix);
        f->n++;
        return 0;
}

static void remove_at(StoreFaults *f, size_t i) {
        free(f->waiting[i].method);
        free(f->waiting[i].path_prefix);
        f->n--;
        memmove(&f->waiting[i], &f->waiting[i + 1], (f->n - i) * sizeof f->waiting[0]);
}

void store_faults_done(StoreFaults *f) {
        while (f->n > 0)
                remove_at(f, f->n - 1);
}

bool store_faults_take(StoreFaults *f, const char *method, const char *path, bool lines, StoreFault *ret) {
        for (size_t i = 0; i < f->n; i++) {
                StoreFault *fault = &f->waiting[i].fault;
                const char *prefix = f->waiting[i].path_prefix;

                if ((fault->kind == STORE_FAULT_CUT_WATCH) != lines)
                        continue;
                if (f->waiting[i].method && strcmp(f->waiting[i].method, method) != 0)
                        continue;
                if (prefix && !str_has_prefix(str_from(path), str_from(prefix)))
                        continue;
                *ret = *fault;
                ret->method = ret->path_prefix = NULL;
                if (--fault->count == 0)
                        remove_at(f, i);
                return true;
        }
        return false;
}
