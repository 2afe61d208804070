/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The copy engine: class AMPERE_DMA_COPY_B, clc7b5.h. */

#include "channel.h"

/* Executes the method with its value in s. */
ChannelStep copy_method(ChannelState *s, uint32_t method);
