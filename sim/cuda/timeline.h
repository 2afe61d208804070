/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A context on its card's engines, which all processes share (sim/engine). A stream is mapped to a
 * channel, and its work to entries of that channel; the engines decide when these are done.
 * Everything is under the state's lock, and functions that wait release it, except
 * timeline_give(). */

#include "sim/cuda/stream_state.h"
#include "sim/engine/engine.h"

CUresult timeline_open(CUcontext c); /* OPERATING_SYSTEM: the card cannot be mapped; OUT_OF_MEMORY */
void timeline_close(CUcontext c);    /* pending events are complete now */

/* Gives a new stream its channel. */
void timeline_add_stream(CUstream s);

/* Submits an entry of the stream. Waits for room in the ring with the lock held, because only the
 * card makes room. */
void timeline_give(CUstream s, EngineKind kind, uint64_t argument);
/* Submits the time that a piece of work takes on the card, if any. */
void timeline_give_work(CUstream s, const Work *w);
/* Later work in s waits for the present work of the other stream; both are of one context. */
void timeline_follow(CUstream s, const CUstream_st *other);
void timeline_follow_event(CUstream s, const CUevent_st *e);
/* The event is complete when the present work of s is done. */
void timeline_mark(CUstream s, CUevent e);
void timeline_forget(CUevent e); /* that it was marked */

bool timeline_has_room(const CUstream_st *s);
bool timeline_is_over(const CUstream_st *s);
bool timeline_event_is_over(CUevent e); /* e->time is the time of completion, if it was recorded */

/* Sleep until it may be done, for a bounded time, and look again. */
void timeline_wait_for_room(CUstream s);
void timeline_wait(CUstream s);
void timeline_wait_for_event(CUevent e);
