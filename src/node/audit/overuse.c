/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/overuse.h"

static uint64_t part(uint64_t span, uint32_t ppm) {
        return span / OVERUSE_PPM * ppm + span % OVERUSE_PPM * ppm / OVERUSE_PPM;
}

static uint64_t owe(uint64_t owed, uint64_t used, uint64_t due, uint64_t most) {
        uint64_t sum = owed + used > due ? owed + used - due : 0;

        return sum < most ? sum : most;
}

bool overuse_window(Overuse *o, uint64_t length, uint64_t span, uint64_t used, uint32_t share) {
        uint64_t due = part(span, share + OVERUSE_TOLERANCE);
        bool over = used > due, enough, first;

        o->owed = owe(o->owed, used, due, OVERUSE_OWED * length);
        o->row = over ? o->row + 1 : 0;
        o->span = o->row > 1 ? o->span + span : span;
        o->used = o->row > 1 ? o->used + used : used;
        o->due = (o->row > 1 ? o->due : 0) + part(span, share);
        enough = o->owed > 2 * length || (o->row >= OVERUSE_ROW && o->owed > length);
        first = over && enough && !o->reported;
        o->reported = first || (o->reported && o->owed > 0);
        return first;
}

bool overuse_lasts(const Overuse *o) {
        return o->reported && o->row > 0;
}

uint32_t overuse_ppm(const Overuse *o) {
        uint64_t span = o->span / OVERUSE_PPM;

        return span > 0 ? (uint32_t) (o->used / span) : 0;
}

uint32_t overuse_due_ppm(const Overuse *o) {
        uint64_t span = o->span / OVERUSE_PPM;

        return span > 0 ? (uint32_t) (o->due / span) : 0;
}

uint64_t overuse_due(uint64_t span, uint64_t granted, uint64_t others, uint32_t floor) {
        uint64_t left = span > others ? span - others : 0, least = part(span, floor);
        uint64_t due = granted > left ? granted : left;

        due = due > least ? due : least;
        return due < span ? due : span;
}
