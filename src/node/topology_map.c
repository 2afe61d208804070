/* SPDX-License-Identifier: Apache-2.0 */
#include "node/topology_map.h"

#include <errno.h>

#include "base/log.h"
#include "kube/api.h"
#include "kube/escape.h"
#include "wire/annotation.h"
#include "wire/json_write.h"

#define COLLECTION  "/api/v1/namespaces/kube-system/configmaps"
#define NAME_PREFIX "aliquot-topology-"
#define RETRY_BASE  (1 * USEC_PER_SEC)
#define RETRY_CAP   (60 * USEC_PER_SEC)

enum { LABEL_MAX = 63 };

struct TopologyMap {
        KubeClient *client;
        char *node, *path; /* of the ConfigMap */
        char *desired;     /* the ConfigMap as JSON; NULL: nothing is to be written yet */
        char *sent;        /* by the last call */
        bool written;      /* `sent` is what the API server has */
        bool absent;       /* there is no ConfigMap yet */
        KubeCall *call;
        sd_event_source *retry;
        unsigned attempt;
};

int topology_map_new(KubeClient *client, const char *node, TopologyMap **ret) {
        _cleanup_(topology_map_freep) TopologyMap *m = calloc(1, sizeof *m);
        Buf path = BUF_NULL;

        if (!m)
                return -ENOMEM;
        m->client = client;
        m->node = str_dup(str_from(node));
        buf_append_str(&path, STR(COLLECTION "/" NAME_PREFIX));
        kube_url_escape(&path, str_from(node));
        m->path = buf_take(&path);
        if (!m->node || !m->path)
                return -ENOMEM;
        *ret = TAKE_PTR(m);
        return 0;
}

TopologyMap *topology_map_free(TopologyMap *m) {
        if (!m)
                return NULL;
        kube_call_free(m->call);
        sd_event_source_disable_unref(m->retry);
        free(m->sent);
        free(m->desired);
        free(m->path);
        free(m->node);
        free(m);
        return NULL;
}

/* ---- the text ---- */

static void write_devices(const CardList *cards, Buf *out) {
        JsonWriter w;

        json_write_init(&w, out);
        json_write_object(&w, NULL);
        for (size_t i = 0; i < cards->n; i++) {
                char index[12];

                (void) snprintf(index, sizeof index, "%u", cards->cards[i].index);
                json_write_text(&w, index, cards->cards[i].healthy ? "Healthy" : "Unhealthy");
        }
        json_write_object_end(&w);
}

static void write_word(JsonWriter *w, const CardList *cards, size_t a, size_t b) {
        const MachineCard *from = &cards->cards[a], *to = &cards->cards[b];
        CardPeer peer = {0};

        if (a != b && from->index < CARD_PEERS_MAX && to->index < CARD_PEERS_MAX)
                peer = from->peers[to->index];
        if (peer.links > 0) {
                char word[8];

                (void) snprintf(word, sizeof word, "NV%u", peer.links);
                json_write_text(w, NULL, word);
        } else
                json_write_str(w, NULL, card_peer_path((PeerPath) peer.path));
}

static void write_matrix(const CardList *cards, bool words, Buf *out) {
        JsonWriter w;

        json_write_init(&w, out);
        json_write_array(&w, NULL);
        for (size_t a = 0; a < cards->n; a++) {
                json_write_array(&w, NULL);
                for (size_t b = 0; b < cards->n; b++)
                        if (words)
                                write_word(&w, cards, a, b);
                        else
                                json_write_u64(&w, NULL, card_list_rate(cards, a, b));
                json_write_array_end(&w);
        }
        json_write_array_end(&w);
}

static void write_metadata(JsonWriter *w, const char *node, Str uid) {
        char name[sizeof NAME_PREFIX + 253];

        (void) snprintf(name, sizeof name, NAME_PREFIX "%s", node);
        json_write_object(w, "metadata");
        json_write_text(w, "name", name);
        json_write_text(w, "namespace", "kube-system");
        json_write_object(w, "labels");
        json_write_text(w, LABEL_SCHEDULE, "topology");
        json_write_text(w, "nodename", node);
        json_write_object_end(w);
        json_write_array(w, "ownerReferences");
        json_write_object(w, NULL);
        json_write_text(w, "apiVersion", "v1");
        json_write_text(w, "kind", "Node");
        json_write_text(w, "name", node);
        json_write_str(w, "uid", uid);
        json_write_object_end(w);
        json_write_array_end(w);
        json_write_object_end(w);
}

void topology_map_write(Buf *out, const char *node, Str uid, const CardList *cards) {
        _cleanup_buf_ Buf devices = BUF_NULL, words = BUF_NULL, rates = BUF_NULL;
        JsonWriter w;

        write_devices(cards, &devices);
        write_matrix(cards, true, &words);
        write_matrix(cards, false, &rates);
        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_text(&w, "apiVersion", "v1");
        json_write_text(&w, "kind", "ConfigMap");
        write_metadata(&w, node, uid);
        json_write_object(&w, "data");
        json_write_str(&w, "devices", buf_str(&devices));
        json_write_str(&w, "linkType", buf_str(&words));
        json_write_str(&w, "bandwith", buf_str(&rates)); /* arena spells it so */
        json_write_object_end(&w);
        json_write_object_end(&w);
        out->broken |= devices.broken || words.broken || rates.broken;
}

/* ---- the calls ---- */

static void sync_map(TopologyMap *m);

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        TopologyMap *m = userdata;

        m->retry = sd_event_source_disable_unref(m->retry);
        sync_map(m);
        return 0;
}

static void retry_later(TopologyMap *m, usec_t after) {
        if (!m->retry && sd_event_add_time_relative(kube_client_event(m->client), &m->retry, CLOCK_MONOTONIC,
                                                    kube_backoff(m->attempt++, RETRY_BASE, RETRY_CAP, after),
                                                    0, on_retry, m) < 0)
                log_error("out of memory: the ConfigMap of the links is written when they change");
}

/* A patch finds no ConfigMap, or an agent that has just ended created it meanwhile. */
static void on_written(void *userdata, const KubeReply *reply) {
        TopologyMap *m = userdata;
        bool created = m->absent;

        m->call = NULL;
        m->absent = reply->outcome == KUBE_DONE && reply->status == 404 && !created;
        m->written = reply->outcome == KUBE_DONE && reply->status < 300;
        if (m->written)
                m->attempt = 0;
        if (m->written || m->absent) {
                sync_map(m);
                return;
        }
        log_warning("kube-system/" NAME_PREFIX "%s is not written: %s", m->node, reply->fault.text);
        retry_later(m, reply->retry_after);
}

static int send_map(TopologyMap *m) {
        char *sent = str_dup(str_from(m->desired));

        if (!sent)
                return -ENOMEM;
        free(m->sent);
        m->sent = sent;
        m->written = false;
        return kube_call(m->client,
                         &(KubeRequest){.method = m->absent ? "POST" : "PATCH",
                                        .path = m->absent ? COLLECTION : m->path,
                                        .content_type = m->absent ? NULL : "application/merge-patch+json",
                                        .body = str_from(m->sent)},
                         on_written, m, &m->call);
}

static void sync_map(TopologyMap *m) {
        if (!m->desired || m->call || m->retry || (m->written && strcmp(m->sent, m->desired) == 0))
                return;
        if (send_map(m) < 0)
                retry_later(m, 0);
}

int topology_map_set(TopologyMap *m, Str uid, const CardList *cards) {
        Buf text = BUF_NULL;
        char *desired;

        if (strlen(m->node) > LABEL_MAX)
                return 0; /* no label can name the node */
        topology_map_write(&text, m->node, uid, cards);
        desired = buf_take(&text);
        if (!desired)
                return -ENOMEM;
        free(m->desired);
        m->desired = desired;
        sync_map(m);
        return 0;
}
