/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Nodes and pods for the tests of gangs, and hooks that write down what was asked. */

#include "base/cleanup.h"
#include "base/log.h"
#include "scheduler/gang/gangs.h"
#include "test.h"
#include "wire/node.h"

static inline void kit_node(Ledger *l, const char *name, unsigned cards, unsigned units) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Fault fault = FAULT_NULL;
        char text[512];
        Node node;

        (void) snprintf(text, sizeof text,
                        "{\"metadata\":{\"name\":\"%s\",\"uid\":\"uid-%s\",\"labels\":{"
                        "\"ack.node.gpu.schedule\":\"cgpu\"}},\"status\":{\"allocatable\":{"
                        "\"aliyun.com/gpu-mem\":\"%u\",\"aliyun.com/gpu-count\":\"%u\"}}}",
                        name, name, cards * units, cards);
        ASSERT_OK(node_decode(str_from(text), &arena, &node, &fault));
        ASSERT_OK(ledger_node_set(l, &node, &fault));
}

typedef struct KitPod {
        const char *name, *gang, *min, *scheduler, *message, *namespace_, *created;
        unsigned mem; /* 0: asks for none of our resources */
        int priority;
        bool gated, gated_else, impossible, bound, ended, terminating;
        uint64_t where;
} KitPod;

static inline void kit_put_(Gangs *gs, usec_t now, KitPod p) {
        RequestContainer container = {.mem = p.mem};
        Request request = {.mem = p.mem, .cards = 1, .containers = &container, .n_containers = 1};

        ASSERT_OK(gangs_pod(gs,
                            &(GangPod){.namespace_ = str_from(p.namespace_ ? p.namespace_ : "default"),
                                       .name = str_from(p.name),
                                       .uid = str_from(p.name),
                                       .gang = str_from(p.gang ? p.gang : "g"),
                                       .min = str_from(p.min ? p.min : "2"),
                                       .created = str_from(p.created ? p.created : "2026-11-23T00:00:00Z"),
                                       .scheduler = str_from(p.scheduler ? p.scheduler : "ours"),
                                       .message = str_from(p.message),
                                       .request = p.mem > 0 ? &request : NULL,
                                       .where = p.where,
                                       .priority = p.priority,
                                       .gated = p.gated,
                                       .gated_else = p.gated_else,
                                       .impossible = p.impossible,
                                       .bound = p.bound,
                                       .ended = p.ended,
                                       .terminating = p.terminating},
                            now));
}
#define kit_put(gs, now, ...) kit_put_(gs, now, (KitPod){__VA_ARGS__})
