/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent's parts, by what owns them, and the functions that its files share. agent.c builds the
 * object.
 *
 * What comes in: state.c reads the state directory, card_events.c follows the cards, watches.c the
 * API server, plugins.c the calls of the kubelet, enforce.c the findings of the audits.
 * What goes out: offer.c tells the kubelet the devices, node/publish the API server the Node object
 * and its Events, agent_tell.c writes Events of pods, agent_metrics.c serves metrics. */

#include "gpu/cards/card_source.h"
#include "kube/reflector.h"
#include "net/http/http_server.h"
#include "node/agent_metrics.h"
#include "node/allocate/slice_growth.h"
#include "node/enforce.h"
#include "node/plugins.h"
#include "node/publish/desired_node.h"

/* state.c */
typedef struct AgentPaths {
        char *checkpoint, *pod_resources, *records, *cdi, *cards, *fences, *node_config;
} AgentPaths;

/* What the driver tells of the cards: card_events.c, offer.c. */
typedef struct AgentCards {
        CardSource *source;
        CardList list;
        bool known;           /* the cards have been listed */
        CardFences fences;    /* cards out of service: read from disk at the start, updated since */
        DriverRelease driver; /* all zero: its version is not known */
        usec_t census_at;     /* when the last census came; 0: none did */
        uint64_t troubles;    /* scans of the cards that failed */
} AgentCards;

/* Which pod has which slice. The roster owns the node's pods, the records what was given out. */
typedef struct AgentAllocate {
        NodeContext context; /* lent to the others; owns pod_resources and pod_patcher */
        Orphans *orphans;
        Repair *repair;
        Resolver *resolver;
        StartVerifier *start_verifier;
        SliceGrowth growth; /* lent to `context` */
} AgentAllocate;

/* watches.c */
typedef struct AgentWatches {
        Reflector *pods, *nodes;
        sd_event_source *list_again, *resize_again;
} AgentWatches;

/* What is under way between agent_stop() and `done`. */
typedef struct AgentEnd {
        KubeCall *call;
        sd_event_source *timer;
        void (*done)(void *userdata);
        void *userdata;
} AgentEnd;

struct Agent {
        AgentOptions o;
        sd_event *event;
        KubeClient *client;
        AgentPaths paths;
        Roster roster;
        Records records;
        Inventory inventory;
        Isolation isolation;
        MemoryLimits *limits;
        AgentCards cards;
        NodeState node;
        AgentAllocate allocate;
        AgentAudit audit;
        Plugins plugins;
        AgentEvents events;
        NodeTold told;
        Publisher *publisher;
        AgentWatches watches;
        HttpServer *metrics;
        AgentEnd end;
};

/* Those that return an int return 0 or negative errno. userdata is the agent. */
int agent_open_state(Agent *a, Fault *fault); /* call it before all others */
int agent_load_state(Agent *a);               /* call it once there are plugins */
int agent_start_card_events(Agent *a, Fault *fault);
int agent_start_watches(Agent *a);

int agent_set_cards(Agent *a, const CardList *cards);
void agent_save_fences(void *userdata, const CardFences *fences);
/* parameters as of publisher_observe() */
int agent_observe_node(Agent *a, const Node *node, Str text, bool listed);
/* checks its resize request, and again later if something waits */
void agent_look_at_resize(Agent *a, RosterPod *pod);
/* call it after that: updates the growth annotation */
void agent_plan_growth(Agent *a);
/* puts the wanted mode and unit in force, unless slices are held */
void agent_apply_config(Agent *a);
size_t agent_count_holders(const Agent *a); /* pods that hold slices */
void agent_publish(Agent *a);               /* updates the Node object */
