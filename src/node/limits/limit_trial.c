/* SPDX-License-Identifier: Apache-2.0 */
#include "node/limits/limit_trial.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "gpu/cards/nvml.h"
#include "node/limits/cgroup_mount.h"

#define TRIAL_BYTES (UINT64_C(64) << 20)
#define TRIAL_NAME  "aliquot.probe"

struct LimitTrial {
        CardSource *source;
        const char *root;
        LimitTrialDone done;
        void *userdata;
        char (*uuids)[64];
        size_t n, at; /* cards, and the current one */
        bool lifting; /* of the current card */
        bool made, dmem;
        bool dirty; /* a limit was asked for, and not lifted: the driver's own account keeps it */
        uint32_t request;
};

static int open_root(const LimitTrial *t) {
        return open(t->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void finish_trial(LimitTrial *t, const Fault *fault) {
        LimitTrialDone done = t->done;

        t->request = 0;
        done(t->userdata, t->dmem, fault); /* may free t */
}

static void fail_with(LimitTrial *t, const char *text) {
        Fault fault = FAULT_NULL;

        (void) fault_set(&fault, 0, "%s", text);
        finish_trial(t, &fault);
}

static void ask_driver(LimitTrial *t);

/* Whether no limit was set. Another error may be that of the reading behind it. */
static bool is_refused(uint32_t code) {
        return code == NVML_ERROR_NOT_SUPPORTED || code == NVML_ERROR_NO_PERMISSION ||
               code == NVML_ERROR_NOT_FOUND || code == NVML_ERROR_OPERATING_SYSTEM ||
               code == CARD_LIMIT_NO_CALLS || code == CARD_LIMIT_NO_CARD;
}

static void on_answer(void *userdata, const CardLimitAnswer *a) {
        LimitTrial *t = userdata;
        uint64_t wanted = t->lifting ? CARD_LIMIT_NONE : TRIAL_BYTES;
        Fault fault = FAULT_NULL;

        t->request = 0;
        t->dirty = t->lifting ? a->code != 0 || a->hard != wanted : !is_refused(a->code);
        if (a->code != 0) {
                fail_with(t, a->text);
                return;
        }
        if (a->hard != wanted) {
                (void) fault_set(
                        &fault, 0,
                        "a limit of %llu bytes was set on a cgroup for a trial, and %llu are in force",
                        (unsigned long long) wanted, (unsigned long long) a->hard);
                finish_trial(t, &fault);
                return;
        }
        t->at += t->lifting;
        t->lifting = !t->lifting;
        if (t->at == t->n)
                finish_trial(t, NULL);
        else
                ask_driver(t);
}

static void ask_driver(LimitTrial *t) {
        CardLimit l = {.path = CGROUP_MOUNT "/" TRIAL_NAME,
                       .hard = t->lifting ? CARD_LIMIT_NONE : TRIAL_BYTES,
                       .set = 1};

        t->dirty |= !t->lifting;
        memcpy(l.uuid, t->uuids[t->at], sizeof l.uuid);
        if (card_source_limit(t->source, &l, on_answer, t, &t->request) < 0)
                fail_with(t, "the driver's library cannot be asked now");
}

/* Enables dmem in the root's subtree_control. libcontainer enables all controllers there, too
 * (fs2/create.go). */
static void delegate_dmem(int root) {
        static const char word[] = "+dmem";
        _cleanup_close_ int fd = openat(root, "cgroup.subtree_control", O_WRONLY | O_CLOEXEC);

        if (fd >= 0) /* without the controller it is refused, and the files are missing */
                (void) !write(fd, word, sizeof word - 1);
}

static const char *make_cgroup(LimitTrial *t) {
        _cleanup_close_ int root = open_root(t);

        if (root < 0)
                return "the tree of cgroups cannot be opened";
        if (faccessat(root, "cgroup.controllers", F_OK, 0) < 0)
                return "the machine has no cgroup version 2 at " CGROUP_MOUNT;
        delegate_dmem(root);
        if (mkdirat(root, TRIAL_NAME, 0755) < 0 && errno != EEXIST)
                return "no cgroup can be made for a trial below " CGROUP_MOUNT;
        t->made = true;
        t->dmem = faccessat(root, TRIAL_NAME "/dmem.max", F_OK, 0) == 0;
        return NULL;
}

static int begin_trial(LimitTrial *t, const CardList *cards) {
        const char *trouble;

        t->uuids = calloc(cards->n + 1, sizeof *t->uuids);
        if (!t->uuids)
                return -ENOMEM;
        for (size_t i = 0; i < cards->n; i++)
                if (cards->cards[i].healthy)
                        memcpy(t->uuids[t->n++], cards->cards[i].uuid, sizeof *t->uuids);
        trouble = t->n == 0 ? "the driver serves no card" : make_cgroup(t);
        if (trouble)
                fail_with(t, trouble);
        else
                ask_driver(t);
        return 0;
}

int limit_trial_new(CardSource *source, const CardList *cards, const char *cgroup_root, LimitTrialDone done,
                    void *userdata, LimitTrial **ret) {
        LimitTrial *t = calloc(1, sizeof *t);

        if (!t)
                return -ENOMEM;
        t->source = source;
        t->root = cgroup_root;
        t->done = done;
        t->userdata = userdata;
        *ret = t; /* done may be called at once, and free it */
        return begin_trial(t, cards);
}

LimitTrial *limit_trial_free(LimitTrial *t) {
        _cleanup_close_ int root = t && t->made ? open_root(t) : -1;

        if (!t)
                return NULL;
        if (t->request > 0)
                card_source_cancel_limit(t->source, t->request);
        /* Another cgroup at the same address would have its entry. The next trial finds it. */
        if (root >= 0 && (t->dmem || !t->dirty))
                (void) unlinkat(root, TRIAL_NAME, AT_REMOVEDIR);
        free(t->uuids);
        free(t);
        return NULL;
}
