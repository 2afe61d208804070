/* SPDX-License-Identifier: Apache-2.0 */
#include "slicedir/held_fds.h"

#include <errno.h>
#include <string.h>

struct HeldPage {
        char id[SLICEDIR_ID_SIZE];
        uint32_t number;
        SliceFds fds;
};

static HeldPage *find(const HeldFds *h, const char *id, uint32_t number) {
        for (size_t i = 0; i < h->n; i++)
                if (h->pages[i].number == number && strcmp(h->pages[i].id, id) == 0)
                        return &h->pages[i];
        return NULL;
}

static HeldPage *add(HeldFds *h, const char *id, uint32_t number) {
        HeldPage *pages = reallocarray(h->pages, h->n + 1, sizeof *pages), *page;

        if (!pages)
                return NULL;
        h->pages = pages;
        page = &pages[h->n++];
        *page = (HeldPage){.number = number, .fds = SLICE_FDS_NULL};
        (void) snprintf(page->id, sizeof page->id, "%s", id);
        return page;
}

static void take(int *fd, int *from) {
        if (*from < 0)
                return;
        cleanup_closep(fd);
        *fd = TAKE_FD(*from);
}

int held_fds_put(HeldFds *h, const char *id, uint32_t number, SliceFds *fds) {
        HeldPage *page = find(h, id, number);

        if (!page)
                page = add(h, id, number);
        if (!page)
                return -ENOMEM;
        take(&page->fds.limits, &fds->limits);
        take(&page->fds.counters, &fds->counters);
        return 0;
}

bool held_fds_has(const HeldFds *h, const char *id, uint32_t number) {
        const HeldPage *page = find(h, id, number);

        return page && page->fds.limits >= 0 && page->fds.counters >= 0;
}

void held_fds_sweep(HeldFds *h, bool (*keep)(void *userdata, const char *id), void *userdata) {
        for (size_t i = h->n; i > 0; i--)
                if (!keep(userdata, h->pages[i - 1].id)) {
                        slice_files_close(&h->pages[i - 1].fds);
                        h->pages[i - 1] = h->pages[--h->n];
                }
}

static bool is_other(void *userdata, const char *id) {
        const char *dropped = userdata;

        return strcmp(id, dropped) != 0;
}

void held_fds_drop(HeldFds *h, const char *id) {
        held_fds_sweep(h, is_other, (void *) id);
}

void held_fds_done(HeldFds *h) {
        for (size_t i = 0; i < h->n; i++)
                slice_files_close(&h->pages[i].fds);
        free(h->pages);
        *h = (HeldFds){0};
}
