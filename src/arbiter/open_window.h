/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whose the open window is: whether he keeps it, and who has the next one. Times are ns. */

#include "arbiter/engine_helpers.h"

void open_window_step(Engine *e, uint64_t now); /* there is one */
void open_window_next(Engine *e,
                      uint64_t now); /* there is none: opens a window, if anybody may have one by now */

/* So long before the end of a window whoever is next now is let in (-1: nobody waits); and a little
 * before that it is said whether it goes on. */
uint64_t open_window_preopen(const Engine *e, int next);
uint64_t open_window_margin(const Engine *e, int next);

/* Nothing of it moves: a window that goes on for as long as a kernel hangs in it would never be
 * late. */
bool open_window_is_stalled(const Engine *e, const EngineTenant *t, uint64_t now);
