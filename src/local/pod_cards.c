/* SPDX-License-Identifier: Apache-2.0 */
#include "local/pod_cards.h"

#include <errno.h>

#include "cli/inspect/table.h"
#include "share/memory_unit.h"
#include "share/pod_grant.h"
#include "wire/pod.h"

static bool is_first_of_card(const GrantSpec *spec, size_t i) {
        for (size_t k = 0; k < i; k++)
                if (spec->slices[k].card == spec->slices[i].card)
                        return false;
        return true;
}

static bool has_whole_cards(const Pod *pod) {
        for (size_t i = 0; i < pod->n_containers; i++)
                if (pod->containers[i].gpu.present)
                        return true;
        return false;
}

/* "gpu0; gpu2" */
static void print_whole_cards(const GrantSpec *spec, Buf *out) {
        for (size_t i = 0; i < spec->n_slices; i++)
                buf_appendf(out, "%sgpu%u", i > 0 ? "; " : "", spec->slices[i].card);
}

/* "gpu0: 3 GiB, 30 %; gpu2: 16 x 128MiB" */
static void print_cards(const GrantSpec *spec, const Grant *grant, MemoryUnit unit, Buf *out) {
        const char *separator = "";

        for (size_t i = 0; i < spec->n_slices; i++) {
                uint32_t card = spec->slices[i].card, core = grant_core_on_card(grant, card);
                _cleanup_buf_ Buf name = BUF_NULL;

                if (!is_first_of_card(spec, i))
                        continue;
                memory_unit_format(unit, &name);
                buf_appendf(out, "%sgpu%u: %u %s%s", separator, card, grant_mem_on_card(grant, card),
                            name.len > 0 && name.data[0] <= '9' ? "x " : "", name.data);
                if (core > 0)
                        buf_appendf(out, ", %u %%", core);
                separator = "; ";
        }
}

static MemoryUnit unit_of(const json_t *nodes, const char *name) {
        MemoryUnit unit = MEMORY_UNIT_GIB;
        const json_t *node;
        size_t i;

        json_array_foreach(nodes, i, node) {
                const json_t *annotations = tree_at(node, "metadata", "annotations", NULL);
                const char *text = tree_text(annotations, "aliquot.dev/gpu-mem-unit-in-force", NULL);

                if (strcmp(tree_text(node, "metadata", "name", NULL), name) != 0)
                        continue;
                if (!text)
                        text = tree_text(annotations, "aliquot.dev/gpu-mem-unit", NULL);
                (void) memory_unit_parse(str_from(text), &unit); /* stays GiB when it does not decode */
        }
        return unit;
}

/* ledger: any; the grant is given back. It sums up by the formula of the scheduler. */
static int print_slices(const GrantSpec *spec, Ledger *ledger, MemoryUnit unit, Buf *out) {
        Grant *grant;
        int r = grant_new(ledger, spec, &grant);

        if (r < 0)
                return r;
        print_cards(spec, grant, unit, out);
        (void) grant_free(grant);
        return 0;
}

static int print_pod(const json_t *pod, const json_t *nodes, Ledger *ledger, Buf *table) {
        _cleanup_free_ char *text = json_dumps(pod, JSON_COMPACT);
        const char *node = tree_text(pod, "spec", "nodeName", NULL);
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf cards = BUF_NULL;
        char name[TREE_NAME_MAX];
        GrantSpec spec;
        Pod decoded;
        int r;

        if (!node || !*node)
                return 0;
        r = text ? pod_decode(str_from(text), &arena, &decoded, NULL) : -ENOMEM;
        if (r == 0)
                r = pod_grant_spec(&decoded, &arena, &spec, NULL);
        if (r != 0 || spec.n_slices == 0)
                return r < 0 ? r : 0;
        tree_pod_name(pod, name);
        if (has_whole_cards(&decoded))
                print_whole_cards(&spec, &cards);
        else
                r = print_slices(&spec, ledger, unit_of(nodes, node), &cards);
        if (r < 0)
                return r;
        table_cell(table, str_from(name));
        table_cell(table, str_from(node));
        table_cell(table, buf_str(&cards));
        table_line_end(table);
        return buf_result(&cards);
}

int pod_cards_print(const json_t *pods, const json_t *nodes, Buf *out) {
        _cleanup_(ledger_freep) Ledger *ledger = NULL;
        _cleanup_buf_ Buf table = BUF_NULL;
        const json_t *pod;
        size_t i, empty;

        if (ledger_new(&ledger) < 0)
                return -ENOMEM;
        buf_append_str(&table, STR("\nPOD\tNODE\tCARDS\t\n"));
        empty = table.len;
        json_array_foreach(pods, i, pod) {
                int r = print_pod(pod, nodes, ledger, &table);

                if (r < 0)
                        return r;
        }
        if (buf_result(&table) < 0)
                return -ENOMEM;
        return table.len > empty ? table_align(buf_str(&table), out) : 0;
}
