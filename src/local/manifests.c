/* SPDX-License-Identifier: Apache-2.0 */
#include "local/manifests.h"

#include <dirent.h>
#include <errno.h>

#include "base/file.h"
#include "wire/text_form.h"
#include "wire/yaml.h"

/* Lists may contain Lists; deeper nesting is refused. */
enum { MAX_LIST_DEPTH = 4 };

typedef struct Loading {
        Manifests *manifests;
        const char *file;
        unsigned document;
        bool told; /* the fault already names its document */
} Loading;

void manifests_done(Manifests *m) {
        for (size_t i = 0; i < m->n; i++)
                json_decref(m->items[i].object);
        free(m->items);
        for (size_t i = 0; i < m->n_paths; i++)
                free(m->paths[i]);
        free(m->paths);
        *m = MANIFESTS_NULL;
}

int manifest_fault(const Manifest *m, int r, Fault *fault) {
        return fault_wrap(fault, r, "%s: document %u (line %u)", m->file, m->document, m->line);
}

static int keep_object(Manifests *m, const Manifest *manifest) {
        if (m->n == m->capacity) {
                size_t capacity = m->capacity ? m->capacity * 2 : 64;
                Manifest *items = reallocarray(m->items, capacity, sizeof *items);

                if (!items)
                        return -ENOMEM;
                m->items = items;
                m->capacity = capacity;
        }
        m->items[m->n] = *manifest;
        json_incref(manifest->object);
        m->n++;
        return 0;
}

/* Reports a member that is missing or no string. YAML makes a boolean of n and yes, and a number of
 * 1; what the user wrote is gone by now. */
static int no_text(const json_t *object, const char *member, const char *kind, Fault *fault) {
        const json_t *value = json_object_get(object, member);
        _cleanup_free_ char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;

        if (!text || json_is_string(value))
                return fault_set(fault, MANIFEST_E_MALFORMED, "%s%s is missing, must be a string", kind,
                                 member);
        return fault_set(fault, MANIFEST_E_MALFORMED, "%s%s is %s%.60s, must be a string: quote it", kind,
                         member, json_is_boolean(value) ? "the boolean " : "", text);
}

static int check_kind(const json_t *object, Fault *fault) {
        static const char *const required[] = {"apiVersion", "kind"};

        for (size_t i = 0; i < ELEMENTSOF(required); i++) {
                const char *text = tree_text(object, required[i], NULL);

                if (!text || !*text)
                        return no_text(object, required[i], "", fault);
        }
        if (!json_is_object(json_object_get(object, "metadata")))
                return fault_set(fault, MANIFEST_E_MALFORMED,
                                 "kind %s: metadata is missing, must be an object",
                                 tree_text(object, "kind", NULL));
        if (!tree_text(object, "metadata", "name", NULL) &&
            !tree_text(object, "metadata", "generateName", NULL))
                return fault_wrap(fault,
                                  no_text(json_object_get(object, "metadata"), "name", "metadata.", fault),
                                  "kind %s", tree_text(object, "kind", NULL));
        return 0;
}

/* A PodList and the like may omit the kind of its elements; in a v1 List each element has it. */
static int set_kind(const json_t *list, json_t *item) {
        const char *kind = tree_text(list, "kind", NULL), *version = tree_text(list, "apiVersion", NULL);
        size_t n = strlen(kind);

        if (strcmp(kind, "List") == 0 || json_object_get(item, "kind"))
                return 0;
        if (json_object_set_new(item, "kind", json_stringn(kind, n - strlen("List"))) < 0)
                return -ENOMEM;
        return version ? tree_default_text(item, "apiVersion", version) : 0;
}

static int take_object(Manifests *m, const Manifest *manifest, unsigned depth, Fault *fault);

static int take_list(Manifests *m, const Manifest *list, json_t *items, unsigned depth, Fault *fault) {
        size_t i;
        json_t *item;

        if (depth == MAX_LIST_DEPTH)
                return fault_set(fault, MANIFEST_E_MALFORMED, "List in List deeper than %d", MAX_LIST_DEPTH);
        json_array_foreach(items, i, item) {
                Manifest one = *list;
                int r;

                one.object = item;
                r = json_is_object(item) ? set_kind(list->object, item) : 0;
                if (r == 0)
                        r = take_object(m, &one, depth + 1, fault);
                if (r > 0)
                        return fault_wrap(fault, r, "items[%zu]", i);
                if (r < 0)
                        return r;
        }
        return 0;
}

static bool is_list(const char *kind) {
        size_t n = strlen(kind), suffix = strlen("List");

        return n >= suffix && strcmp(kind + n - suffix, "List") == 0;
}

static int take_object(Manifests *m, const Manifest *manifest, unsigned depth, Fault *fault) {
        const char *kind = tree_text(manifest->object, "kind", NULL);
        json_t *items = json_object_get(manifest->object, "items");
        int r;

        if (!json_is_object(manifest->object))
                return fault_set(fault, MANIFEST_E_MALFORMED,
                                 "not an object: a manifest has apiVersion, kind and metadata");
        if (kind && is_list(kind) && (json_is_array(items) || json_is_null(items)))
                return take_list(m, manifest, items, depth, fault);
        r = check_kind(manifest->object, fault);
        if (r != 0)
                return r;
        if (m->n == MANIFEST_MAX_OBJECTS)
                return fault_set(fault, MANIFEST_E_MALFORMED, "more than %d objects", MANIFEST_MAX_OBJECTS);
        return keep_object(m, manifest);
}

/* Turns jansson's error into a fault. Its messages are for programmers ("without JSON_ALLOW_NUL");
 * only the place at their end is kept. */
static void explain_error(const json_error_t *error, Fault *fault) {
        const char *near = strstr(error->text, " near ");

        switch (json_error_code(error)) {
        case json_error_null_character:
        case json_error_null_byte_in_key:
                (void) fault_set(fault, 0, "a string has a NUL character (\\u0000), must have none%s",
                                 near ? near : "");
                break;
        case json_error_numeric_overflow:
                (void) fault_set(fault, 0, "a number is too large, must be from %lld to %lld%s",
                                 (long long) INT64_MIN, (long long) INT64_MAX, near ? near : "");
                break;
        default:
                (void) fault_set(fault, 0, "%s", error->text);
        }
}

static int on_document(void *userdata, Str json, unsigned line, Fault *fault) {
        Loading *loading = userdata;
        _cleanup_json_ json_t *object = NULL;
        json_error_t error;
        Manifest manifest;
        int r;

        loading->document++;
        loading->told = true;
        object = json_loadb(json.data, json.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
        manifest = (Manifest){object, loading->file, loading->document, line};
        if (!object) {
                explain_error(&error, fault);
                return manifest_fault(&manifest, MANIFEST_E_MALFORMED, fault);
        }
        r = take_object(loading->manifests, &manifest, 0, fault);
        if (r > 0)
                return manifest_fault(&manifest, r, fault);
        loading->told = false;
        return r;
}

static int load_file(Manifests *m, const char *file, Fault *fault) {
        Loading loading = {.manifests = m, .file = file};
        _cleanup_buf_ Buf text = BUF_NULL;
        int r;

        r = file_read(file, MANIFEST_MAX_BYTES, &text);
        if (r == -ENOMEM || r == -EISDIR)
                return r;
        if (r < 0)
                return fault_set(fault, MANIFEST_E_MALFORMED, "%s: cannot be read: %s", file, strerror(-r));
        if (text_form_wrong(buf_str(&text)))
                return fault_set(fault, MANIFEST_E_MALFORMED, "%s: %s", file,
                                 text_form_wrong(buf_str(&text)));
        if (text.len > 0 &&
            /* YAML readers stop at a NUL and would skip the rest */
            memchr(text.data, '\0', text.len))
                return fault_set(fault, MANIFEST_E_MALFORMED,
                                 "%s: not text: there is a NUL byte at offset %zu", file,
                                 (size_t) ((const char *) memchr(text.data, '\0', text.len) - text.data));
        r = yaml_documents(buf_str(&text), on_document, &loading, fault);
        if (r <= 0 || loading.told)
                return r;
        return fault_wrap(fault, MANIFEST_E_MALFORMED, "%s: document %u", file, loading.document + 1);
}

static int is_manifest(const struct dirent *entry) {
        static const char *const suffixes[] = {".yaml", ".yml", ".json"};
        size_t n = strlen(entry->d_name);

        for (size_t i = 0; i < ELEMENTSOF(suffixes); i++)
                if (n > strlen(suffixes[i]) &&
                    strcmp(entry->d_name + n - strlen(suffixes[i]), suffixes[i]) == 0)
                        return 1;
        return 0;
}

static int load_entry(Manifests *m, const char *directory, const char *name, Fault *fault) {
        char **paths = reallocarray(m->paths, m->n_paths + 1, sizeof *paths);

        if (!paths)
                return -ENOMEM;
        m->paths = paths;
        if (asprintf(&paths[m->n_paths], "%s/%s", directory, name) < 0)
                return -ENOMEM;
        return load_file(m, paths[m->n_paths++], fault);
}

static int load_directory(Manifests *m, const char *directory, Fault *fault) {
        struct dirent **entries = NULL;
        int n = scandir(directory, &entries, is_manifest, alphasort), r = 0;

        if (n < 0)
                return fault_set(fault, MANIFEST_E_MALFORMED, "%s: cannot be read: %s", directory,
                                 strerror(errno));
        if (n == 0)
                r = fault_set(fault, MANIFEST_E_MALFORMED, "%s: has no .yaml, .yml or .json file", directory);
        for (int i = 0; i < n; i++) {
                if (r == 0)
                        r = load_entry(m, directory, entries[i]->d_name, fault);
                free(entries[i]);
        }
        free(entries);
        return r;
}

int manifests_load(Manifests *m, const char *file, Fault *fault) {
        int r = load_file(m, file, fault);

        return r == -EISDIR ? load_directory(m, file, fault) : r;
}
