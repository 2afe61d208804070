/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/cuda_events.h"

#include <stddef.h>

typedef int RecordCall(CuHandle event, CuHandle stream);

/* In relaxed mode our calls neither fail nor invalidate a capture that another thread has under way
 * in another stream. A query of the captured stream itself invalidates it in every mode. */
int launch_relax_capture(int mode) {
        int (*exchange)(int *) = (int (*)(int *)) real_get(REAL_cuThreadExchangeStreamCaptureMode);

        if (exchange)
                (void) exchange(&mode); /* fails without a context: nothing is captured then */
        return mode;
}

bool cuda_event_record(CuHandle *event, CuHandle stream) {
        int (*create)(CuHandle *, unsigned) = (int (*)(CuHandle *, unsigned)) real_get(REAL_cuEventCreate);
        RecordCall *rec = (RecordCall *) real_get(REAL_cuEventRecord);

        if (!create || !rec || (!*event && create(event, 0) != 0))
                return false;
        return rec(*event, stream) == 0;
}

bool cuda_event_is_pending(CuHandle event) {
        EventCall *query = (EventCall *) real_get(REAL_cuEventQuery);
        int mode = launch_relax_capture(CU_CAPTURE_RELAXED);
        bool pending = query && query(event) == CU_ERROR_NOT_READY;

        (void) launch_relax_capture(mode);
        return pending;
}

bool launch_stream_is_done(CuHandle stream) {
        StreamCall *query = (StreamCall *) real_get(REAL_cuStreamQuery);
        int mode = launch_relax_capture(CU_CAPTURE_RELAXED);
        bool done = !query || query(stream) != CU_ERROR_NOT_READY;

        (void) launch_relax_capture(mode);
        return done;
}
