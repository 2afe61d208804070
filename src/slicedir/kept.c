/* SPDX-License-Identifier: Apache-2.0 */
#include "slicedir/kept.h"

#include <errno.h>
#include <string.h>

#include "slicedir/board.h"

struct KeptPage {
        char id[BOARD_ID];
        uint32_t number;
        SliceHeld held;
};

static KeptPage *find(const Kept *k, const char *id, uint32_t number) {
        for (size_t i = 0; i < k->n; i++)
                if (k->pages[i].number == number && strcmp(k->pages[i].id, id) == 0)
                        return &k->pages[i];
        return NULL;
}

static KeptPage *add(Kept *k, const char *id, uint32_t number) {
        KeptPage *pages = reallocarray(k->pages, k->n + 1, sizeof *pages), *page;

        if (!pages)
                return NULL;
        k->pages = pages;
        page = &pages[k->n++];
        *page = (KeptPage){.number = number, .held = SLICE_HELD_NULL};
        (void) snprintf(page->id, sizeof page->id, "%s", id);
        return page;
}

static void take(int *fd, int *from) {
        if (*from < 0)
                return;
        cleanup_closep(fd);
        *fd = TAKE_FD(*from);
}

int kept_put(Kept *k, const char *id, uint32_t number, SliceHeld *held) {
        KeptPage *page = find(k, id, number);

        if (!page)
                page = add(k, id, number);
        if (!page)
                return -ENOMEM;
        take(&page->held.limits, &held->limits);
        take(&page->held.counters, &held->counters);
        return 0;
}

bool kept_has(const Kept *k, const char *id, uint32_t number) {
        const KeptPage *page = find(k, id, number);

        return page && page->held.limits >= 0 && page->held.counters >= 0;
}

void kept_sweep(Kept *k, bool (*keep)(void *userdata, const char *id), void *userdata) {
        for (size_t i = k->n; i > 0; i--)
                if (!keep(userdata, k->pages[i - 1].id)) {
                        slice_held_done(&k->pages[i - 1].held);
                        k->pages[i - 1] = k->pages[--k->n];
                }
}

static bool is_other(void *userdata, const char *id) {
        const char *dropped = userdata;

        return strcmp(id, dropped) != 0;
}

void kept_drop(Kept *k, const char *id) {
        kept_sweep(k, is_other, (void *) id);
}

void kept_done(Kept *k) {
        for (size_t i = 0; i < k->n; i++)
                slice_held_done(&k->pages[i].held);
        free(k->pages);
        *k = (Kept){0};
}
