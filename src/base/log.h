/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One line to stderr per event: `2026-11-21T08:00:00.123Z info bound pod=default/a node=n1`, or the
 * same as a JSON object (base/log_json.h).
 * Libraries below the programs do not log; a program logs an error once, where it handles it. */

#include <stdbool.h>

#include "base/cleanup.h"

typedef enum LogLevel {
        LOG_LEVEL_ERROR,
        LOG_LEVEL_WARNING,
        LOG_LEVEL_INFO,
        LOG_LEVEL_DEBUG,
} LogLevel;

void log_set_level(LogLevel level);

/* json: each line is a JSON object from now on; false: text again. */
void log_set_json(bool json);

/* Drops the line rather than wait: at most 200 lines a second, and none while standard error is a
 * pipe that is full. A later line says how many were dropped. */
void log_write(LogLevel level, const char *format, ...) _printf_(2, 3);

#define log_error(...)   log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)
