/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cuda/work.h"

#include <string.h>

#include "sim/cuda/memory.h"

/* ---- copies ---- */

static size_t extent(size_t width, size_t height, size_t depth, size_t pitch, size_t slice) {
        if (width == 0 || height == 0 || depth == 0)
                return 0;
        return (depth - 1) * slice + (height - 1) * pitch + width;
}

static CUresult check_copy(const Copy *c) {
        size_t to = extent(c->width, c->height, c->depth, c->to_pitch, c->to_slice);
        size_t from = extent(c->width, c->height, c->depth, c->from_pitch, c->from_slice);

        if (to == 0)
                return CUDA_SUCCESS;
        if (c->to == 0 || c->from == 0 || (c->to_card && !range_covers(c->to, to)) ||
            (c->from_card && !range_covers(c->from, from)))
                return CUDA_ERROR_INVALID_VALUE;
        return CUDA_SUCCESS;
}

static void copy(const Copy *c) {
        if (c->width == 0)
                return;
        for (size_t z = 0; z < c->depth; z++)
                for (size_t y = 0; y < c->height; y++)
                        memmove((char *) (uintptr_t) c->to + z * c->to_slice + y * c->to_pitch,
                                (const char *) (uintptr_t) c->from + z * c->from_slice + y * c->from_pitch,
                                c->width);
}

/* ---- fills ---- */

static CUresult check_fill(const Fill *f) {
        size_t bytes = f->width * f->element;

        if (bytes == 0 || f->height == 0)
                return CUDA_SUCCESS;
        if (f->width > SIZE_MAX / 4 || f->to % f->element != 0 || (f->height > 1 && f->pitch < bytes) ||
            !range_covers(f->to, extent(bytes, f->height, 1, f->pitch, 0)))
                return CUDA_ERROR_INVALID_VALUE;
        return CUDA_SUCCESS;
}

static void fill_row(char *row, const Fill *f) {
        if (f->element == 1) {
                memset(row, (int) f->value, f->width);
                return;
        }
        for (size_t x = 0; x < f->width; x++)
                memcpy(row + x * f->element, &f->value, f->element); /* little endian */
}

static void fill(const Fill *f) {
        for (size_t y = 0; y < f->height; y++)
                fill_row((char *) (uintptr_t) f->to + y * f->pitch, f);
}

/* ---- all ---- */

static void write_word(const Work *w) {
        __atomic_store_n((uint32_t *) (uintptr_t) w->word.at, w->word.value, __ATOMIC_RELEASE);
}

static CUresult check_word(const Work *w) {
        size_t size = sizeof w->word.value;

        return w->word.at % size == 0 && range_covers(w->word.at, size) ? CUDA_SUCCESS
                                                                        : CUDA_ERROR_INVALID_VALUE;
}

CUresult work_check(const Work *w) {
        switch (w->kind) {
        case WORK_COPY:
                return check_copy(&w->copy);
        case WORK_FILL:
                return check_fill(&w->fill);
        case WORK_WORD_WAIT:
        case WORK_WORD_WRITE:
                return check_word(w);
        default:
                return CUDA_SUCCESS;
        }
}

/* Memory may have been freed between the call and now. */
CUresult work_do(const Work *w) {
        Range *range;

        if (work_check(w) != CUDA_SUCCESS)
                return CUDA_ERROR_ILLEGAL_ADDRESS;
        switch (w->kind) {
        case WORK_COPY:
                copy(&w->copy);
                break;
        case WORK_FILL:
                fill(&w->fill);
                break;
        case WORK_WORD_WRITE:
                write_word(w);
                break;
        case WORK_FREE:
                range = range_find(w->address);
                if (range && range->start == w->address)
                        range_free(range);
                break;
        default:
                break;
        }
        return CUDA_SUCCESS;
}
