/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Inside the agent: the Events that it writes. */

#include "node/agent-internal.h"

/* An Event of the node. reason is static. Of each reason the same words are said once, until others
 * are; agent_tell: each time. */
void agent_warn(Agent *a, const char *reason, const Fault *note);
void agent_tell(Agent *a, const char *reason, const Fault *note);
void agent_tell_waiting(Agent *a); /* the node object has come */
void agent_tell_node(Agent *a, const char *reason,
                     const char *note); /* an Event of the node, now; its object has come */
/* userdata: the agent. Events of a pod, and of the node. */
void agent_tell_excess(void *userdata, const MemoryExcess *excess);
void agent_tell_overuse(void *userdata, const ComputeExcess *excess);
void agent_tell_stray(void *userdata, const UnaccountedMemory *stray);
void agent_tell_grown(void *userdata, const SlicedirGrown *grown);
bool agent_tell_foreign(void *userdata, const ForeignSlice *foreign);
void agent_tell_hung(void *userdata, const HungKernel *kernel);
void agent_tell_odd(void *userdata, const RosterPod *pod, const RosterContainer *c);
void agent_tell_tampered(void *userdata, const RosterPod *pod, const Fault *note);
void agent_tell_moved(void *userdata, const RosterPod *pod, const Fault *note);
