/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Joins the gangs (gang/gangs.h) to the programs around: pods of the watch, the questions of
 * filter, the binder's held Binds, the patches that wake members, and their Events. */

#include "scheduler/bind/binder.h"

typedef struct Assembler Assembler;

typedef struct AssemblerOptions {
        SchedulerContext *context; /* it outlives the assembler; the binder is freed before it */
        /* NULL, or told of a node where a gang gives cards back. */
        void (*on_room)(void *userdata, Str node);
        /* NULL, or told that the attempt of a gang without cards has ended. */
        void (*on_settled)(void *userdata);
        void *userdata;
} AssemblerOptions;

int assembler_new(const AssemblerOptions *options, Assembler **ret); /* 0 or -ENOMEM */
Assembler *assembler_free(Assembler *a);
Gangs *assembler_gangs(Assembler *a);
void assembler_set_binder(Assembler *a, Binder *binder);
void assembler_set_leading(Assembler *a, bool leading);

/* For the view's hooks. */
void assembler_pod(Assembler *a, const Pod *pod, Str object, ReflectorEvent event);
void assembler_node(Assembler *a); /* one came, changed or went; the ledger knows of it */
void assembler_list_begin(Assembler *a, ViewKind kind);
void assembler_list_end(Assembler *a, ViewKind kind, bool complete);

/* Decides about the members of gangs in filter. */
Chooser assembler_chooser(Assembler *a);

DEFINE_CLEANUP(Assembler *, assembler_free)
