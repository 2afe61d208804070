/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent's state, and the functions that its files share. agent.c builds the object.
 *
 * What comes in: state.c reads the state directory, card_events.c follows the cards, watches.c the
 * API server, plugins.c the calls of the kubelet, enforce.c the findings of the audits.
 * What goes out: offer.c tells the kubelet the devices, desired_node.c the API server the Node
 * object, agent_tell.c writes Events, agent_metrics.c serves metrics. */

#include "gpu/cards/card_source.h"
#include "gpu/cards/cdi.h"
#include "kube/event.h"
#include "kube/reflector.h"
#include "net/http/http_server.h"
#include "node/agent_metrics.h"
#include "node/agent_tell.h"
#include "node/allocate/orphans.h"
#include "node/allocate/slice_growth.h"
#include "node/allocate/start_verifier.h"
#include "node/audit/compute_audit.h"
#include "node/audit/hung_filter.h"
#include "node/audit/hung_reader.h"
#include "node/audit/process_killer.h"
#include "node/audit/slicedir_watch.h"
#include "node/limits/memory_limits.h"
#include "node/publish/driver_release.h"
#include "node/publish/event_reasons.h"
#include "node/publish/node_config.h"
#include "node/publish/publisher.h"
#include "node/recheck.h"
#include "node/records/cordon.h"
#include "share/node_keys.h"

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
        Plugin *plugins[OFFERED_RESOURCES_];
        bool registered[OFFERED_RESOURCES_];
        size_t healthy[OFFERED_RESOURCES_]; /* offered devices */
        Recheck *recheck;
        Reflector *pods, *nodes;
        sd_event_source *list_again, *resize_again, *last_wait;
        CardSource *source;
        CardList cards;
        CardFences fences;    /* of an earlier run, and as they changed since */
        DriverRelease driver; /* all zero: its version is not known */
        Inventory inventory;
        Isolation isolation;
        MemoryLimits *memory_limits; /* lent to `context` */
        usec_t census_at;            /* when the last one came; 0: none did */
        MemoryAudit *memory_audit;
        ProcessKiller killer;
        ComputeAudit *compute_audit;
        HungReader *hung_reader;
        HungFilter hung_filter;
        SlicedirWatch *slicedir_watch;
        NodeConfig node_config;
        bool node_config_saved; /* the file says what node_config says */
        NodeKeys keys;
        bool cards_known, keys_known; /* listed; the keys of the Node object have been checked */
        bool offers;                  /* the cards can be offered in the unit in force */
        Fault unit_fault;             /* of the unit in force; "": none, as in the next ones */
        Fault wanted_unit_fault;      /* of the unit that is asked for */
        Fault ledger_fault;           /* of the Node object, as the node's own ledger read it last */
        Fault told_change;            /* the pending change of the last Event */
        Cordon cordon;                /* in force */
        CordonTold told_cordon;
        Fault told_broken;          /* cards out of service of the last Event; "": none */
        SliceGrowth growth;         /* lent to `context` */
        CardIndexes told_out;       /* cards that pods know to be out of service */
        Fault other_plugin;         /* what another plugin offers of the same cards; "": nothing */
        char *node_uid, *node_text; /* of the Node object; NULL: it is not known yet */
        char *checkpoint, *pod_resources_socket, *records_dir, *cdi_file; /* paths, as the next ones */
        char *cards_file, *fences_file, *node_config_file;
        EventReasons event_reasons;
        HttpServer *metrics;
        Histogram calls[AGENT_CALLS_]; /* of the kubelet, by how long the answer took */
        struct { /* dropped: resources, by the kubelet and unannounced. *killed: processes */
                uint64_t registrations, lost[OFFERED_RESOURCES_], card_troubles, dropped;
                uint64_t killed, overuse_killed, hung_killed;
        } counters;
        KubeCall *last_look;
        void (*stopped)(void *userdata);
        void *stopped_userdata;
};

/* Those that return an int return 0 or negative errno. userdata is the agent. */
int agent_open_state(Agent *a, Fault *fault); /* before all others */
int agent_load_state(Agent *a);               /* once there are plugins */
int agent_start_plugins(Agent *a, Fault *fault);
int agent_start_card_events(Agent *a, Fault *fault);
int agent_start_watches(Agent *a);

void agent_on_excess(void *userdata, const MemoryExcess *excess);
void agent_on_overuse(void *userdata, const ComputeExcess *excess);
void agent_on_hung(void *userdata, const HungKernel *kernel);
bool agent_on_foreign(void *userdata, const ForeignSlice *foreign); /* false: report it again */

int agent_set_cards(Agent *a, const CardList *cards);
void agent_save_fences(void *userdata, const CardFences *fences);
int agent_observe_node(Agent *a, const Node *node, Str text, bool listed); /* as publisher_observe() */
void agent_look_at_resize(Agent *a, RosterPod *pod); /* and again later, if something waits */
void agent_plan_growth(Agent *a);                    /* after it: gives permits back, or accepts them */
void agent_apply_config(Agent *a); /* slices came or went, or another mode or unit is wanted */
/* The node does not share yet, and another plugin that is kept off offers its cards still. */
bool agent_waits_for_other_plugin(const Agent *a);
size_t agent_count_holders(const Agent *a);                 /* of slices: pods */
void agent_save_published_unit(Agent *a, const char *unit); /* kept over restarts */
void agent_publish(Agent *a);                               /* updates the Node object */
