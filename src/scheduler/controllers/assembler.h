/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Joins the gangs (gang/gangs.h) to the programs around: pods of the watch, the questions of
 * filter, the binder's held Binds, the patches that wake members, and their Events. */

#include "scheduler/bind/binder.h"

typedef struct Assembler Assembler;

/* Fills what the context has for gangs, behind the choosers that decide before them. The context
 * outlives it, and so does the view; the binder is freed before it. 0 or -ENOMEM. */
int assembler_new(SchedulerContext *context, Assembler **ret);
Assembler *assembler_free(Assembler *a);
void assembler_set_leading(Assembler *a, bool leading);

/* For the view's hooks. */
void assembler_pod(Assembler *a, const Pod *pod, Str object, ReflectorEvent event);
void assembler_node(Assembler *a); /* one came, changed or went; the ledger knows of it */
void assembler_list_begin(Assembler *a, ViewKind kind);
void assembler_list_end(Assembler *a, ViewKind kind, bool complete);

DEFINE_CLEANUP(Assembler *, assembler_free)
