/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is asked of the driver about events and streams. */

#include "preload/launch/real.h"

typedef int EventCall(CuHandle event);
typedef int StreamCall(CuHandle stream);

bool cuda_event_record(CuHandle *event, CuHandle stream); /* NULL is made first. false: there is none */
void cuda_event_drop(CuHandle *event);

/* Not of a stream that is captured: the question ends the capture. */
bool launch_stream_is_done(CuHandle stream);

/* Exchanges the thread's capture mode, CU_CAPTURE_RELAXED for calls of ours, and returns what it
 * was. */
int launch_relax_capture(int mode);
