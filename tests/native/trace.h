/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One line for each call that the interposer sees, appended to the file NATIVE_TRACE. Without that
 * variable nothing is written. Changes no errno. */
void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
