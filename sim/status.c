/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/status.h"

#include "gpu/rm/rm.h"
#include "sim/call.h"
#include "wire/json_write.h"

static void write_card(JsonWriter *w, const SimCard *c) {
        json_write_object(w, NULL);
        json_write_u64(w, "index", c->about.index);
        json_write_text(w, "uuid", c->about.uuid);
        json_write_text(w, "model", c->about.model);
        json_write_u64(w, "bytes", c->bytes);
        json_write_u64(w, "reserved", c->reserved);
        json_write_u64(w, "used", c->used);
        json_write_u64(w, "largestFree", sim_card_largest(c).bytes);
        json_write_object_end(w);
}

/* What a client's objects of class 0x40 hold of each card, and what the driver took for its channel
 * groups. */
static void write_holdings(JsonWriter *w, const Sim *s, const SimClient *c) {
        json_write_array(w, "cards");
        for (uint32_t card = 0; card < s->n_cards; card++) {
                uint64_t memory = 0, groups = 0;

                for (const SimObject *o = c->objects; o; o = o->hh.next)
                        if (o->block && o->block->card == &s->cards[card])
                                *(o->class_ == RM_CLASS_MEMORY_LOCAL ? &memory : &groups) += o->block->bytes;
                if (memory == 0 && groups == 0)
                        continue;
                json_write_object(w, NULL);
                json_write_u64(w, "index", card);
                json_write_u64(w, "memory", memory);
                json_write_u64(w, "groups", groups);
                json_write_object_end(w);
        }
        json_write_array_end(w);
}

/* What was asked for the client's channel groups and channels (fifo.h). */
static void write_schedules(JsonWriter *w, const SimClient *c) {
        json_write_array(w, "schedules");
        for (const SimObject *o = c->objects; o; o = o->hh.next) {
                if (o->class_ != RM_CLASS_CHANNEL_GROUP && !rm_class_is_channel(o->class_))
                        continue;
                json_write_object(w, NULL);
                json_write_u64(w, "handle", o->handle);
                json_write_u64(w, "class", o->class_);
                json_write_u64(w, "timesliceUs", o->timeshare.timeslice_usec);
                json_write_u64(w, "computeMode", o->timeshare.compute_mode);
                json_write_u64(w, "preempts", o->timeshare.preempts);
                json_write_bool(w, "scheduled", o->timeshare.scheduled);
                json_write_bool(w, "disabled", o->timeshare.disabled);
                json_write_object_end(w);
        }
        json_write_array_end(w);
}

static void write_client(JsonWriter *w, const Sim *s, const SimClient *c) {
        json_write_object(w, NULL);
        json_write_u64(w, "handle", c->handle);
        json_write_u64(w, "pid", c->pid);
        json_write_u64(w, "uid", c->uid);
        json_write_u64(w, "objects", HASH_COUNT(c->objects));
        write_holdings(w, s, c);
        write_schedules(w, c);
        json_write_object_end(w);
}

void sim_status_write(const Sim *s, Buf *out) {
        JsonWriter w;

        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_text(&w, "driver", s->release.version);
        json_write_u64(&w, "files", s->n_files - (s->exporter != NULL)); /* of programs */
        json_write_u64(&w, "objects", s->n_objects);
        json_write_array(&w, "cards");
        for (size_t i = 0; i < s->n_cards; i++)
                write_card(&w, &s->cards[i]);
        json_write_array_end(&w);
        json_write_array(&w, "clients");
        for (const SimClient *c = s->clients; c; c = c->hh.next)
                write_client(&w, s, c);
        json_write_array_end(&w);
        json_write_object_end(&w);
        buf_append_char(out, '\n');
}
