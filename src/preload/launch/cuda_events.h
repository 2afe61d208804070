/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Wrappers for the driver's events, stream queries and capture mode. None of them may be called on
 * a captured stream: check real_is_captured() first. */

#include "preload/launch/real.h"

typedef int EventCall(CuHandle event);
typedef int StreamCall(CuHandle stream);

bool cuda_event_record(CuHandle *event,
                       CuHandle stream); /* creates *event if NULL; false: the driver refused */

/* Whether the card has not executed the event yet, as far as the driver can tell. Any thread may
 * ask. */
bool cuda_event_is_pending(CuHandle event);
/* Whether all work of the stream has ended, or the stream is not valid. Invalidates a capture. */
bool launch_stream_is_done(CuHandle stream);

/* Sets the capture mode of the calling thread (CU_CAPTURE_RELAXED around our own calls) and returns
 * the previous one. */
int launch_relax_capture(int mode);
