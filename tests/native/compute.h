/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The compute engine without its processors: class AMPERE_COMPUTE_B, clc7c0.h. It writes data of
 * the pushbuffer to memory and releases semaphores. A launch computes nothing; it does what its
 * queue metadata (QMD, clc7c0qmd.h) tells for its end. */

#include "channel.h"

/* Executes the method with its value in s. Launches work on while further methods are executed. */
ChannelStep compute_method(ChannelState *s, uint32_t method);

/* Does what is to be done for launches that have ended. false: none has. */
bool compute_look(ChannelState *s);
bool compute_is_idle(const ChannelState *s); /* no launch is at work */
void compute_done(ChannelState *s);
