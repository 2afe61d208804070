/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/facts.h"

#include <stdlib.h>

static void clear_host(HostFacts *h) {
        for (int i = 0; i < HOST_FILES_; i++)
                fact_done(&h->files[i]);
        fact_done(&h->nvml);
        fact_done(&h->slices);
        fact_done(&h->outside);
        fact_done(&h->library);
        fact_done(&h->agent_socket);
        fact_done(&h->pod_resources);
        fact_done(&h->records);
        card_list_done(&h->cards);
        json_decref(h->plugin_sockets);
}

static void clear_cluster(ClusterFacts *c) {
        for (int i = 0; i < API_QUESTIONS_; i++)
                fact_done(&c->api[i]);
        for (size_t i = 0; i < c->n_nodes; i++) {
                free(c->nodes[i].name);
                free(c->nodes[i].text);
                json_decref(c->nodes[i].json);
                fact_done(&c->nodes[i].configz);
                fact_done(&c->nodes[i].ready);
        }
        free(c->nodes);
}

void facts_done(Facts *f) {
        clear_host(&f->host);
        clear_cluster(&f->cluster);
        *f = (Facts){0};
}
