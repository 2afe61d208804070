/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where an isolated container finds what keeps it to its slices; whoever starts containers mounts it there, and the gate looks there. All
 * of it is mounted, so that no environment has to be believed. */

#define SLICE_INSIDE  "/run/aliquot"
#define SLICE_PAGES   SLICE_INSIDE "/slice" /* N/limits, read-only, and N/counters: one per card, from 0 */
#define SLICE_GATE    SLICE_INSIDE "/libaliquot.so"
#define SLICE_PRELOAD "/etc/ld.so.preload" /* it has one line, SLICE_GATE */
