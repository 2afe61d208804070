/* SPDX-License-Identifier: Apache-2.0 */
#include "answers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A line of the file: CONTROL SIZE and then either OFFSET HEX, or "=" and pairs INDEX:VALUE. SIZE 0
 * stands for any. */
typedef struct Answer {
        uint32_t cmd, size, at;
        char *text; /* hex digits or pairs */
        bool list;
} Answer;

static struct {
        Answer *lines;
        size_t n;
        bool read;
} table;

static void take_line(const char *line) {
        unsigned cmd, size, at;
        int end = 0;
        Answer a = {0};

        a.list = sscanf(line, "%x %u = %n", &cmd, &size, &end) == 2 && end > 0;
        if (!a.list && (sscanf(line, "%x %u %u %n", &cmd, &size, &at, &end) != 3 || end == 0))
                return;
        a.cmd = cmd;
        a.size = size;
        a.at = a.list ? 0 : at;
        a.text = strdup(line + end);
        table.lines = realloc(table.lines, (table.n + 1) * sizeof a);
        if (!a.text || !table.lines)
                abort();
        table.lines[table.n++] = a;
}

static void read_table(void) {
        const char *path = getenv("NATIVE_ANSWERS");
        FILE *f = path && !table.read ? fopen(path, "re") : NULL;
        char *line = NULL;
        size_t room = 0;

        table.read = true;
        if (!f)
                return;
        while (getline(&line, &room, f) >= 0)
                take_line(line);
        free(line);
        (void) fclose(f); /* it was only read */
}

static void put_bytes(const Answer *a, uint8_t *params, uint32_t size) {
        unsigned byte;

        for (uint32_t i = 0; sscanf(a->text + 2 * (size_t) i, "%2x", &byte) == 1 && a->at + i < size; i++)
                params[a->at + i] = (uint8_t) byte;
}

/* ---- lists of an index and a value ---- */

/* Where the list of such a control is: behind the number, or at a pointer. NULL: it has none. */
static uint32_t (*list_of(uint32_t cmd, void *params))[2] {
        switch (cmd) {
        case 0x20800101: /* NV2080_CTRL_CMD_GPU_GET_INFO */
        case 0x20801201: /* GR_GET_INFO */
        case 0x20801301: /* FB_GET_INFO */
        case 0x20801802: /* BUS_GET_INFO */
                return (uint32_t(*)[2])(uintptr_t) ((uint64_t *) params)[1];
        case 0x20800102: /* the same with the list in the parameters */
        case 0x20801228:
        case 0x20801303:
        case 0x20801823:
                return (uint32_t(*)[2])((uint32_t *) params + 1);
        default:
                return NULL;
        }
}

static void put_list(const Answer *a, void *params) {
        uint32_t(*list)[2] = list_of(a->cmd, params), n = *(uint32_t *) params;
        unsigned index, value;
        int used;

        for (const char *p = a->text; list && sscanf(p, " %x:%x%n", &index, &value, &used) == 2; p += used)
                for (uint32_t i = 0; i < n; i++)
                        if (list[i][0] == index)
                                list[i][1] = value;
}

bool answers_fill(uint32_t cmd, void *params, uint32_t size) {
        bool found = false;

        read_table();
        for (size_t i = 0; i < table.n; i++) {
                const Answer *a = &table.lines[i];

                if (a->cmd != cmd || (a->size != 0 && a->size != size))
                        continue;
                found = true;
                if (a->list)
                        put_list(a, params);
                else
                        put_bytes(a, params, size);
        }
        return found;
}

void answers_add_fb(uint32_t cmd, void *params) {
        read_table();
        for (size_t i = 0; i < table.n; i++)
                if (table.lines[i].cmd == cmd && table.lines[i].list)
                        put_list(&table.lines[i], params);
}
