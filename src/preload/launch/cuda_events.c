/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/cuda_events.h"

#include <stddef.h>

typedef int RecordCall(CuHandle event, CuHandle stream);

/* So that nothing of ours is refused, or breaks anything, because somebody captures another stream
 * just now. What is asked of the captured one itself ends its capture whatever the mode:
 * real_is_captured() comes before. */
int launch_relax_capture(int mode) {
        int (*exchange)(int *) = (int (*)(int *)) real_get(REAL_cuThreadExchangeStreamCaptureMode);

        if (exchange)
                (void) exchange(&mode); /* no context, no capture */
        return mode;
}

bool cuda_event_record(CuHandle *event, CuHandle stream) {
        int (*create)(CuHandle *, unsigned) = (int (*)(CuHandle *, unsigned)) real_get(REAL_cuEventCreate);
        RecordCall *rec = (RecordCall *) real_get(REAL_cuEventRecord);

        if (!create || !rec || (!*event && create(event, 0) != 0))
                return false;
        return rec(*event, stream) == 0;
}

void cuda_event_drop(CuHandle *event) {
        EventCall *destroy = (EventCall *) real_get(REAL_cuEventDestroy_v2);

        if (*event && destroy)
                (void) destroy(*event); /* what the driver still needs of it, it keeps */
        *event = NULL;
}

bool launch_stream_is_done(CuHandle stream) {
        StreamCall *query = (StreamCall *) real_get(REAL_cuStreamQuery);

        return !query || query(stream) != CU_ERROR_NOT_READY;
}
