/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What /proc/PID/stat tells of a process (proc(5)). proc: where the proc file system is mounted. */

#include "base/buf.h"

/* The start time in the kernel's ticks since boot. PID and start time together name one process
 * until the next boot. Returns false when the process has ended. */
bool process_stat_start_time(const char *proc, uint32_t pid, uint64_t *ret);

/* Whether the first thread is stopped by a signal or a debugger (state T or t). */
bool process_stat_is_stopped(const char *proc, uint32_t pid);

/* Whether the first thread has ended (state Z or X) and was not waited for. Other threads of the
 * process may live. */
bool process_stat_first_thread_has_ended(const char *proc, uint32_t pid);

/* The pid of the process's parent. Returns false when the process has ended. */
bool process_stat_parent(const char *proc, uint32_t pid, uint32_t *ret);

/* The same from the text of the file, which may be any bytes. */
bool process_stat_parse_stopped(Str text);
bool process_stat_parse_ended(Str text);
bool process_stat_parse_start_time(Str text, uint64_t *ret);
