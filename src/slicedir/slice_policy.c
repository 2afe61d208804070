/* SPDX-License-Identifier: Apache-2.0 */
#include "slicedir/slice_policy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { CARDS_MOST = 256 }; /* cards that can become weighted; further ones keep the node's policy */

typedef struct Round {
        Slicedir *slicedir;
        const CardCompute *policy;
        const char *uuid;
        char weighted[CARDS_MOST][SLICE_UUID];
        size_t n_weighted;
        Fault *fault;
        int r; /* error of the last page that was skipped, or 0 */
} Round;

static bool is_agents(const SlicedirEntry *slice) {
        return strncmp(slice->owner, SLICEDIR_AGENT, strlen(SLICEDIR_AGENT)) == 0;
}

static bool is_asked(const Round *round, const SliceLimits *l) {
        return !round->uuid || strcmp(round->uuid, l->uuid) == 0;
}

/* An open slice has no limits, so its weight does not count. */
static bool wants_weights(const SliceLimits *l) {
        return !(l->flags & SLICE_FLAG_OPEN) && (l->weight > 1 || l->high_priority > 0);
}

static bool is_weighted(const Round *round, const char *uuid) {
        for (size_t i = 0; i < round->n_weighted; i++)
                if (strcmp(round->weighted[i], uuid) == 0)
                        return true;
        return false;
}

static int find_weights(void *userdata, const SlicedirEntry *slice) {
        Round *round = userdata;

        for (uint32_t i = 0; is_agents(slice) && i < slice->n_cards; i++) {
                const SliceLimits *l = &slice->cards[i].limits;

                if (is_asked(round, l) && wants_weights(l) && !is_weighted(round, l->uuid) &&
                    round->n_weighted < CARDS_MOST)
                        memcpy(round->weighted[round->n_weighted++], l->uuid, SLICE_UUID);
        }
        return 0;
}

static int write_page(const Round *round, const char *id, uint32_t number, const SliceLimits *l) {
        CardCompute compute = *round->policy;
        char path[SLICEDIR_ID_SIZE + 16];
        _cleanup_close_ int fd = -1;

        if (is_weighted(round, l->uuid))
                compute.policy = COMPUTE_WEIGHTED;
        (void) snprintf(path, sizeof path, "%s/%u", id, number);
        fd = openat(round->slicedir->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return fault_set(round->fault, -errno, "cannot open slice %s: %s", path, strerror(errno));
        return slice_files_set_compute(fd, &compute, round->fault);
}

static int write_pages(void *userdata, const SlicedirEntry *slice) {
        Round *round = userdata;

        for (uint32_t i = 0; is_agents(slice) && i < slice->n_cards; i++) {
                int r = is_asked(round, &slice->cards[i].limits)
                                ? write_page(round, slice->id, slice->cards[i].number,
                                             &slice->cards[i].limits)
                                : 0;

                round->r = r != 0 ? r : round->r;
        }
        return 0;
}

int slice_policy_apply(Slicedir *d, const CardCompute *policy, const char *uuid, Fault *fault) {
        Round round = {.slicedir = d, .policy = policy, .uuid = uuid, .fault = fault};
        int r = 0;

        if (policy->yields)
                r = slicedir_each(d, find_weights, &round);
        if (r == 0)
                r = slicedir_each(d, write_pages, &round);
        return r < 0 ? fault_set(fault, r, "cannot read the slice directory %s: %s", d->path, strerror(-r))
                     : round.r;
}
