/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The compute engine without its processors: class AMPERE_COMPUTE_B, clc7c0.h. It writes data of the
 * pushbuffer to memory and releases semaphores. A launch computes nothing; it does what its queue
 * metadata (QMD, clc7c0qmd.h) tells for its end. */

#include "channel.h"

/* Executes the method whose value is in s. */
ChannelStep compute_method(ChannelState *s, uint32_t method);
