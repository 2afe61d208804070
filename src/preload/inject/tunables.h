/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The time constants of the room. No value was measured on a real card. */

/* A waiter sleeps this long when turns and yields have not helped. guess. */
#define SPIN_NAP_NS 100000
