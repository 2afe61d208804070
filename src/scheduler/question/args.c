/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/question/args.h"

#include <errno.h>
#include <strings.h>

#include "wire/json_field.h"

bool args_key_is(Str raw, const char *field) {
        size_t n = strlen(field);

        return (raw.len == n && strncasecmp(raw.data, field, n) == 0) || json_key_is(raw, field);
}

/* ---- the nodes ---- */

typedef struct Reading {
        JsonReader reader;
        Directory *directory;
        Arena *arena;
        const ArgsVisitor *visitor;
        int result;      /* of the visitor's `pod`; nonzero ends the reading */
        bool all;        /* the visitor wants the names as one text */
        bool handed_out; /* the names have been given to the visitor */

        /* Nodes that wait for a batch look-up (directory_find_batch()). */
        Str raws[DIRECTORY_BATCH], names[DIRECTORY_BATCH];
        size_t n_waiting;
} Reading;

static void hand_out_waiting(Reading *g) {
        DirectoryNode *nodes[DIRECTORY_BATCH];

        directory_find_batch(g->directory, g->names, g->n_waiting, nodes);
        for (size_t i = 0; i < g->n_waiting; i++)
                g->visitor->node(g->visitor->userdata,
                                 &(ArgsNode){.raw = g->raws[i], .name = g->names[i], .node = nodes[i]});
        g->n_waiting = 0;
}

static void hand_out(Reading *g, Str raw, Str name) {
        if (g->all)
                return;
        g->raws[g->n_waiting] = raw;
        g->names[g->n_waiting++] = name;
        if (g->n_waiting == DIRECTORY_BATCH)
                hand_out_waiting(g);
}

/* The name without quotes. One with an escape is legal JSON but no name of a node; the answer
 * repeats it as it was written. */
static Str plain_name(Reading *g, Str raw) {
        Str name = {raw.data + 1, raw.len - 2};
        JsonReader r;

        if (!memchr(raw.data, '\\', raw.len))
                return name;
        json_init(&r, raw);
        json_string(&r, g->arena, &name);
        return name;
}

static void read_names(Reading *g) {
        const char *start;

        if (!json_array_begin(&g->reader))
                return;
        start = g->reader.at;
        while (json_array_next(&g->reader)) {
                Str raw = {NULL, 0};

                if (json_plain_name(&g->reader, &raw)) {
                        hand_out(g, raw, (Str){raw.data + 1, raw.len - 2});
                        continue;
                }
                if (json_peek(&g->reader) != JSON_STRING) {
                        json_fault(&g->reader, "not a string");
                        return;
                }
                json_raw(&g->reader, &raw);
                if (raw.len >= 2)
                        hand_out(g, raw, plain_name(g, raw));
        }
        hand_out_waiting(g);
        if (g->all && !json_failed(&g->reader))
                g->visitor->all(g->visitor->userdata, (Str){start, (size_t) (g->reader.at - 1 - start)});
}

static const JsonField name_fields[] = {{STR("name"), json_field_str, 0}};
JSON_DECODER(read_metadata, name_fields)

static const JsonField node_fields[] = {{STR("metadata"), read_metadata, 0}};

/* Reads a v1.NodeList. The answer repeats its elements as they came. */
static void read_items(Reading *g) {
        if (!json_array_begin(&g->reader))
                return;
        while (json_array_next(&g->reader)) {
                const char *start;
                Str name = {NULL, 0};

                if (json_peek(&g->reader) != JSON_OBJECT) {
                        json_fault(&g->reader, "not an object");
                        return;
                }
                start = g->reader.at;
                json_field_decode(&g->reader, g->arena, node_fields, ELEMENTSOF(node_fields), &name);
                if (json_failed(&g->reader))
                        return;
                hand_out(g, (Str){start, (size_t) (g->reader.at - start)}, name);
        }
        hand_out_waiting(g);
}

static void read_node_list(Reading *g) {
        Str key;

        JSON_EACH_MEMBER(&g->reader, &key) {
                if (args_key_is(key, "items"))
                        read_items(g);
                else
                        json_skip(&g->reader);
        }
}

/* ---- the whole ---- */

typedef struct Members {
        Str pod, nodes, names; /* texts of the members; empty when absent or null */
} Members;

static void member_raw(JsonReader *r, Str *ret) {
        bool null = json_peek(r) == JSON_NULL;
        Str raw = {NULL, 0};

        json_raw(r, &raw);
        *ret = null ? (Str){NULL, 0} : raw;
}

/* Decodes the pod and gives it to the visitor. A nonzero result is also kept in g->result, which
 * ends the reading. */
static int hand_over_pod(Reading *g, Str text, bool by_name, Fault *fault) {
        ExtenderArgs args = {.pod_text = text, .by_name = by_name};
        int r;

        r = pod_decode(text, g->arena, &args.pod, fault);
        if (r == 0)
                r = g->visitor->pod(g->visitor->userdata, &args);
        else if (r > 0)
                r = fault_wrap(fault, ARGS_E_MALFORMED, "Pod");
        g->all = r == ARGS_ALL;
        g->result = g->all ? 0 : r;
        return g->result;
}

/* Handles the member NodeNames: if the pod came before it, as Go writes it, the names are handed
 * out at once; otherwise their text is kept. */
static void names_member(Reading *g, Members *m, Fault *fault) {
        bool in_passing = !str_is_empty(m->pod) && json_peek(&g->reader) == JSON_ARRAY;

        if (g->handed_out)
                json_fault(&g->reader, "NodeNames stand twice");
        else if (!in_passing)
                member_raw(&g->reader, &m->names);
        else if (hand_over_pod(g, m->pod, true, fault) == 0) {
                g->handed_out = true;
                read_names(g);
        }
}

static int read_members(Reading *g, Str body, Members *m, Fault *fault) {
        JsonReader *r = &g->reader;
        Str key;
        int k;

        json_init(r, body);
        if (json_peek(r) != JSON_OBJECT)
                json_fault(r, "ExtenderArgs must be an object");
        else if (json_object_begin(r))
                while (g->result == 0 && json_object_next(r, &key)) {
                        if (args_key_is(key, "Pod"))
                                member_raw(r, &m->pod);
                        else if (args_key_is(key, "Nodes"))
                                member_raw(r, &m->nodes);
                        else if (args_key_is(key, "NodeNames"))
                                names_member(g, m, fault);
                        else
                                json_skip(r);
                }
        if (g->result != 0)
                return g->result;
        k = json_finish(r, fault);
        return k > 0 ? ARGS_E_MALFORMED : k;
}

/* Hands out nodes that came before the pod: all members are known by now, and the nodes' text is
 * read once more. */
static int read_candidates(Reading *g, const Members *m, Fault *fault) {
        bool by_name = !str_is_empty(m->names);
        int k;

        if (str_is_empty(m->pod))
                return fault_set(fault, ARGS_E_MALFORMED, "Pod is missing");
        if (!by_name && str_is_empty(m->nodes))
                return fault_set(fault, ARGS_E_MALFORMED, "NodeNames and Nodes are both missing");
        k = hand_over_pod(g, m->pod, by_name, fault);
        if (k != 0)
                return k;
        json_init(&g->reader, by_name ? m->names : m->nodes);
        if (by_name)
                read_names(g);
        else
                read_node_list(g);
        k = json_finish(&g->reader, fault);
        return k > 0 ? fault_wrap(fault, ARGS_E_MALFORMED, by_name ? "NodeNames" : "Nodes") : k;
}

int args_read(Str body, Directory *d, Arena *arena, const ArgsVisitor *visitor, Fault *fault) {
        Reading g = {.directory = d, .arena = arena, .visitor = visitor};
        Members m = {0};
        int r;

        r = read_members(&g, body, &m, fault);
        return r != 0 || g.handed_out ? r : read_candidates(&g, &m, fault);
}

/* ---- binding ---- */

int args_read_binding(Str body, Arena *arena, BindingArgs *ret, Fault *fault) {
        BindingArgs a = {0};
        JsonReader r;
        Str key;
        int k;

        json_init(&r, body);
        if (json_peek(&r) != JSON_OBJECT)
                json_fault(&r, "ExtenderBindingArgs must be an object");
        else if (json_object_begin(&r))
                while (json_object_next(&r, &key)) {
                        if (args_key_is(key, "PodName"))
                                json_string(&r, arena, &a.name);
                        else if (args_key_is(key, "PodNamespace"))
                                json_string(&r, arena, &a.namespace_);
                        else if (args_key_is(key, "PodUID"))
                                json_string(&r, arena, &a.uid);
                        else if (args_key_is(key, "Node"))
                                json_string(&r, arena, &a.node);
                        else
                                json_skip(&r);
                }
        k = json_finish(&r, fault);
        if (k != 0)
                return k > 0 ? ARGS_E_MALFORMED : k;
        if (str_is_empty(a.name) || str_is_empty(a.namespace_) || str_is_empty(a.uid) || str_is_empty(a.node))
                return fault_set(fault, ARGS_E_MALFORMED, "%s is missing",
                                 str_is_empty(a.name)         ? "PodName"
                                 : str_is_empty(a.namespace_) ? "PodNamespace"
                                 : str_is_empty(a.uid)        ? "PodUID"
                                                              : "Node");
        *ret = a;
        return 0;
}
