/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent's state, and the functions that its files share. agent.c builds the object.
 *
 * What comes in: state.c reads the state directory, card_events.c follows the cards, watches.c the
 * API server, plugins.c the calls of the kubelet, enforce.c the findings of the audits.
 * What goes out: offer.c tells the kubelet the devices, desired_node.c the API server the Node
 * object, agent_events.c writes Events, agent_metrics.c serves metrics. */

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
#include "node/audit/process_killer.h"
#include "node/audit/slicedir_watch.h"
#include "node/driver_release.h"
#include "node/event_reasons.h"
#include "node/node_config.h"
#include "node/node_keys.h"
#include "node/publisher.h"
#include "node/recheck.h"

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
        size_t healthy[DEVICE_KINDS_]; /* offered devices */
        Recheck *recheck;
        Reflector *pods, *nodes;
        sd_event_source *list_again, *last_wait;
        CardSource *source;
        CardList cards;
        CardFences fences;    /* of an earlier run */
        DriverRelease driver; /* all zero: its version is not known */
        Inventory inventory;
        Isolation isolation;
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
        char *node_uid, *node_text;   /* of the Node object; NULL: it is not known yet */
        char *checkpoint, *pod_resources_socket, *records_dir, *cdi_file; /* paths, as the next ones */
        char *cards_file, *fences_file, *node_config_file;
        EventReasons event_reasons;
        HttpServer *metrics;
        struct { /* dropped: resources, by the kubelet and unannounced. *killed: processes */
                uint64_t registrations, lost[DEVICE_KINDS_], card_troubles, dropped;
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
int agent_serve_metrics(Agent *a, Fault *fault);

void agent_on_excess(void *userdata, const MemoryExcess *excess);
void agent_on_overuse(void *userdata, const ComputeExcess *excess);
void agent_on_hung(void *userdata, const HungKernel *kernel);
bool agent_on_foreign(void *userdata, const ForeignSlice *foreign); /* false: report it again */

int agent_set_cards(Agent *a, const CardList *cards);
void agent_save_fences(void *userdata, const CardFences *fences);
int agent_observe_node(Agent *a, const Node *node, Str text, bool listed); /* as publisher_observe() */
void agent_apply_config(Agent *a);          /* slices came or went, or another mode or unit is wanted */
size_t agent_count_holders(const Agent *a); /* of slices: pods */
void agent_save_published_unit(Agent *a, const char *unit); /* kept over restarts */
void agent_publish(Agent *a);                               /* updates the Node object */

/* An Event of the node waits until its object is known. tell_node writes one each time, tell_once
 * when the note differs from the last one of that reason. reason is static, killed may be NULL. */
void agent_tell_node(Agent *a, const char *reason, const Fault *note);
void agent_tell_once(Agent *a, const char *reason, const Fault *note);
void agent_tell_pending(Agent *a); /* call it when the Node object is known */
void agent_tell_node_now(Agent *a, const char *reason, const char *note);
void agent_tell_excess(Agent *a, const MemoryExcess *excess, const KilledProcesses *killed);
void agent_tell_overuse(Agent *a, const ComputeExcess *excess, const KilledProcesses *killed);
void agent_tell_hung(Agent *a, const HungKernel *k, bool paused, const KilledProcesses *killed);
void agent_tell_foreign(Agent *a, const ForeignSlice *foreign);
void agent_tell_unaccounted(void *userdata, const UnaccountedMemory *memory);
void agent_tell_grown(void *userdata, const SlicedirGrown *grown);
void agent_tell_compute_refused(void *userdata, const RosterPod *pod, const RosterContainer *c);
void agent_tell_tampered(void *userdata, const RosterPod *pod, const Fault *note);
void agent_tell_moved(void *userdata, const RosterPod *pod, const Fault *note);
