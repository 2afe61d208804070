/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/out_of_service.h"

void out_of_service_path(const char *slices, Buf *out) {
        Str path = str_from(slices);

        while (path.len > 1 && path.data[path.len - 1] == '/')
                path.len--;
        buf_append_str(out, path);
        buf_append_str(out, STR(OUT_OF_SERVICE_FILE));
}

void out_of_service_write(const CardList *cards, const CardIndexes *cordoned, Buf *out) {
        for (size_t i = 0; i < cards->n; i++) {
                const MachineCard *c = &cards->cards[i];
                bool is_cordoned = card_indexes_has(cordoned, c->index);

                if (c->healthy && !is_cordoned)
                        continue;
                buf_appendf(out, "%s ", c->uuid);
                if (!c->healthy)
                        buf_append_str(out, c->trouble[0] ? str_from(c->trouble) : STR("unhealthy"));
                if (is_cordoned)
                        buf_appendf(out, "%scordoned by annotation " ANNOTATION_CORDON_CARDS " of the node",
                                    c->healthy ? "" : "; ");
                buf_append_char(out, '\n');
        }
}

bool out_of_service_next(Str *text, OutOfService *ret) {
        while (!str_is_empty(*text)) {
                Str why = str_split(text, '\n'), uuid = str_split(&why, ' ');

                if (str_is_empty(uuid) || str_is_empty(why))
                        continue;
                *ret = (OutOfService){uuid, why};
                return true;
        }
        return false;
}
