/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The cards of a machine that take no new slice, for programs beside the node agent: a text file
 * with a line for each, "UUID WHY". The agent replaces it when that changes, and removes it when
 * all cards are in service. It lies beside the slice directory, so a reboot ends it. Pure. */

#include "gpu/cards/card_list.h"
#include "share/card_indexes.h"

#define OUT_OF_SERVICE_FILE ".out-of-service" /* appended to the slice directory's path */

enum { OUT_OF_SERVICE_MAX = 1 << 17 }; /* bytes of the file */

typedef struct OutOfService {
        Str uuid, why;
} OutOfService;

/* Appends the path of the file. slices: the slice directory, with or without a "/" at its end. */
void out_of_service_path(const char *slices, Buf *out);

/* Appends the lines of unhealthy cards and of cordoned ones; nothing where all are in service. */
void out_of_service_write(const CardList *cards, const CardIndexes *cordoned, Buf *out);

/* Takes the next line from the text. Lines without a UUID and a reason are skipped. Returns false
 * at the end of the text. */
bool out_of_service_next(Str *text, OutOfService *ret);
