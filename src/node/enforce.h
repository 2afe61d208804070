/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The audits, and what follows from their findings: by the options of this node the container's
 * processes are killed or left alone, and agent_tell.c writes the Event. userdata is the
 * AgentAudit. */

#include "node/agent_tell.h"
#include "node/audit/hung_reader.h"

typedef struct AgentAudit {
        bool kills_excess, kills_overuse, kills_hung; /* as in AgentOptions */
        AgentEvents *events;                          /* borrowed, as the next ones */
        const Inventory *inventory;
        MemoryAudit *memory;
        ComputeAudit *compute;
        SlicedirWatch *slicedir;
        HungReader *hung_reader;
        HungFilter hung_filter;
        ProcessKiller killer;
        uint64_t killed, overuse_killed, hung_killed; /* processes */
} AgentAudit;

void enforce_excess(void *userdata, const MemoryExcess *excess);
void enforce_overuse(void *userdata, const ComputeExcess *excess);
void enforce_hung(void *userdata, const HungKernel *kernel);
void enforce_unaccounted(void *userdata, const UnaccountedMemory *memory);
