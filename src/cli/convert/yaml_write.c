/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/convert/yaml_write.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

/* Whether a plain scalar may have the character in any place. */
static bool is_plain_char(char c) {
        return isalnum((unsigned char) c) || (c != '\0' && strchr("_./-", c));
}

/* Whether it is a quantity such as 20Gi, which is no number in any YAML. */
static bool is_binary_quantity(const char *text) {
        size_t digits = strspn(text, "0123456789");

        return digits > 0 && text[digits] != '\0' && strchr("KMGT", text[digits]) &&
               strcmp(text + digits + 1, "i") == 0;
}

/* Whether the text can be a plain scalar. One that YAML 1.1 or 1.2 reads as a boolean, null or
 * number is one of these words, or begins with a digit, a sign or a dot. By this rule some strings
 * are quoted that need not be. */
static bool is_plain(const char *text) {
        static const char *const words[] = {"y",    "n",     "yes",  "no",  "on", "off",
                                            "true", "false", "null", "nan", "inf"};

        if (!isalpha((unsigned char) text[0]) && text[0] != '/')
                return is_binary_quantity(text);
        for (const char *c = text; *c; c++)
                if (!is_plain_char(*c) && !((*c == ':' || *c == ' ') && is_plain_char(c[1])))
                        return false;
        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (strcasecmp(text, words[i]) == 0)
                        return false;
        return true;
}

/* Whether a literal block keeps a text of several lines as it is: printable, without blanks at the
 * ends of lines, and with one newline or none at its end. */
static bool is_block(const char *text) {
        size_t n = strlen(text);

        if (!strchr(text, '\n') || isspace((unsigned char) text[0]) ||
            (n > 1 && text[n - 1] == '\n' && text[n - 2] == '\n'))
                return false;
        for (const char *c = text; *c; c++)
                if ((*c != '\n' && ((unsigned char) *c < ' ' || (unsigned char) *c > '~')) ||
                    (*c == '\n' && c > text && c[-1] == ' '))
                        return false;
        return text[n - 1] != ' ';
}

static void indent_line(Buf *out, unsigned depth) {
        for (unsigned i = 0; i < depth; i++)
                buf_append_str(out, STR("  "));
}

static void write_block(const char *text, unsigned depth, Buf *out) {
        buf_append_str(out, text[strlen(text) - 1] == '\n' ? STR("|") : STR("|-"));
        for (const char *line = text; *line;) {
                size_t n = strcspn(line, "\n");

                buf_append_char(out, '\n');
                if (n > 0)
                        indent_line(out, depth);
                buf_append(out, line, n);
                line += n + (line[n] == '\n');
        }
}

static int append_bytes(const char *bytes, size_t n, void *out) {
        buf_append(out, bytes, n);
        return 0;
}

/* Writes a scalar as JSON, which is YAML, too. */
static void write_json(const json_t *value, Buf *out) {
        char shorter[32]; /* 0.1 in 15 digits is 0.1, in 17 it is 0.10000000000000001 */
        size_t precision;

        (void) snprintf(shorter, sizeof shorter, "%.15g", json_real_value(value));
        precision = strtod(shorter, NULL) == json_real_value(value) ? 15 : 17;
        if (json_dump_callback(value, append_bytes, out,
                               JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(precision)) < 0)
                buf_append_str(out, STR("null"));
}

static void write_scalar(const json_t *value, unsigned depth, Buf *out) {
        const char *text = json_string_value(value);

        if (text && is_plain(text))
                buf_append_str(out, str_from(text));
        else if (text && is_block(text))
                write_block(text, depth, out);
        else
                write_json(value, out);
}

static void write_key(const char *key, Buf *out) {
        json_t *text = is_plain(key) ? NULL : json_string(key);

        if (text)
                write_json(text, out);
        else
                buf_append_str(out, str_from(key));
        json_decref(text);
        buf_append_char(out, ':');
}

static void write_value(const json_t *value, unsigned depth, bool in_list, Buf *out);

static void write_map(const json_t *map, unsigned depth, bool in_list, Buf *out) {
        const char *key;
        json_t *value;
        bool first = in_list; /* the first member stands behind the dash */

        json_object_foreach((json_t *) map, key, value) {
                if (!first)
                        indent_line(out, depth);
                first = false;
                write_key(key, out);
                write_value(value, depth, false, out);
        }
}

static void write_list(const json_t *list, unsigned depth, Buf *out) {
        size_t i;
        json_t *value;

        json_array_foreach(list, i, value) {
                indent_line(out, depth);
                buf_append_char(out, '-');
                write_value(value, depth + 1, true, out);
        }
}

/* Writes what follows "key:" or "-": a scalar in the same line, or the lines below. A list below a
 * key has the key's own indentation, as in Kubernetes' own manifests. */
static void write_value(const json_t *value, unsigned depth, bool in_list, Buf *out) {
        if (json_is_object(value) && json_object_size(value) > 0) {
                buf_append_char(out, in_list ? ' ' : '\n');
                write_map(value, in_list ? depth : depth + 1, in_list, out);
        } else if (json_is_array(value) && json_array_size(value) > 0) {
                buf_append_char(out, '\n');
                write_list(value, depth, out);
        } else {
                buf_append_char(out, ' ');
                write_scalar(value, in_list ? depth : depth + 1, out);
                buf_append_char(out, '\n');
        }
}

void yaml_write(const json_t *value, Buf *out) {
        if (json_is_object(value) && json_object_size(value) > 0)
                write_map(value, 0, false, out);
        else if (json_is_array(value) && json_array_size(value) > 0)
                write_list(value, 0, out);
        else {
                write_scalar(value, 1, out);
                buf_append_char(out, '\n');
        }
}
