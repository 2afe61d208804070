/* SPDX-License-Identifier: Apache-2.0 */

/* A library for comparison: it treats the controls that libcuda makes for the scheduling of a
 * context otherwise than libaliquot.so does. Linked in front of rm_decode() and rm_admit() with
 * --wrap. VARIANT_STATUS is the status to refuse them with, or RM_OK to forward them untouched.
 * With VARIANT_PREEMPTION_ONLY 1 it is for the preemption mode alone. */

#include <string.h>

#include "gpu/rm/fifo.h"
#include "preload/memory/admit.h"

enum { KIND_SCHEDULING = 1000 }; /* no kind of admit.h */

void __real_rm_decode(uint32_t nr, uint32_t size, const void *outer, RmRequest *ret);
void __wrap_rm_decode(uint32_t nr, uint32_t size, const void *outer, RmRequest *ret);
RmVerdict __real_rm_admit(const RmRequest *request, const RmSliceInfo *slice);
RmVerdict __wrap_rm_admit(const RmRequest *request, const RmSliceInfo *slice);

static bool is_scheduling(const RmControl *control) {
        switch (control->cmd) {
        case RM_CTRL_PREEMPTION_MODE:
                return true;
        case RM_CTRL_SET_TIMESLICE:
        case RM_CTRL_PREEMPT:
        case RM_CTRL_DISABLE_CHANNELS:
                return !VARIANT_PREEMPTION_ONLY;
        default:
                return false;
        }
}

void __wrap_rm_decode(uint32_t nr, uint32_t size, const void *outer, RmRequest *ret) {
        RmControl control;

        __real_rm_decode(nr, size, outer, ret);
        if (nr != RM_ESC_CONTROL || size != sizeof control)
                return;
        memcpy(&control, outer, sizeof control);
        if (is_scheduling(&control))
                ret->kind = (RmKind) KIND_SCHEDULING;
}

RmVerdict __wrap_rm_admit(const RmRequest *request, const RmSliceInfo *slice) {
        if (request->kind != (RmKind) KIND_SCHEDULING)
                return __real_rm_admit(request, slice);
        if (VARIANT_STATUS == RM_OK)
                return (RmVerdict){.action = RM_FORWARD};
        return (RmVerdict){.action = RM_REFUSE, .status = VARIANT_STATUS};
}
