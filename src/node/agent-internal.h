/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Inside the agent: what its files share. */

#include "gpu/cards/card_source.h"
#include "gpu/cards/cdi.h"
#include "kube/event.h"
#include "kube/reflector.h"
#include "net/http/http_server.h"
#include "node/agent.h"
#include "node/allocate/orphans.h"
#include "node/allocate/start_verifier.h"
#include "node/audit/compute_audit.h"
#include "node/audit/hung_filter.h"
#include "node/audit/hung_reader.h"
#include "node/audit/memory_audit.h"
#include "node/audit/slicedir_watch.h"
#include "node/keys.h"
#include "node/publisher.h"
#include "node/recheck.h"
#include "node/terms.h"

typedef struct AgentCounters {
        uint64_t registrations, lost[DEVICE_KINDS_];
        uint64_t card_troubles;
        uint64_t killed;         /* processes of those who hold too much */
        uint64_t overuse_killed; /* of those who have too much time */
        uint64_t hung_killed;    /* and of those whose kernel does not end */
        uint64_t dropped;        /* by the kubelet, without a word */
} AgentCounters;

/* What was last said of one cause in an Event of the node, or is to be said once the node object
 * has come. */
typedef struct AgentWarning {
        const char *reason; /* static; NULL: free */
        Fault note;
        bool told;
} AgentWarning;
enum { WARNINGS_MAX = 12 }; /* causes; there are eleven */

struct Agent {
        AgentOptions o;
        sd_event *event;
        KubeClient *client;
        KubeEventRecorder *recorder;
        Roster roster;
        Records records;
        NodeContext context; /* lent to the parts of node/allocate; owns pod_resources and pod_patcher */
        Publisher *publisher;
        Orphans *orphans;
        Repair *repair;
        Resolver *resolver;
        StartVerifier *start_verifier;
        Plugin *plugins[DEVICE_KINDS_];
        bool registered[DEVICE_KINDS_];
        size_t healthy[DEVICE_KINDS_]; /* devices that are offered */
        Recheck *recheck;
        Reflector *pods, *nodes;
        sd_event_source *list_again;
        CardSource *source;
        CardList cards;
        bool cards_known;
        CardFences fences; /* of an earlier run */
        Inventory inventory;
        Isolation isolation;
        MemoryAudit *memory_audit;
        ComputeAudit *compute_audit;
        HungReader *hung_reader;
        HungFilter hung_filter;
        SlicedirWatch *slicedir_watch;
        Terms terms;
        NodeKeys keys;
        bool keys_known;    /* the keys of the Node object have been judged */
        bool offers;        /* the unit in force is one that the cards can be offered in */
        Fault unit_fault;   /* what is wrong with the unit in force; "": nothing */
        Fault wanted_fault; /* and with the one that is wanted */
        Fault node_fault;   /* what the node's own ledger said last of the Node object */
        Fault change_said;  /* the change that waits, as the last Event told it; "": none waits */
        char *node_uid;     /* NULL: the node object has not come yet */
        char *node_text;    /* the Node object as it came last; NULL: it has not come yet */
        char *checkpoint, *pod_resources_socket, *records_dir, *cards_file, *fences_file, *terms_file,
                *cdi_file;
        bool terms_saved; /* the file says what `terms` says */
        AgentWarning warnings[WARNINGS_MAX];
        size_t n_warnings; /* ever */
        HttpServer *metrics;
        AgentCounters counters;
        KubeCall *last_look;
        sd_event_source *last_wait;
        void (*stopped)(void *userdata);
        void *stopped_userdata;
};

/* Each begins one part, 0 or negative errno. state.c: before all else, and once there are
 * plugins. */
int agent_open_state(Agent *a, Fault *fault);
int agent_remember(Agent *a);
int agent_begin_plugins(Agent *a, Fault *fault); /* plugins.c: what the kubelet calls */
int agent_begin_source(Agent *a, Fault *fault);  /* source.c: what the cards tell */
int agent_follow(Agent *a);                      /* follow.c: what the API server tells */

/* offer.c: what is offered, from cards and terms. */
int agent_take_cards(Agent *a, const CardList *cards);            /* 0 or -ENOMEM */
void agent_take_fences(void *userdata, const CardFences *fences); /* userdata: the agent */
/* The Node object as it is now: decoded and as text. listed: as of publisher_saw(). 0 or
 * -ENOMEM. */
int agent_take_node(Agent *a, const Node *node, Str text, bool listed);
void agent_settle(Agent *a); /* slices came or went, or something is wanted: what can come into force does */
size_t agent_holders(const Agent *a);
void agent_said_unit(Agent *a, const char *unit); /* remembered over restarts */

void agent_publish(Agent *a); /* words.c: what the node object is to say */

/* agent_metrics.c */
int agent_serve_metrics(Agent *a, Fault *fault);
