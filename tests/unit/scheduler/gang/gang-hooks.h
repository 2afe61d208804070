/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Hooks that write down what the gangs asked for. */

#include "gang-kit.h"

/* What the hooks were asked for, as words: "release:a give:b wake:c ". */
static char asked[4096];
static char told[256];
static const char *why_given;

static inline void note(const char *what, const char *uid) {
        size_t n = strlen(asked);

        (void) snprintf(asked + n, sizeof asked - n, "%s:%s ", what, uid);
}

static inline void on_release(void *userdata, Str uid) {
        note("release", uid.data);
        gangs_drop_place(userdata, uid); /* the pod's own grant is made */
}

static inline void on_give_back(void *userdata, Str uid, const char *why) {
        note("give", uid.data);
        why_given = why;
        gangs_bind_ended(userdata, uid, false, 0);
}

static bool patches_stay; /* without an answer */

static inline void on_wake(void *userdata, const GangMember *m) {
        Gangs *gs = userdata;

        note(m->gated ? "ungate" : "kick", m->uid);
        if (!patches_stay)
                gangs_woken(gs, str_from(m->uid), true, gs->active);
}

static char rooms[256]; /* nodes where a place was given back, as "n1 n2 " */

static inline void on_room(void *userdata, Str node) {
        size_t n = strlen(rooms);

        (void) snprintf(rooms + n, sizeof rooms - n, STR_FMT " ", STR_ARG(node));
}

static inline void on_tell(void *userdata, const GangMember *m, const char *reason, const char *words) {
        (void) snprintf(told, sizeof told, "%s %s", reason, words);
}
