/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/yaml.h"

#include <assert.h>
#include <errno.h>
#include <libfyaml.h>

#include "wire/utf8.h"
#include "wire/yaml-internal.h"
#include "wire/yaml_scalar.h"

/* libfyaml cuts the text into events. From these a small tree is built per document, because an
 * alias or a merge key may repeat an earlier node. Then the tree is written as JSON and freed. The
 * tree of libfyaml is not used: it would keep the tokens of the whole stream, and expand aliases
 * without a bound.
 *
 * Bounds: text and values per document limit the tree, and depth limits the recursion of the
 * writer. What aliases and merge keys repeat is counted, because a kilobyte of them can stand for
 * gigabytes ("billion laughs"). */

enum {
        YAML_MAX_TEXT = 32 * 1024 * 1024,
        YAML_MAX_VALUES = 1000 * 1000, /* of one document, keys included */
        YAML_MAX_ANCHORS = 1000,
};

typedef struct Anchor {
        Str name;
        YamlNode *node;
} Anchor;

typedef struct Loader {
        YamlDocument document;
        void *userdata;
        Arena arena;                     /* of the current document */
        YamlNode *root, *last;           /* last: the newest node that has a position in the text */
        YamlNode *stack[YAML_MAX_DEPTH]; /* lists and maps that are open, outermost first */
        size_t depth;
        Anchor anchors[YAML_MAX_ANCHORS];
        size_t n_anchors;
        size_t n_values, n_merged;
} Loader;

static Str token_text(struct fy_token *token) {
        size_t n = 0;
        const char *text = token ? fy_token_get_text(token, &n) : NULL;

        return (Str){text, text ? n : 0};
}

static YamlNode *current_parent(const Loader *l) {
        return l->depth > 0 ? l->stack[l->depth - 1] : NULL;
}

static bool at_key(const Loader *l) {
        return current_parent(l) && current_parent(l)->type == YAML_NODE_MAP &&
               current_parent(l)->n_children % 2 == 0;
}

static int attach_node(Loader *l, YamlNode *node, Fault *fault) {
        YamlNode *parent = current_parent(l);

        if (at_key(l) && node->type != YAML_NODE_STRING && node->type != YAML_NODE_LITERAL)
                return yaml_refuse(fault, node, "a key must be a scalar", STR(""));
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

static int anchor_set(Loader *l, Str name, YamlNode *node, Fault *fault) {
        if (str_is_empty(name))
                return 0;
        if (l->n_anchors == YAML_MAX_ANCHORS)
                return yaml_refuse(fault, node, "more than 1000 anchors", STR(""));
        name = arena_str(&l->arena, name);
        if (!name.data)
                return -ENOMEM;
        l->anchors[l->n_anchors++] = (Anchor){name, node};
        return 0;
}

/* Finds the newest anchor of that name: a document may set one again. */
static YamlNode *anchor_find(const Loader *l, Str name) {
        for (size_t i = l->n_anchors; i > 0; i--)
                if (str_eq(l->anchors[i - 1].name, name))
                        return l->anchors[i - 1].node;
        return NULL;
}

static int node_new(Loader *l, YamlNodeType type, struct fy_event *event, YamlNode **ret, Fault *fault) {
        const struct fy_mark *mark = fy_event_start_mark(event);
        YamlNode *node = arena_new(&l->arena, YamlNode, 1);

        if (!node)
                return -ENOMEM;
        node->type = type;
        if (mark && mark->line >= 0 && mark->column >= 0) {
                node->line = (unsigned) mark->line + 1;
                node->column = (unsigned) mark->column + 1;
                l->last = node;
        } else { /* an empty value has no position */
                node->line = l->last ? l->last->line : 1;
                node->column = l->last ? l->last->column : 1;
        }
        if (++l->n_values > YAML_MAX_VALUES)
                return yaml_refuse(fault, node, "more than 1000000 values in one document", STR(""));
        *ret = node;
        return 0;
}

static const char *const scalar_type_names[] = {"str", "null", "bool", "int", "float"};

/* kubectl understands the tags of YAML's core schema. Other tags are refused, because their meaning
 * is unknown. */
static int resolve_tagged(YamlNode *node, Str tag, YamlScalar *scalar, Fault *fault) {
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
                        return yaml_refuse(fault, node, "the value does not fit its tag", tag);
        return yaml_refuse(fault, node, "unknown tag", tag);
}

static int resolve_scalar(Loader *l, YamlNode *node, Str text, Str tag, bool plain, Fault *fault) {
        bool tagged = !str_is_empty(tag) && !str_eq(tag, STR("!"));
        bool string = str_eq(tag, STR("!")) || str_eq(tag, STR("tag:yaml.org,2002:str"));
        YamlScalar scalar = {YAML_SCALAR_STRING, text};
        int r = 0;

        if (!string && (plain || tagged)) {
                r = yaml_scalar_resolve(text, &l->arena, &scalar);
                if (r == YAML_SCALAR_E_NOT_JSON)
                        return yaml_refuse(fault, node, "JSON has no number", text);
                if (r == YAML_SCALAR_E_RANGE)
                        return yaml_refuse(fault, node, "number does not fit 64 bits:", text);
                if (r < 0)
                        return r;
                if (tagged)
                        r = resolve_tagged(node, tag, &scalar, fault);
                if (r != 0)
                        return r;
        }
        node->merge_key = plain && str_eq(text, STR("<<")) && at_key(l);
        node->type = scalar.type == YAML_SCALAR_STRING ? YAML_NODE_STRING : YAML_NODE_LITERAL;
        node->text = arena_str(&l->arena, scalar.text);
        return node->text.data ? 0 : -ENOMEM;
}

static int on_scalar(Loader *l, struct fy_event *event, Fault *fault) {
        bool plain = !event->scalar.value || fy_token_scalar_style(event->scalar.value) == FYSS_PLAIN;
        YamlNode *node;
        int r;

        r = node_new(l, YAML_NODE_STRING, event, &node, fault);
        if (r == 0)
                r = resolve_scalar(l, node, token_text(event->scalar.value), token_text(event->scalar.tag),
                                   plain, fault);
        if (r == 0)
                r = anchor_set(l, token_text(event->scalar.anchor), node, fault);
        return r != 0 ? r : attach_node(l, node, fault);
}

static int on_alias(Loader *l, struct fy_event *event, Fault *fault) {
        Str name = token_text(event->alias.anchor);
        YamlNode *node;
        int r;

        r = node_new(l, YAML_NODE_ALIAS, event, &node, fault);
        if (r != 0)
                return r;
        node->target = anchor_find(l, name);
        if (!node->target)
                return yaml_refuse(fault, node, "no such anchor:", name);
        if (node->target->open)
                return yaml_refuse(fault, node, "an anchor that contains itself:", name);
        /* A scalar is copied: it is cheap to repeat, and may be a key. */
        if (node->target->type == YAML_NODE_STRING || node->target->type == YAML_NODE_LITERAL) {
                node->type = node->target->type;
                node->text = node->target->text;
        }
        return attach_node(l, node, fault);
}

static int on_open(Loader *l, struct fy_event *event, YamlNodeType type, Str anchor, Fault *fault) {
        YamlNode *node;
        int r;

        r = node_new(l, type, event, &node, fault);
        if (r == 0)
                r = anchor_set(l, anchor, node, fault);
        if (r == 0)
                r = attach_node(l, node, fault);
        if (r != 0)
                return r;
        if (l->depth == YAML_MAX_DEPTH)
                return yaml_refuse(fault, node, "nested deeper than 60 levels", STR(""));
        node->open = true;
        l->stack[l->depth++] = node;
        return 0;
}

static int on_close(Loader *l, Fault *fault) {
        YamlNode *node = current_parent(l);

        assert(node); /* libfyaml checks that brackets match */
        l->depth--;
        node->open = false;
        return node->type == YAML_NODE_MAP ? yaml_map_close(node, &l->arena, &l->n_merged, fault) : 0;
}

static int on_document_end(Loader *l, Fault *fault) {
        _cleanup_buf_ Buf json = BUF_NULL;
        int r;

        /* A document with nothing behind `---`, or only comments: kubectl skips it, too. */
        if (!l->root || (l->root->type == YAML_NODE_LITERAL && str_eq(l->root->text, STR("null"))))
                return 0;
        r = yaml_emit(l->root, &json, fault);
        if (r != 0)
                return r;
        r = buf_result(&json);
        return r != 0 ? r : l->document(l->userdata, buf_str(&json), l->root->line, fault);
}

static void on_document_start(Loader *l) {
        arena_reset(&l->arena);
        l->root = l->last = NULL;
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
                return on_open(l, event, YAML_NODE_MAP, token_text(event->mapping_start.anchor), fault);
        case FYET_SEQUENCE_START:
                return on_open(l, event, YAML_NODE_LIST, token_text(event->sequence_start.anchor), fault);
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

/* libfyaml calls this several times per fault: `<memory-@0x1-0x2>:3:5: error: text`, then the
 * source with a pointer. The fault takes the first line. (The library can also collect faults as
 * structs; 0.7.12 leaks those.) */
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

static int load_events(struct fy_parser *parser, Loader *l, const Fault *said, Fault *fault) {
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

/* Texts that libfyaml 0.7.12 must not get, because it never returns from some of them: text that is
 * not UTF-8 (kubectl refuses that, too) and directives, which no manifest needs. */
static int check_text(Str text, Fault *fault) {
        unsigned line = 1;

        if (text.len > YAML_MAX_TEXT)
                return fault_set(fault, YAML_E_MALFORMED, "%zu bytes of YAML, at most 32 MiB are taken",
                                 text.len);
        if (!utf8_is_valid(text))
                return fault_set(fault, YAML_E_MALFORMED, "not UTF-8");
        while (text.len > 0) {
                Str rest = str_split(&text, '\n');

                /* A carriage return alone ends a line in YAML. */
                while (rest.len > 0)
                        if (str_has_prefix(str_split(&rest, '\r'), STR("%")))
                                return fault_set(fault, YAML_E_MALFORMED,
                                                 "line %u, column 1: YAML directives are not taken", line);
                line++;
        }
        return 0;
}

int yaml_documents(Str text, YamlDocument document, void *userdata, Fault *fault) {
        Fault said = FAULT_NULL;
        struct fy_diag_cfg diag_config;
        struct fy_parse_cfg config = {.flags = FYPCF_SLOPPY_FLOW_INDENTATION | FYPCF_JSON_NONE};
        _cleanup_(fy_diag_unrefp) struct fy_diag *diag = NULL;
        _cleanup_(fy_parser_destroyp) struct fy_parser *parser = NULL;
        _cleanup_(loader_freep) Loader *l = NULL;
        int r;

        if (str_is_empty(text))
                return 0;
        r = check_text(text, fault);
        if (r != 0)
                return r;
        l = calloc(1, sizeof *l);
        fy_diag_cfg_default(&diag_config);
        diag_config.fp = NULL;
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
        return load_events(parser, l, &said, fault);
}
