/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Inside the agent: what its files share. */

#include "cards/cdi.h"
#include "cards/source.h"
#include "http/server.h"
#include "kube/event.h"
#include "kube/reflector.h"
#include "node/agent.h"
#include "node/audit.h"
#include "node/dying.h"
#include "node/prove.h"
#include "node/publisher.h"
#include "node/terms.h"

typedef struct AgentCounters {
        uint64_t registrations, lost[DEVICE_KINDS_];
        uint64_t card_troubles;
} AgentCounters;

struct Agent {
        AgentOptions o;
        sd_event *event;
        KubeClient *client;
        KubeEventRecorder *recorder;
        Roster roster;
        Records records;
        Teller *teller;
        Publisher *publisher;
        Dying *dying;
        PodResources *pod_resources;
        Admit *admit;
        Prove *prove;
        Plugin *plugins[DEVICE_KINDS_];
        bool registered[DEVICE_KINDS_];
        Reflector *pods, *nodes;
        sd_event_source *list_again;
        CardSource *source;
        CardList cards;
        bool cards_known;
        Inventory inventory;
        Isolation isolation;
        Audit *audit;
        Terms terms;
        Fault unit_fault;   /* why the unit in force will not do; "" when it will */
        Fault wanted_fault; /* and the one that is wanted */
        char *node_uid;     /* NULL: the node object has not come yet */
        char *checkpoint, *pod_resources_socket, *records_dir, *cards_file, *terms_file, *cdi_file;
        Fault told;   /* the last thing that was said in an Event of the node */
        Fault untold; /* what was to be said before the node object had come; "" when nothing was */
        const char *untold_reason;
        HttpServer *metrics;
        AgentCounters counters;
        KubeCall *last_look;
        sd_event_source *last_wait;
        void (*stopped)(void *userdata);
        void *stopped_userdata;
};

/* offer.c: what is offered, from cards and terms. */
int agent_take_cards(Agent *a, const CardList *cards); /* 0 or -ENOMEM */
void agent_take_node(Agent *a, const Node *node);
void agent_settle(Agent *a); /* slices came or went, or something is wanted: what can come into force does */
size_t agent_holders(const Agent *a);
void agent_said_unit(Agent *a, const char *unit); /* remembered over restarts */

/* words.c: what the node object is to say. */
void agent_publish(Agent *a);
void agent_warn(Agent *a, const char *reason, const Fault *note); /* an Event of the node */

/* agent_metrics.c */
int agent_serve_metrics(Agent *a, Fault *fault);
