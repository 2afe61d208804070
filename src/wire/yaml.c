/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/yaml.h"

#include <assert.h>
#include <errno.h>
#include <libfyaml.h>

#include "base/arena.h"
#include "wire/json_write.h"
#include "wire/yaml_scalar.h"

/* libfyaml cuts the text into events; from these a small tree is built per document, because an alias or a
 * merge key may repeat what stood before. Then the tree is written as JSON and forgotten. libfyaml's own tree
 * is not used: it would keep the tokens of the whole stream, and expand aliases without a bound.
 *
 * Bounds: text and values per document limit the tree, depth limits the recursion of the writer, and what
 * aliases and merge keys repeat is counted, since a kilobyte of them can stand for gigabytes ("billion
 * laughs"). */

enum {
        YAML_MAX_TEXT = 32 * 1024 * 1024,
        YAML_MAX_VALUES = 1000 * 1000, /* keys included */
        YAML_MAX_DEPTH = 60,
        YAML_MAX_ANCHORS = 1000,
        YAML_MAX_MERGED = 100 * 1000,        /* members copied by merge keys */
        YAML_MAX_REPEATED = 4 * 1024 * 1024, /* bytes of JSON that stand there because of an alias */
};

typedef enum NodeType {
        NODE_STRING,
        NODE_LITERAL, /* null, true, 42: text is JSON already */
        NODE_LIST,
        NODE_MAP,
        NODE_ALIAS,
} NodeType;

typedef struct Node Node;

typedef struct Member {
        Node *key, *value;
        size_t rank; /* place in the map; merged members stand behind the map's own */
        bool merged;
} Member;

struct Node {
        NodeType type;
        bool merge_key; /* a plain << */
        bool open;      /* a list or map whose end has not been seen */
        unsigned line, column;
        Str text;                  /* scalars */
        Node *first, *last, *next; /* elements; keys and values by turns while the map is open */
        Node *target;              /* of an alias */
        Member *members;           /* of a closed map */
        size_t n_children, n_members;
};

typedef struct Anchor {
        Str name;
        Node *node;
} Anchor;

typedef struct Loader {
        YamlDocument document;
        void *userdata;
        Arena arena; /* of the current document */
        Node *root;
        Node *stack[YAML_MAX_DEPTH]; /* containers that are open, outermost first */
        size_t depth;
        Anchor anchors[YAML_MAX_ANCHORS];
        size_t n_anchors;
        size_t n_values, n_merged;
} Loader;

static int refuse(Fault *fault, const Node *at, const char *what, Str detail) {
        bool quote = !str_is_empty(detail);

        return fault_set(fault, YAML_E_MALFORMED, "line %u, column %u: %s%s" STR_FMT "%s", at->line,
                         at->column, what, quote ? " \"" : "", (int) (detail.len < 80 ? detail.len : 80),
                         detail.data ? detail.data : "", quote ? "\"" : "");
}

static Node *follow(Node *node) {
        return node->type == NODE_ALIAS ? node->target : node;
}

/* --- merge keys and duplicates
 * ------------------------------------------------------------------------------------ */

/* How many members a << value brings in. */
static int merge_count(const Node *at, Node *value, size_t *n, Fault *fault) {
        Node *map = follow(value);

        if (map->type == NODE_LIST && !map->open) {
                for (Node *element = map->first; element; element = element->next) {
                        if (follow(element)->type != NODE_MAP)
                                return refuse(fault, at, "a merge key takes a map or a list of maps",
                                              (Str){NULL, 0});
                        *n += follow(element)->n_members;
                }
                return 0;
        }
        if (map->type != NODE_MAP)
                return refuse(fault, at, "a merge key takes a map or a list of maps", (Str){NULL, 0});
        *n += map->n_members;
        return 0;
}

static void merge_copy(Node *map, const Node *from) {
        for (size_t i = 0; i < from->n_members; i++) {
                map->members[map->n_members] = from->members[i];
                map->members[map->n_members].rank = map->n_members;
                map->members[map->n_members].merged = true;
                map->n_members++;
        }
}

static void merge_into(Node *map, Node *value) {
        Node *from = follow(value);

        if (from->type == NODE_MAP)
                merge_copy(map, from);
        else
                for (Node *element = from->first; element; element = element->next)
                        merge_copy(map, follow(element));
}

static int member_by_key(const void *a, const void *b) {
        const Member *x = a, *y = b;
        int r = str_compare(x->key->text, y->key->text);

        return r != 0 ? r : (x->rank > y->rank) - (x->rank < y->rank);
}

static int member_by_rank(const void *a, const void *b) {
        const Member *x = a, *y = b;

        return (x->rank > y->rank) - (x->rank < y->rank);
}

/* A merged member gives way to any of the same name before it; two of the map's own are refused. */
static int drop_shadowed(Node *map, Fault *fault) {
        size_t kept = 0;

        if (map->n_members < 2)
                return 0;
        qsort(map->members, map->n_members, sizeof(Member), member_by_key);
        for (size_t i = 0; i < map->n_members; i++) {
                Member *m = &map->members[i];

                if (kept == 0 || !str_eq(map->members[kept - 1].key->text, m->key->text))
                        map->members[kept++] = *m;
                else if (!m->merged)
                        return refuse(fault, m->key, "duplicate key", m->key->text);
        }
        map->n_members = kept;
        qsort(map->members, map->n_members, sizeof(Member), member_by_rank);
        return 0;
}

/* Keys and values by turns become members. */
static int close_map(Loader *l, Node *map, Fault *fault) {
        size_t n = map->n_children / 2, n_merged = 0;
        int r;

        assert(map->n_children % 2 == 0);
        for (Node *key = map->first; key; key = key->next->next)
                if (key->merge_key) {
                        r = merge_count(key, key->next, &n_merged, fault);
                        if (r != 0)
                                return r;
                }
        l->n_merged += n_merged;
        if (l->n_merged > YAML_MAX_MERGED)
                return refuse(fault, map, "merge keys copy more than 100000 members", (Str){NULL, 0});
        map->members = arena_new(&l->arena, Member, n + n_merged + 1);
        if (!map->members)
                return -ENOMEM;
        for (Node *key = map->first; key; key = key->next->next)
                if (!key->merge_key) {
                        map->members[map->n_members] = (Member){key, key->next, map->n_members, false};
                        map->n_members++;
                }
        for (Node *key = map->first; key; key = key->next->next)
                if (key->merge_key)
                        merge_into(map, key->next);
        return drop_shadowed(map, fault);
}

/* --- from events to the tree
 * -------------------------------------------------------------------------------------- */

static Str token_text(struct fy_token *token) {
        size_t n = 0;
        const char *text = token ? fy_token_get_text(token, &n) : NULL;

        return (Str){text, text ? n : 0};
}

static Node *current(const Loader *l) {
        return l->depth > 0 ? l->stack[l->depth - 1] : NULL;
}

static bool at_key(const Loader *l) {
        return current(l) && current(l)->type == NODE_MAP && current(l)->n_children % 2 == 0;
}

static int attach(Loader *l, Node *node, Fault *fault) {
        Node *parent = current(l);

        if (at_key(l) && node->type != NODE_STRING && node->type != NODE_LITERAL)
                return refuse(fault, node, "a key must be a scalar", (Str){NULL, 0});
        if (!parent)
                l->root = node;
        else if (parent->last)
                parent->last = parent->last->next = node;
        else
                parent->first = parent->last = node;
        if (parent)
                parent->n_children++;
        return 0;
}

static int anchor_set(Loader *l, Str name, Node *node, Fault *fault) {
        if (str_is_empty(name))
                return 0;
        if (l->n_anchors == YAML_MAX_ANCHORS)
                return refuse(fault, node, "more than 1000 anchors", (Str){NULL, 0});
        name = arena_str(&l->arena, name);
        if (!name.data)
                return -ENOMEM;
        l->anchors[l->n_anchors++] = (Anchor){name, node};
        return 0;
}

/* The newest of that name: an anchor may be set again. */
static Node *anchor_find(const Loader *l, Str name) {
        for (size_t i = l->n_anchors; i > 0; i--)
                if (str_eq(l->anchors[i - 1].name, name))
                        return l->anchors[i - 1].node;
        return NULL;
}

static int node_new(Loader *l, NodeType type, struct fy_event *event, Node **ret, Fault *fault) {
        const struct fy_mark *mark = fy_event_start_mark(event);
        Node *node = arena_new(&l->arena, Node, 1);

        if (!node)
                return -ENOMEM;
        node->type = type;
        if (mark && mark->line >= 0 && mark->column >= 0) {
                node->line = (unsigned) mark->line + 1;
                node->column = (unsigned) mark->column + 1;
        } else if (current(l)) { /* an empty value has no place of its own */
                node->line = current(l)->line;
                node->column = current(l)->column;
        }
        if (++l->n_values > YAML_MAX_VALUES)
                return refuse(fault, node, "more than 1000000 values in one document", (Str){NULL, 0});
        *ret = node;
        return 0;
}

static const char *const scalar_type_names[] = {"str", "null", "bool", "int", "float"};

/* kubectl understands the tags of YAML's core schema; what another tag would mean nobody here can say. */
static int resolve_tagged(Node *node, Str tag, YamlScalar *scalar, Fault *fault) {
        static const char prefix[] = "tag:yaml.org,2002:";
        Str name = tag;

        if (str_has_prefix(tag, str_from(prefix)))
                name = (Str){tag.data + sizeof prefix - 1, tag.len - (sizeof prefix - 1)};
        if (str_eq(name, str_from(scalar_type_names[scalar->type])))
                return 0;
        if (str_eq(name, STR("float")) && scalar->type == YAML_SCALAR_INT)
                return 0;
        for (size_t i = 0; i < ELEMENTSOF(scalar_type_names); i++)
                if (str_eq(name, str_from(scalar_type_names[i])))
                        return refuse(fault, node, "the value does not fit its tag", tag);
        return refuse(fault, node, "unknown tag", tag);
}

static int resolve(Loader *l, Node *node, Str text, Str tag, bool plain, Fault *fault) {
        bool tagged = !str_is_empty(tag) && !str_eq(tag, STR("!"));
        bool string = str_eq(tag, STR("!")) || str_eq(tag, STR("tag:yaml.org,2002:str"));
        YamlScalar scalar = {YAML_SCALAR_STRING, text};
        int r = 0;

        if (!string && (plain || tagged)) {
                r = yaml_scalar_resolve(text, &l->arena, &scalar);
                if (r == YAML_SCALAR_E_NOT_JSON)
                        return refuse(fault, node, "JSON has no number", text);
                if (r == YAML_SCALAR_E_RANGE)
                        return refuse(fault, node, "number does not fit 64 bits:", text);
                if (r < 0)
                        return r;
                if (tagged)
                        r = resolve_tagged(node, tag, &scalar, fault);
                if (r != 0)
                        return r;
        }
        node->merge_key = plain && str_eq(text, STR("<<")) && at_key(l);
        node->type = scalar.type == YAML_SCALAR_STRING ? NODE_STRING : NODE_LITERAL;
        node->text = arena_str(&l->arena, scalar.text);
        return node->text.data ? 0 : -ENOMEM;
}

static int on_scalar(Loader *l, struct fy_event *event, Fault *fault) {
        bool plain = !event->scalar.value || fy_token_scalar_style(event->scalar.value) == FYSS_PLAIN;
        Node *node;
        int r;

        r = node_new(l, NODE_STRING, event, &node, fault);
        if (r == 0)
                r = resolve(l, node, token_text(event->scalar.value), token_text(event->scalar.tag), plain,
                            fault);
        if (r == 0)
                r = anchor_set(l, token_text(event->scalar.anchor), node, fault);
        return r != 0 ? r : attach(l, node, fault);
}

static int on_alias(Loader *l, struct fy_event *event, Fault *fault) {
        Str name = token_text(event->alias.anchor);
        Node *node;
        int r;

        r = node_new(l, NODE_ALIAS, event, &node, fault);
        if (r != 0)
                return r;
        node->target = anchor_find(l, name);
        if (!node->target)
                return refuse(fault, node, "no such anchor:", name);
        if (node->target->open)
                return refuse(fault, node, "an anchor that contains itself:", name);
        /* A scalar is cheap to repeat and may be a key. */
        if (node->target->type == NODE_STRING || node->target->type == NODE_LITERAL) {
                node->type = node->target->type;
                node->text = node->target->text;
        }
        return attach(l, node, fault);
}

static int on_open(Loader *l, struct fy_event *event, NodeType type, Str anchor, Fault *fault) {
        Node *node;
        int r;

        r = node_new(l, type, event, &node, fault);
        if (r == 0)
                r = anchor_set(l, anchor, node, fault);
        if (r == 0)
                r = attach(l, node, fault);
        if (r != 0)
                return r;
        if (l->depth == YAML_MAX_DEPTH)
                return refuse(fault, node, "nested deeper than 60 levels", (Str){NULL, 0});
        node->open = true;
        l->stack[l->depth++] = node;
        return 0;
}

static int on_close(Loader *l, Fault *fault) {
        Node *node = l->stack[--l->depth];

        node->open = false;
        return node->type == NODE_MAP ? close_map(l, node, fault) : 0;
}

/* --- from the tree to JSON
 * ---------------------------------------------------------------------------------------- */

typedef struct Emitter {
        JsonWriter writer;
        unsigned repeating; /* aliases and merged members around the current node */
        size_t repeated;    /* bytes written within them, before the outermost of now */
        size_t repeat_start;
} Emitter;

static int emit(Emitter *e, Node *node, unsigned depth, Fault *fault);

static int emit_repeated(Emitter *e, Node *node, const Node *at, unsigned depth, Fault *fault) {
        int r;

        if (e->repeating++ == 0)
                e->repeat_start = e->writer.out->len;
        r = emit(e, node, depth, fault);
        if (--e->repeating == 0)
                e->repeated += e->writer.out->len - e->repeat_start;
        if (r == 0 && e->repeated > YAML_MAX_REPEATED)
                return refuse(fault, at, "aliases repeat more than 4 MiB", (Str){NULL, 0});
        return r;
}

static int emit_list(Emitter *e, const Node *list, unsigned depth, Fault *fault) {
        json_write_array(&e->writer, NULL);
        for (Node *element = list->first; element; element = element->next) {
                int r = emit(e, element, depth + 1, fault);

                if (r != 0)
                        return r;
        }
        json_write_array_end(&e->writer);
        return 0;
}

static int emit_map(Emitter *e, const Node *map, unsigned depth, Fault *fault) {
        json_write_object(&e->writer, NULL);
        for (size_t i = 0; i < map->n_members; i++) {
                const Member *m = &map->members[i];
                int r;

                json_write_key(&e->writer, m->key->text);
                r = m->merged ? emit_repeated(e, m->value, map, depth + 1, fault)
                              : emit(e, m->value, depth + 1, fault);
                if (r != 0)
                        return r;
        }
        json_write_object_end(&e->writer);
        return 0;
}

static int emit(Emitter *e, Node *node, unsigned depth, Fault *fault) {
        if (e->repeating > 0 && e->repeated + (e->writer.out->len - e->repeat_start) > YAML_MAX_REPEATED)
                return refuse(fault, node, "aliases repeat more than 4 MiB", (Str){NULL, 0});
        if (depth > YAML_MAX_DEPTH)
                return refuse(fault, node, "nested deeper than 60 levels by its aliases", (Str){NULL, 0});
        switch (node->type) {
        case NODE_STRING:
                json_write_str(&e->writer, NULL, node->text);
                return 0;
        case NODE_LITERAL:
                json_write_raw(&e->writer, NULL, node->text);
                return 0;
        case NODE_LIST:
                return emit_list(e, node, depth, fault);
        case NODE_MAP:
                return emit_map(e, node, depth, fault);
        case NODE_ALIAS:
                return emit_repeated(e, node->target, node, depth, fault);
        }
        return 0;
}

static int on_document_end(Loader *l, Fault *fault) {
        _cleanup_buf_ Buf json = BUF_NULL;
        Emitter e = {0};
        int r;

        /* `---` and nothing behind it, or only comments: kubectl passes over it, too. */
        if (!l->root || (l->root->type == NODE_LITERAL && str_eq(l->root->text, STR("null"))))
                return 0;
        json_write_init(&e.writer, &json);
        r = emit(&e, l->root, 0, fault);
        if (r != 0)
                return r;
        r = buf_result(&json);
        return r != 0 ? r : l->document(l->userdata, buf_str(&json), l->root->line, fault);
}

static void on_document_start(Loader *l) {
        arena_reset(&l->arena);
        l->root = NULL;
        l->depth = l->n_anchors = l->n_values = l->n_merged = 0;
}

static int on_event(Loader *l, struct fy_event *event, Fault *fault) {
        switch (event->type) {
        case FYET_DOCUMENT_START:
                on_document_start(l);
                return 0;
        case FYET_DOCUMENT_END:
                return on_document_end(l, fault);
        case FYET_SCALAR:
                return on_scalar(l, event, fault);
        case FYET_ALIAS:
                return on_alias(l, event, fault);
        case FYET_MAPPING_START:
                return on_open(l, event, NODE_MAP, token_text(event->mapping_start.anchor), fault);
        case FYET_SEQUENCE_START:
                return on_open(l, event, NODE_LIST, token_text(event->sequence_start.anchor), fault);
        case FYET_MAPPING_END:
        case FYET_SEQUENCE_END:
                return on_close(l, fault);
        case FYET_NONE:
        case FYET_STREAM_START:
        case FYET_STREAM_END:
                return 0;
        }
        return 0;
}

/* --- the library's complaints
 * ------------------------------------------------------------------------------------- */

/* Several calls per complaint: `<memory-@0x1-0x2>:3:5: error: text`, then the source with a pointer. The
 * first line is what people need. (The library can also collect complaints as structs; 0.7.12 leaks those.)
 */
static void on_diagnostic(struct fy_diag *diag, void *userdata, const char *text, size_t n) {
        Fault *said = userdata;
        Str rest = {text, n}, line, column, message;

        if (said->text[0] != '\0')
                return;
        if (!str_has_prefix(rest, STR("<memory"))) {
                message = str_trim(rest);
                (void) fault_set(said, 0, STR_FMT, STR_ARG(message));
                return;
        }
        (void) str_split(&rest, ':');
        line = str_split(&rest, ':');
        column = str_split(&rest, ':');
        (void) str_split(&rest, ':'); /* error */
        message = str_trim(rest);
        (void) fault_set(said, 0, "line " STR_FMT ", column " STR_FMT ": " STR_FMT, STR_ARG(line),
                         STR_ARG(column), STR_ARG(message));
}

DEFINE_CLEANUP(struct fy_parser *, fy_parser_destroy)
DEFINE_CLEANUP(struct fy_diag *, fy_diag_unref)

static void loader_done(Loader *l) {
        arena_done(&l->arena);
}

static void loader_freep(Loader **l) {
        if (*l)
                loader_done(*l);
        free(*l);
}

static int run(struct fy_parser *parser, Loader *l, const Fault *said, Fault *fault) {
        struct fy_event *event;

        while ((event = fy_parser_parse(parser))) {
                int r = on_event(l, event, fault);

                fy_parser_event_free(parser, event);
                if (r != 0)
                        return r;
        }
        if (fy_parser_get_stream_error(parser))
                return fault_set(fault, YAML_E_MALFORMED, "%s", said->text[0] ? said->text : "not YAML");
        return 0;
}

int yaml_documents(Str text, YamlDocument document, void *userdata, Fault *fault) {
        Fault said = FAULT_NULL;
        struct fy_diag_cfg diag_config;
        struct fy_parse_cfg config = {.flags = FYPCF_SLOPPY_FLOW_INDENTATION | FYPCF_JSON_NONE};
        _cleanup_(fy_diag_unrefp) struct fy_diag *diag = NULL;
        _cleanup_(fy_parser_destroyp) struct fy_parser *parser = NULL;
        _cleanup_(loader_freep) Loader *l = NULL;

        if (text.len > YAML_MAX_TEXT)
                return fault_set(fault, YAML_E_MALFORMED, "%zu bytes of YAML, at most 32 MiB are taken",
                                 text.len);
        if (str_is_empty(text))
                return 0;
        l = calloc(1, sizeof *l);
        fy_diag_cfg_default(&diag_config);
        diag_config.output_fn = on_diagnostic;
        diag_config.user = &said;
        diag_config.level = FYET_ERROR;
        diag_config.colorize = diag_config.show_source = diag_config.show_type = false;
        diag = fy_diag_create(&diag_config);
        config.diag = diag;
        parser = diag ? fy_parser_create(&config) : NULL;
        if (!l || !parser || fy_parser_set_string(parser, text.data, text.len) < 0)
                return -ENOMEM;
        l->document = document;
        l->userdata = userdata;
        return run(parser, l, &said, fault);
}
