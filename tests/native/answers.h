/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Answers to controls that the simulator does not know: facts about a card, from the file
 * NATIVE_ANSWERS, which run.py writes from answers.py. */

#include <stdbool.h>
#include <stdint.h>

/* Writes the answer into the parameters of control `cmd` with `size` bytes. false: the table has
 * none. */
bool answers_fill(uint32_t cmd, void *params, uint32_t size);

/* Replaces the values that the table has in a list of FB info which the simulator has answered. */
void answers_add_fb(uint32_t cmd, void *params);
