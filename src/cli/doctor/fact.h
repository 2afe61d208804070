/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One thing that was read or asked: the answer, or why there is none. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"

typedef enum FactState {
        FACT_UNASKED,
        FACT_KNOWN,
        FACT_ABSENT, /* no such file or object */
        FACT_DENIED, /* no right to read it */
        FACT_SILENT, /* no answer, or none that is understood */
} FactState;

typedef struct Fact {
        FactState state;
        char *text;   /* owned; contents of a known file or answer, "" when it is empty */
        json_t *json; /* owned; of an answer that is a JSON object, else NULL */
        /* time of the answer by the server's clock, in seconds since 1970; 0: not known */
        int64_t date;
        Fault why; /* the reason when it is not known */
} Fact;

void fact_done(Fact *fact);

/* Sets a fact that is known. Takes ownership of text; NULL means out of memory and sets
 * FACT_SILENT. json: the text must be a JSON object. */
void fact_know(Fact *fact, char *text, bool json);

/* Sets why a file or object is not known, from an errno. */
void fact_fail(Fact *fact, int error, const char *path);

/* Returns the text at a path of keys, which ends with NULL; "" when there is none. */
const char *fact_text(const json_t *object, ...) __attribute__((sentinel));
json_t *fact_at(const json_t *object, ...) __attribute__((sentinel)); /* borrowed, or NULL */
