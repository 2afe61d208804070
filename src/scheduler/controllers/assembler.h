/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Connects the gangs (gang/gangs.h) with the rest of the scheduler: pods of the watch, the
 * questions of filter, the binder's held Binds, the patches that wake members, and their Events. */

#include "scheduler/bind/binder.h"

typedef struct Assembler Assembler;

/* Sets context->gangs and peers, and appends a chooser after those that are there. context and its
 * view outlive the assembler; the binder is freed before it. Returns 0, -ENOMEM or the error of
 * sd-event. */
int assembler_new(SchedulerContext *context, Assembler **ret);
Assembler *assembler_free(Assembler *a);
void assembler_set_leading(Assembler *a, bool leading);

/* What the view tells: see View.on_pod and the hooks beside it. */
void assembler_pod(Assembler *a, const Pod *pod, Str object, ReflectorEvent event);
/* A node or its fences came, changed or went; call after the ledger has changed. */
void assembler_node(Assembler *a);
void assembler_list_begin(Assembler *a, ViewKind kind);
void assembler_list_end(Assembler *a, ViewKind kind, bool complete);

DEFINE_CLEANUP(Assembler *, assembler_free)
