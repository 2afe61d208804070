/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/repair.h"

#include <errno.h>

#include "base/log.h"
#include "base/told.h"
#include "kube/api.h"
#include "node/allocate/field_managers.h"
#include "node/allocate/pod_keys.h"
#include "node/allocate/repair_rate.h"

#define APART           (1 * USEC_PER_SEC)  /* between repairs, and until the watch shows a patch */
#define REPORT_INTERVAL (60 * USEC_PER_SEC) /* between two reports of one pod */
#define OURSELF         STR("aliquot") /* the field manager that the API server derives from our User-Agent */

enum { NAMED = 64 }; /* bytes of a field manager's text in the report */

/* A pod that was or is to be repaired. It is kept as long as the pod, because it holds the pod's
 * rate. */
typedef struct Item {
        UT_hash_handle hh;
        Repair *repair;
        uint32_t wrong; /* system keys; 0: all are right */
        usec_t due;     /* the earliest time of its next repair */
        Told reported;  /* when it was last reported */
        RepairRate rate;
        KubeCall *get;
        char uid[];
} Item;

struct Repair {
        RepairOptions o;
        Item *items;
        sd_event_source *timer;
        usec_t next; /* no repair of any pod before */
        RepairCounters counters;
};

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata);

int repair_new(const RepairOptions *options, Repair **ret) {
        _cleanup_(repair_freep) Repair *r = calloc(1, sizeof *r);
        int e;

        if (!r)
                return -ENOMEM;
        r->o = *options;
        e = sd_event_add_time(options->node->event, &r->timer, CLOCK_MONOTONIC, 0, 0, on_timer, r);
        if (e >= 0)
                e = sd_event_source_set_enabled(r->timer, SD_EVENT_OFF);
        if (e < 0)
                return e;
        *ret = TAKE_PTR(r);
        return 0;
}

static void item_free(Item *item) {
        HASH_DELETE(hh, item->repair->items, item);
        kube_call_free(item->get);
        free(item);
}

Repair *repair_free(Repair *r) {
        if (!r)
                return NULL;
        while (r->items)
                item_free(r->items);
        sd_event_source_disable_unref(r->timer);
        free(r);
        return NULL;
}

RepairCounters repair_counters(const Repair *r) {
        RepairCounters counters = r->counters;

        for (const Item *item = r->items; item; item = item->hh.next)
                counters.waiting += item->wrong != 0;
        return counters;
}

/* ---- what is wrong ---- */

/* Whether the pod's keys can be compared: by its record a container has started, and the sizes of
 * the cards are known. */
static bool is_judged(const Repair *r, const RosterPod *pod) {
        const Record *record = records_find(r->o.node->records, str_from(pod->uid));

        return pod->grant && pod->placed && r->o.node->roster->has_cards && record &&
               record_has_started(record);
}

static uint32_t wrong_keys(const Repair *r, const RosterPod *pod) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        PodKeys keys;

        if (!is_judged(r, pod) || pod_keys_make(pod, true, &arena, &keys) < 0)
                return 0;
        return pod_keys_differ(&keys, pod, &arena);
}

static void name_keys(uint32_t keys, Buf *out) {
        for (size_t i = 0; i < POD_SYSTEM_KEYS_COUNT; i++)
                if ((keys >> i & 1) != 0)
                        buf_appendf(out, "%s" STR_FMT, out->len > 0 ? ", " : "",
                                    STR_ARG(pod_system_key_names[i]));
}

/* ---- reporting ---- */

/* Names the owner of a wrong key. A key that was removed has none. */
static void name_manager(const FieldManager *manager, Buf *out) {
        if (str_is_empty(manager->name)) {
                buf_append_str(out, STR("no field manager is known"));
                return;
        }
        buf_appendf(out, "%s field manager \"%.*s\" (%.*s at %.*s)",
                    manager->owns ? "last by" : "no field manager owns them; the pod was written last by",
                    STR_CUT(manager->name, NAMED), STR_CUT(manager->operation, NAMED),
                    STR_CUT(manager->time, NAMED));
}

static void report_tampering(Item *item, const RosterPod *pod, const FieldManager *manager) {
        const Repair *r = item->repair;
        _cleanup_buf_ Buf names = BUF_NULL, writer = BUF_NULL;
        Fault note = FAULT_NULL;

        name_keys(item->wrong, &names);
        name_manager(manager, &writer);
        (void) fault_set(&note, 0,
                         "annotations are changed again and again, " STR_FMT
                         ": what the node has given out stays, and is written back %d times a minute at "
                         "most: " STR_FMT,
                         STR_ARG(buf_str(&writer)), REPAIR_RATE_MAX, STR_ARG(buf_str(&names)));
        r->o.on_tampered(r->o.userdata, pod, &note);
}

static void on_pod(void *userdata, const KubeReply *reply) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        FieldManager manager = {0};
        Item *item = userdata;
        const RosterPod *pod = roster_find(item->repair->o.node->roster, str_from(item->uid));

        item->get = NULL;
        if (reply->outcome == KUBE_DONE && reply->status == 200)
                (void) field_managers_last(reply->body, item->wrong, OURSELF, &arena, &manager,
                                           NULL); /* a malformed list names no manager */
        if (pod && item->wrong != 0)
                report_tampering(item, pod, &manager);
}

/* Reports a pod that has used up its rate of repairs, with the manager that wrote its keys. */
static void report_if_frequent(Item *item, const RosterPod *pod, usec_t now) {
        Repair *r = item->repair;

        if (item->get || repair_rate_next(&item->rate, now) == now ||
            !told_is_news(&item->reported, STR(""), now, REPORT_INTERVAL))
                return;
        r->counters.tampered++;
        if (kube_get_pod(r->o.node->client, str_from(pod->namespace_), str_from(pod->name), on_pod, item,
                         &item->get) < 0)
                report_tampering(item, pod, &(FieldManager){0});
}

/* ---- repairing ---- */

static usec_t due_time(const Item *item, usec_t now) {
        usec_t at = repair_rate_next(&item->rate, now);

        at = at > item->due ? at : item->due;
        return at > item->repair->next ? at : item->repair->next;
}

/* The pod that may be repaired first; of several, the one that has waited longest. */
static Item *first_due(const Repair *r, usec_t now) {
        Item *found = NULL;

        for (Item *item = r->items; item; item = item->hh.next)
                if (item->wrong != 0 &&
                    (!found || due_time(item, now) < due_time(found, now) ||
                     (due_time(item, now) == due_time(found, now) && item->due < found->due)))
                        found = item;
        return found;
}

static void restore_keys(Item *item, const RosterPod *pod, usec_t now) {
        Repair *r = item->repair;
        _cleanup_buf_ Buf names = BUF_NULL;

        name_keys(item->wrong, &names);
        log_warning("annotations of pod=%s/%s are written back: " STR_FMT, pod->namespace_, pod->name,
                    STR_ARG(buf_str(&names)));
        repair_rate_take(&item->rate, now);
        r->next = now + APART;
        item->due = now + APART; /* until the watch shows it */
        r->counters.repaired++;
        pod_patcher_restore(r->o.node->pod_patcher, pod);
}

/* Whether a patch is under way, or is not shown by the watch yet: it may have corrected the
 * keys. */
static bool is_settling(const Repair *r, const RosterPod *pod) {
        return pod_patcher_is_pending(r->o.node->pod_patcher, pod) ||
               (pod->version > 0 && pod->version < pod->written);
}

static void restore_wrong(Item *item, usec_t now) {
        const Repair *r = item->repair;
        const RosterPod *pod = roster_find(r->o.node->roster, str_from(item->uid));

        item->wrong = pod ? wrong_keys(r, pod) : 0;
        if (item->wrong == 0)
                return;
        if (is_settling(r, pod))
                item->due = now + APART;
        else
                restore_keys(item, pod, now);
}

static void arm_timer(Repair *r, usec_t now) {
        const Item *item = first_due(r, now);

        if (!item)
                return;
        (void) sd_event_source_set_time(r->timer, due_time(item, now)); /* neither can fail for a live loop */
        (void) sd_event_source_set_enabled(r->timer, SD_EVENT_ONESHOT);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Repair *r = userdata;
        usec_t now = clock_monotonic_usec();
        Item *item;

        while ((item = first_due(r, now)) && due_time(item, now) <= now)
                restore_wrong(item, now);
        arm_timer(r, now);
        return 0;
}

static Item *ensure_item(Repair *r, const char *uid) {
        size_t n = strlen(uid);
        Item *item;

        HASH_FIND(hh, r->items, uid, n, item);
        if (item)
                return item;
        item = calloc(1, sizeof *item + n + 1);
        if (!item)
                return NULL;
        item->repair = r;
        memcpy(item->uid, uid, n + 1);
        HASH_ADD_KEYPTR(hh, r->items, item->uid, n, item);
        if (hash_added(item, hh))
                return item;
        free(item);
        return NULL;
}

static Item *find_item(const Repair *r, Str uid) {
        Item *item;

        HASH_FIND(hh, r->items, uid.data, uid.len, item);
        return item;
}

void repair_look(Repair *r, const RosterPod *pod) {
        uint32_t wrong = wrong_keys(r, pod);
        usec_t now = clock_monotonic_usec();
        Item *item = wrong != 0 ? ensure_item(r, pod->uid) : find_item(r, str_from(pod->uid));

        if (!item) {
                if (wrong != 0)
                        log_error("out of memory: annotations of pod=%s/%s stay wrong", pod->namespace_,
                                  pod->name);
                return;
        }
        if (wrong != 0 && item->wrong == 0 && item->due < now)
                item->due = now;
        item->wrong = wrong;
        if (wrong == 0)
                return;
        if (!is_settling(r, pod))
                report_if_frequent(item, pod, now);
        arm_timer(r, now);
}

void repair_forget(Repair *r, Str uid) {
        Item *item = find_item(r, uid);

        if (item)
                item_free(item);
}
