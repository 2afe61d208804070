/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A context on its card's engines, which all processes share (sim/engine). A stream is mapped onto
 * a channel; its work becomes entries of that channel, and the moment at which they are done is the
 * engines' to say. Everything is under the state's lock; who waits here lets go of it, but for
 * timeline_give(). */

#include "sim/cuda/stream.h"
#include "sim/engine/engine.h"

CUresult timeline_open(CUcontext c); /* OPERATING_SYSTEM: the card cannot be mapped; OUT_OF_MEMORY */
void timeline_close(CUcontext c);    /* events that are not over are so now */

/* For a stream that begins: its channel, and its priority there. */
void timeline_add_stream(CUstream s);

/* One more entry of the stream. Waits for room in the ring, with the lock: only the card makes
 * that, and it needs nobody. */
void timeline_give(CUstream s, EngineKind kind, uint64_t argument);
/* The time that a piece of work takes of the card, if any. */
void timeline_give_work(CUstream s, const Work *w);
/* What comes next in s is done after what the other stream has now; both of one context. */
void timeline_follow(CUstream s, const CUstream_st *other);
void timeline_follow_event(CUstream s, const CUevent_st *e);
/* The event comes to pass when everything is done that s has now. */
void timeline_mark(CUstream s, CUevent e);
void timeline_forget(CUevent e); /* that it was marked */

bool timeline_has_room(const CUstream_st *s);
bool timeline_is_over(const CUstream_st *s);
bool timeline_event_is_over(CUevent e); /* e->time is when, if it was recorded */

/* Sleep until it could be so, and no longer than a moment: look again. */
void timeline_wait_for_room(CUstream s);
void timeline_wait(CUstream s);
void timeline_wait_for_event(CUevent e);
