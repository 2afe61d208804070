/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/diagnosis.h"

#include <errno.h>

#include "base/terminal.h"
#include "wire/json_write.h"

enum { NAME_WIDTH = 18 };

static const char *const scope_names[] = {
        [SCOPE_MACHINE] = "machine", [SCOPE_NODE] = "node", [SCOPE_CLUSTER] = "cluster"};

static const char *colour_of(Grade grade) {
        switch (grade) {
        case GRADE_OK:
                return "\033[32m";
        case GRADE_WARN:
                return "\033[33m";
        case GRADE_FAIL:
                return "\033[31m";
        default:
                return "\033[2m";
        }
}

/* Replaces control characters, which must not reach the terminal: texts of the cluster come from
 * other users. */
static void append_plain(Buf *out, const char *text) {
        for (; *text; text++)
                buf_append_char(out, (unsigned char) *text < ' ' || *text == 0x7f ? '?' : *text);
}

static void write_line(const DoctorCheck *check, const Finding *found, bool colour, Buf *out) {
        buf_appendf(out, "  %s%-7s%s  %-*s", colour ? colour_of(found->grade) : "",
                    finding_word(found->grade), colour ? "\033[0m" : "", NAME_WIDTH, check->name);
        append_plain(out, found->said.text);
        if (found->mend.text[0]) {
                buf_appendf(out, "\n%*s-> ", NAME_WIDTH + 11, "");
                append_plain(out, found->mend.text);
        }
        buf_append_char(out, '\n');
}

static void write_check(JsonWriter *w, const DoctorCheck *check, const Finding *found) {
        json_write_object(w, NULL);
        json_write_text(w, "name", check->name);
        json_write_text(w, "scope", scope_names[check->scope]);
        json_write_text(w, "asks", check->asks);
        json_write_text(w, "result", finding_word(found->grade));
        json_write_text(w, "reason", found->said.text);
        if (found->mend.text[0])
                json_write_text(w, "remedy", found->mend.text);
        json_write_object_end(w);
}

static void write_json(const Facts *f, unsigned scopes, unsigned counts[GRADES_], Buf *out) {
        Finding found;
        JsonWriter w;

        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_array(&w, "checks");
        for (size_t i = 0; i < doctor_n_checks; i++)
                if (scopes & doctor_checks[i].scope) {
                        doctor_judge(&doctor_checks[i], f, &found);
                        counts[found.grade]++;
                        write_check(&w, &doctor_checks[i], &found);
                }
        json_write_array_end(&w);
        for (int grade = 0; grade < GRADES_; grade++)
                json_write_u64(&w, finding_word((Grade) grade), counts[grade]);
        json_write_object_end(&w);
        buf_append_char(out, '\n');
}

/* Consecutive checks that were skipped for one reason. */
typedef struct Skipped {
        char why[sizeof(((Finding *) NULL)->said.text)];
        Buf names; /* names of the checks after the first */
        unsigned n;
} Skipped;

static void end_skipped(Skipped *s, Buf *out) {
        if (s->n > 0)
                buf_appendf(out, "%*sand %u more for the same reason: " STR_FMT "\n", NAME_WIDTH + 13, "",
                            s->n, STR_ARG(buf_str(&s->names)));
        out->broken |= s->names.broken;
        buf_clear(&s->names);
        s->n = 0;
        s->why[0] = '\0';
}

/* Whether the check was skipped for the same reason as the one before; its name is then
 * collected. */
static bool is_same(Skipped *s, const DoctorCheck *check, const Finding *found, Buf *out) {
        if (found->grade == GRADE_SKIPPED && found->mend.text[0] == '\0' &&
            strcmp(s->why, found->said.text) == 0) {
                buf_appendf(&s->names, "%s%s", s->n++ > 0 ? ", " : "", check->name);
                return true;
        }
        end_skipped(s, out);
        if (found->grade == GRADE_SKIPPED)
                (void) snprintf(s->why, sizeof s->why, "%s", found->said.text);
        return false;
}

static void write_text(const Facts *f, unsigned scopes, unsigned counts[GRADES_], Buf *out) {
        bool colour = terminal_look(COLOUR_AUTO).colour;
        Skipped skipped = {.names = BUF_NULL};
        unsigned last = 0;
        Finding found;

        for (size_t i = 0; i < doctor_n_checks; i++) {
                const DoctorCheck *check = &doctor_checks[i];

                if (!(scopes & check->scope))
                        continue;
                if (check->scope != last) {
                        end_skipped(&skipped, out);
                        buf_appendf(out, "%s\n", scope_names[check->scope]);
                }
                last = check->scope;
                doctor_judge(check, f, &found);
                counts[found.grade]++;
                if (!is_same(&skipped, check, &found, out))
                        write_line(check, &found, colour, out);
        }
        end_skipped(&skipped, out);
        buf_done(&skipped.names);
        buf_appendf(out, "%u ok, %u warn, %u FAIL, %u skipped\n", counts[GRADE_OK], counts[GRADE_WARN],
                    counts[GRADE_FAIL], counts[GRADE_SKIPPED]);
}

int diagnosis_print(const Facts *f, unsigned scopes, bool json) {
        _cleanup_buf_ Buf out = BUF_NULL;
        unsigned counts[GRADES_] = {0};

        if (json)
                write_json(f, scopes, counts, &out);
        else
                write_text(f, scopes, counts, &out);
        if (buf_result(&out) < 0)
                return -ENOMEM;
        if (fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout) != 0)
                return -EIO;
        return counts[GRADE_FAIL] > 0   ? DIAGNOSIS_FAILED
               : counts[GRADE_WARN] > 0 ? DIAGNOSIS_WARNED
                                        : DIAGNOSIS_OK;
}
