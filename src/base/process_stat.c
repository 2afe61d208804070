/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process_stat.h"

#include <string.h>

#include "base/file.h"

enum { STAT_FILE_MAX = 4096 };
enum { FIELD_PARENT = 4, FIELD_START_TIME = 22 }; /* proc(5) */

/* "PID (NAME) STATE ...": a process can choose any NAME, so the fields are found behind the last
 * ")". Returns an empty string when there is none. */
static Str fields_behind_name(Str text) {
        const char *at = text.len > 0 ? memrchr(text.data, ')', text.len) : NULL;

        return at ? (Str){at + 1, text.len - (size_t) (at + 1 - text.data)} : (Str){0};
}

static bool is_in_state(Str text, char one, char other) {
        Str rest = fields_behind_name(text);

        return rest.len > 1 && rest.data[0] == ' ' && (rest.data[1] == one || rest.data[1] == other);
}

bool process_stat_parse_stopped(Str text) {
        return is_in_state(text, 'T', 't');
}

bool process_stat_parse_ended(Str text) {
        return is_in_state(text, 'Z', 'X');
}

static bool parse_field(Str text, int which, uint64_t *ret) {
        Str rest = fields_behind_name(text);

        for (int field = 2; field < which; field++)
                (void) str_split(&rest, ' ');
        return str_to_u64(str_split(&rest, ' '), ret);
}

bool process_stat_parse_start_time(Str text, uint64_t *ret) {
        return parse_field(text, FIELD_START_TIME, ret);
}

static bool read_stat(const char *proc, uint32_t pid, Buf *into) {
        _cleanup_buf_ Buf path = BUF_NULL;

        buf_appendf(&path, "%s/%u/stat", proc, pid);
        return buf_result(&path) == 0 && file_read(path.data, STAT_FILE_MAX, into) == 0;
}

bool process_stat_is_stopped(const char *proc, uint32_t pid) {
        _cleanup_buf_ Buf stat = BUF_NULL;

        return read_stat(proc, pid, &stat) && process_stat_parse_stopped(buf_str(&stat));
}

bool process_stat_first_thread_has_ended(const char *proc, uint32_t pid) {
        _cleanup_buf_ Buf stat = BUF_NULL;

        return read_stat(proc, pid, &stat) && process_stat_parse_ended(buf_str(&stat));
}

bool process_stat_start_time(const char *proc, uint32_t pid, uint64_t *ret) {
        _cleanup_buf_ Buf stat = BUF_NULL;

        return read_stat(proc, pid, &stat) && process_stat_parse_start_time(buf_str(&stat), ret);
}

bool process_stat_parent(const char *proc, uint32_t pid, uint32_t *ret) {
        _cleanup_buf_ Buf stat = BUF_NULL;
        uint64_t parent;

        if (!read_stat(proc, pid, &stat) || !parse_field(buf_str(&stat), FIELD_PARENT, &parent) ||
            parent > UINT32_MAX)
                return false;
        *ret = (uint32_t) parent;
        return true;
}
