/* SPDX-License-Identifier: Apache-2.0 */
#include "node/publish/node_events.h"

#include "base/log.h"

void node_events_now(NodeEvents *e, const char *reason, const char *note) {
        log_warning("%s: %s", reason, note);
        if (!e->uid)
                return; /* there was no memory for the UID: only the log has the text */
        kube_event_warn(e->recorder, "Node",
                        &(ObjectMeta){.name = str_from(e->name), .uid = str_from(e->uid)}, reason, note);
}

static void write_waiting(NodeEvents *e) {
        for (size_t i = 0; e->uid && i < EVENT_REASONS_MAX; i++) {
                EventReason *entry = &e->reasons.entries[i];

                if (!entry->reason || entry->told)
                        continue;
                entry->told = true;
                node_events_now(e, entry->reason, entry->note.text);
        }
}

void node_events_tell(NodeEvents *e, const char *reason, const Fault *note) {
        EventReason *entry = event_reasons_entry(&e->reasons, reason);

        entry->note = *note;
        entry->told = false;
        write_waiting(e);
}

void node_events_once(NodeEvents *e, const char *reason, const Fault *note) {
        if (strcmp(event_reasons_entry(&e->reasons, reason)->note.text, note->text) != 0)
                node_events_tell(e, reason, note);
}

/* A Node that was deleted and created again has another UID. */
void node_events_set_uid(NodeEvents *e, Str uid) {
        if (!e->uid || !str_eq(str_from(e->uid), uid)) {
                free(e->uid);
                e->uid = str_dup(uid); /* NULL without memory: the next event of the Node sets it */
        }
        write_waiting(e);
}

void node_events_done(NodeEvents *e) {
        free(e->uid);
        e->uid = NULL;
}
