/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/gang/gang_table.h"

#include <errno.h>

#include "base/log.h"
#include "wire/pod_gang.h"

const char *gang_table_state_name(GangState state) {
        static const char *const names[GANG_STATES_] = {
                [GANG_WAITING] = "waiting",       [GANG_READY] = "ready",         [GANG_REPAIR] = "repair",
                [GANG_ASSEMBLING] = "assembling", [GANG_SATISFIED] = "satisfied", [GANG_BACKOFF] = "backoff",
        };

        return names[state];
}

void gang_table_set_state(Gang *g, GangState state, usec_t now) {
        if (g->state == state)
                return;
        log_info("gang=%s %s -> %s members=%u ready=%u held=%u bound=%u min=%u%s%s", g->key,
                 gang_table_state_name(g->state), gang_table_state_name(state), g->count.living,
                 g->count.ready, g->count.held, g->count.bound, g->count.min, g->why[0] ? ": " : "", g->why);
        g->state = state;
        g->since = now;
}

/* ---- counting ---- */

bool gang_table_is_ready(const GangMember *m) {
        return !m->bound && !m->ended && !m->terminating && !m->gated_else && !m->elsewhere && !m->impossible;
}

bool gang_table_has_failed(const GangMember *m) {
        return m->failed != 0 && m->failed == m->gang->attempt;
}

static void count_member(GangCount *c, const GangMember *m, bool first) {
        c->ended += m->ended;
        c->done += m->ended && m->round == m->gang->round;
        if (m->ended || m->terminating)
                return;
        c->living++;
        c->bound += m->bound;
        c->released += m->released && !m->bound;
        c->held += m->held;
        c->ready += gang_table_is_ready(m);
        c->kinds += gang_table_is_ready(m) && !m->released ? m->kind + 1 : 0;
        c->failed += gang_table_is_ready(m) && gang_table_has_failed(m);
        c->elsewhere += m->elsewhere;
        c->gated_else += m->gated_else;
        c->impossible += m->impossible && !m->bound;
        c->min_wrong |= m->min_wrong;
        c->min_differs |= m->min != 0 && c->min != 0 && m->min != c->min;
        if (m->min > c->min)
                c->min = m->min;
        if (first || m->priority < c->priority_low)
                c->priority_low = m->priority;
        if (first || m->priority > c->priority_high)
                c->priority_high = m->priority;
}

void gang_table_count(Gang *g) {
        GangCount c = {0};

        for (const GangMember *m = g->members; m; m = m->next)
                count_member(&c, m, c.living == 0);
        g->count = c;
}

uint32_t gang_table_n_bound(const Gang *g) {
        const GangCount *c = &g->count;

        return c->bound + c->released + (c->bound > 0 ? c->done : 0);
}

bool gang_table_has_enough(const Gang *g) {
        return gang_table_n_bound(g) + g->count.ready - g->count.released >= g->count.min;
}

bool gang_table_can_succeed(const Gang *g) {
        const GangCount *c = &g->count;

        return gang_table_n_bound(g) + c->ready - c->released >= c->min + c->failed;
}

bool gang_table_is_free(const Gang *g) {
        return g->count.min == 0 && !g->count.min_wrong;
}

bool gang_table_is_contradictory(const Gang *g) {
        return g->count.min_wrong || g->count.priority_low != g->count.priority_high;
}

/* ---- members ---- */

GangMember *gang_table_find(const GangTable *t, Str uid) {
        GangMember *m;

        HASH_FIND(hh, t->members, uid.data, uid.len, m);
        return m;
}

static Gang *find_key(const GangTable *t, const char *key, size_t len) {
        Gang *g;

        HASH_FIND(hh, t->gangs, key, len, g);
        return g;
}

/* The longest key: two names of Kubernetes' greatest length and a slash. */
enum { KEY_MAX = 2 * 253 + 1 };

static size_t make_key(Str namespace_, Str name, char ret[static KEY_MAX + 1]) {
        int n = snprintf(ret, KEY_MAX + 1, STR_FMT "/" STR_FMT, STR_ARG(namespace_), STR_ARG(name));

        return n < 0 || n > KEY_MAX ? 0 : (size_t) n;
}

Gang *gang_table_find_gang(const GangTable *t, Str namespace_, Str name) {
        char key[KEY_MAX + 1];
        size_t len = make_key(namespace_, name, key);

        return len > 0 ? find_key(t, key, len) : NULL;
}

static Gang *ensure_gang(GangTable *t, Str namespace_, Str name) {
        Gang *g = gang_table_find_gang(t, namespace_, name);
        char key[KEY_MAX + 1];
        size_t len = make_key(namespace_, name, key);
        char *texts;

        if (g || len == 0)
                return g;
        g = calloc(1, sizeof *g + 2 * (len + 1));
        if (!g)
                return NULL;
        memcpy(g->key, key, len);
        texts = g->key + len + 1;
        memcpy(texts, key, len);
        texts[namespace_.len] = '\0';
        g->namespace_ = texts;
        g->name = texts + namespace_.len + 1;
        g->members_end = &g->members;
        g->round = 1;
        HASH_ADD_KEYPTR(hh, t->gangs, g->key, len, g);
        if (!hash_added(g, hh)) {
                free(g);
                return NULL;
        }
        return g;
}

static void free_gang(GangTable *t, Gang *g) {
        HASH_DELETE(hh, t->gangs, g);
        for (size_t i = 0; i < g->n_kinds; i++)
                free(g->kinds[i].offered);
        free(g);
}

static void unlink_member(GangMember *m) {
        *m->link = m->next;
        if (m->next)
                m->next->link = m->link;
        else
                m->gang->members_end = m->link;
}

bool gang_table_remove(GangTable *t, GangMember *m) {
        Gang *g = m->gang;

        unlink_member(m);
        HASH_DELETE(hh, t->members, m);
        grant_free(m->place);
        free(m->request);
        free(m);
        if (g->members) {
                gang_table_count(g);
                return false;
        }
        free_gang(t, g);
        return true;
}

static GangMember *add_member(GangTable *t, Gang *g, const GangPod *pod) {
        GangMember *m = calloc(1, sizeof *m + pod->name.len + pod->uid.len + 2);

        if (!m)
                return NULL;
        m->name = (char *) (m + 1);
        m->uid = m->name + pod->name.len + 1;
        memcpy(m->name, pod->name.data, pod->name.len);
        memcpy(m->uid, pod->uid.data, pod->uid.len);
        (void) snprintf(m->created, sizeof m->created, STR_FMT, STR_ARG(pod->created));
        m->gang = g;
        m->link = g->members_end;
        *g->members_end = m;
        g->members_end = &m->next;
        HASH_ADD_KEYPTR(hh, t->members, m->uid, pod->uid.len, m);
        if (!hash_added(m, hh)) {
                unlink_member(m);
                free(m);
                return NULL;
        }
        return m;
}

static uint64_t hash_request(const Request *r) {
        const uint32_t amounts[] = {r->mem, r->core, r->cards, r->whole};
        uint64_t hash = str_hash64((Str){(const char *) amounts, sizeof amounts}, 1);

        hash = str_hash64((Str){(const char *) r->containers, r->n_containers * sizeof *r->containers}, hash);
        return r->choice ? str_hash64((Str){(const char *) r->choice, r->choice->size}, hash) : hash;
}

/* Replaces the member's request by a copy; NULL: by none. Returns 0 or -ENOMEM. */
static int keep_request(GangMember *m, const Request *request) {
        void *copy = NULL;

        if (request) {
                copy = malloc(request_size(request));
                if (!copy)
                        return -ENOMEM;
        }
        free(m->request);
        m->request = request ? request_copy(request, copy) : NULL;
        m->kind = request ? hash_request(request) | 1 : 0;
        return 0;
}

void gang_table_set_bound(GangMember *m) {
        if (!m->bound)
                m->round = m->gang->round;
        m->bound = true;
}

static void take_over(GangMember *m, const GangPod *pod) {
        m->priority = pod->priority;
        m->min = 0;
        m->min_wrong = !str_is_empty(pod->min) && !pod_gang_min(pod->min, &m->min);
        m->min = m->min_wrong ? 0 : m->min;
        m->where = pod->where;
        m->wakes = m->gated && !pod->gated ? 0 : m->wakes;
        m->gated = pod->gated;
        m->gated_else = pod->gated_else;
        m->scheduler = str_hash64(pod->scheduler, 0);
        m->impossible = pod->impossible;
        /* A pod once bound stays bound: an object that says otherwise is older. */
        if (pod->bound && !pod->ended)
                gang_table_set_bound(m);
        m->bound |= pod->bound;
        m->ended = pod->ended;
        m->terminating = pod->terminating;
        m->message = str_is_empty(pod->message) ? 0 : str_hash64(pod->message, 0) | 1;
}

int gang_table_put(GangTable *t, const GangPod *pod, GangMember **ret) {
        GangMember *m = gang_table_find(t, pod->uid);
        Gang *g;

        g = m ? m->gang : ensure_gang(t, pod->namespace_, pod->gang);
        if (!g)
                return -ENOMEM;
        if (!m)
                m = add_member(t, g, pod);
        if (!m || keep_request(m, pod->request) < 0) {
                if (!g->members)
                        free_gang(t, g);
                return -ENOMEM;
        }
        take_over(m, pod);
        m->generation = t->generation;
        gang_table_count(g);
        *ret = m;
        return 0;
}

void gang_table_done(GangTable *t) {
        GangMember *m, *next;

        HASH_ITER(hh, t->members, m, next)
        (void) gang_table_remove(t, m);
}

/* ---- kinds ---- */

GangKind *gang_table_kind(Gang *g, const GangMember *m) {
        for (size_t i = 0; i < g->n_kinds; i++)
                if (g->kinds[i].where == m->where && g->kinds[i].request == m->kind)
                        return &g->kinds[i];
        if (g->n_kinds == GANG_KINDS_MAX)
                return NULL;
        g->kinds[g->n_kinds] = (GangKind){.where = m->where, .request = m->kind};
        return &g->kinds[g->n_kinds++];
}
