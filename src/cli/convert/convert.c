/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/convert/convert.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/options.h"
#include "base/quantity.h"
#include "cli/convert/foreign_keys.h"
#include "share/demand.h"
#include "share/pod_key_names.h"
#include "share/refusal_format.h"
#include "share/request.h"
#include "wire/annotation.h"

enum { CORE_STEP = 5, CORE_WHOLE = 100, PERCENT = 100, CARDS_MAX = 64, UNITS_MAX = 1000000 };

/* BYTES_MIN: amounts of memory from here on, such as 3Gi, are bytes, because no card has a TiB. */
enum { MIB = 1 << 20, BYTES_MIN = 1 << 20 };

/* The resources of one project. memory: MiB on each card; percent: of each card's memory; core:
 * percent of each card's compute. */
typedef struct Family {
        const char *count, *memory, *percent, *core, *priority;
} Family;

static const Family families[] = {
        {"nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores",
         "nvidia.com/priority"},
        {"nvidia.com/vgpu-number", "nvidia.com/vgpu-memory", NULL, "nvidia.com/vgpu-cores", NULL},
};

/* The names above, without nvidia.com/. */
#define PREFIX "nvidia.com/"
static const char *const known[] = {"gpu",      "gpumem",      "gpumem-percentage", "gpucores",
                                    "priority", "vgpu-number", "vgpu-memory",       "vgpu-cores"};

/* What a container requests per card, in Aliquot's units. */
typedef struct Ask {
        json_t *container;
        const char *name;
        ContainerKind kind;
        const Family *family; /* NULL: it requests nothing of these projects */
        uint64_t cards, units, core;
        uint64_t mib;     /* MiB that it requested of each card */
        uint64_t percent; /* the same as a percentage; 0: it was requested in MiB */
} Ask;

typedef struct Conversion {
        const ConvertOptions *options;
        ConvertNote note;
        void *userdata;
        ConvertMix *mix;    /* gets `share` when the pod is written */
        ConvertShare share; /* of a card, by one pod; 0 units: not known, or a note tells of it */
        const char *kind;   /* kind of the enclosing object, or "" */
        const char *pod;
        Buf changes; /* notes on what changes in this pod, each ending in NUL */
        Buf path;    /* path of the current value */
        bool told;   /* a note on this pod says that it is kept as it is */
        bool partly; /* something of this pod may not be as before */
} Conversion;

/* Adds a note that is given only if the pod is written. */
static _printf_(2, 3) void tell(Conversion *c, const char *format, ...) {
        char text[512];
        va_list arguments;

        va_start(arguments, format);
        (void) vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        buf_append(&c->changes, text, strlen(text) + 1);
}

static void give_note(const Conversion *c, const char *kind, const char *text) {
        char object[512];

        (void) snprintf(object, sizeof object, "%s %s", kind, c->pod[0] ? c->pod : "without a name");
        c->note(c->userdata, object, text);
}

static void tell_changes(const Conversion *c) {
        for (size_t at = 0; at < c->changes.len; at += strlen(c->changes.data + at) + 1)
                give_note(c, "pod", c->changes.data + at);
}

/* Gives a note that says why a pod cannot be converted. Returns CONVERT_E_LEFT. */
static _printf_(2, 3) int keep(const Conversion *c, const char *format, ...) {
        static const char end[] = "; the pod is kept as it is";
        char text[512 + sizeof end];
        va_list arguments;

        va_start(arguments, format);
        (void) vsnprintf(text, sizeof text - sizeof end, format, arguments);
        va_end(arguments);
        (void) memcpy(text + strlen(text), end, sizeof end);
        give_note(c, "pod", text);
        return CONVERT_E_LEFT;
}

/* Returns the worse of two results: -ENOMEM, then CONVERT_E_LEFT, then 0. */
static int worse_of(int a, int b) {
        return a < 0 || b == 0 ? a : b;
}

/* ---- reading ---- */

/* A resource of the container, from its limits or else its requests, as the extenders of both
 * projects read it. Returns 0, or CONVERT_E_LEFT with a note where it is no whole number. */
static int read_amount(const Conversion *c, const Ask *ask, const char *resource, bool *ret_present,
                       uint64_t *ret) {
        static const char *const places[] = {"limits", "requests"};
        const json_t *resources = json_object_get(ask->container, "resources"), *value = NULL;
        char number[24];
        const char *text = number;

        *ret_present = false;
        *ret = 0;
        for (size_t i = 0; i < ELEMENTSOF(places) && resource && !value; i++)
                value = json_object_get(json_object_get(resources, places[i]), resource);
        if (!value)
                return 0;
        *ret_present = true;
        (void) snprintf(number, sizeof number, "%lld", (long long) json_integer_value(value));
        if (json_is_string(value))
                text = json_string_value(value);
        if ((!json_is_integer(value) && !json_is_string(value)) || quantity_parse(str_from(text), ret) != 0)
                return keep(c, "container %s: %s is not a whole number", ask->name, resource);
        return 0;
}

/* Reports a name with a typo, or of something else under the prefix. */
static int keep_unknown(const Conversion *c, const Ask *ask, const char *resource) {
        const char *meant =
                options_closest(resource + strlen(PREFIX), known, ELEMENTSOF(known), sizeof *known);

        if (!meant)
                return keep(c, "container %s: %s has no equal here", ask->name, resource);
        return keep(c, "container %s: %s is not known, " PREFIX "%s was probably meant", ask->name, resource,
                    meant);
}

static bool is_known(const char *resource) {
        bool is = strncmp(resource, PREFIX, strlen(PREFIX)) != 0;

        for (size_t i = 0; i < ELEMENTSOF(known) && !is; i++)
                is = strcmp(resource + strlen(PREFIX), known[i]) == 0;
        return is;
}

/* Checks the names in a list. told: amounts with names that were checked before, or NULL. */
static int check_list(const Conversion *c, const Ask *ask, json_t *amounts, const json_t *told) {
        const char *key;
        json_t *value;
        int r = 0;

        json_object_foreach(amounts, key, value) {
                if (!is_known(key) && !json_object_get(told, key))
                        r = keep_unknown(c, ask, key);
        }
        return r;
}

/* Without this check, a request under an unknown name would be dropped without a note. */
static int check_names(const Conversion *c, const Ask *ask) {
        json_t *resources = json_object_get(ask->container, "resources");
        json_t *limits = json_object_get(resources, "limits");
        int r = check_list(c, ask, limits, NULL);

        return worse_of(r, check_list(c, ask, json_object_get(resources, "requests"), limits));
}

/* Sets what the container wants of each card: ask->mib, and ask->percent where it asked for that. A
 * container that names no memory has all of its cards: 100 percent. */
static int read_memory(const Conversion *c, Ask *ask) {
        uint64_t card = c->options->card_mib;
        bool has_memory, has_percent;
        int r = read_amount(c, ask, ask->family->memory, &has_memory, &ask->mib);

        if (r == 0)
                r = read_amount(c, ask, ask->family->percent, &has_percent, &ask->percent);
        if (r == 0 && ask->mib >= BYTES_MIN)
                return keep(c, "container %s: %s is in MiB; write %llu for %llu bytes", ask->name,
                            ask->family->memory, (unsigned long long) (ask->mib + MIB - 1) / MIB,
                            (unsigned long long) ask->mib);
        if (r == 0 && card > 0 && ask->mib > card)
                return keep(c, "container %s: %s is %llu, and a card of --card has %llu MiB", ask->name,
                            ask->family->memory, (unsigned long long) ask->mib, (unsigned long long) card);
        if (r != 0 || ask->mib > 0) {
                ask->percent = 0; /* HAMi reads it only where no memory is given */
                return r;
        }
        if (ask->percent > PERCENT)
                return keep(c, "container %s: %s is over 100", ask->name, ask->family->percent);
        ask->percent = ask->percent ? ask->percent : PERCENT;
        if (card == 0)
                return keep(c, "container %s: asks for %s of a card, and --card does not give its size",
                            ask->name, ask->percent < PERCENT ? "a percentage" : "all");
        ask->mib = card * ask->percent / PERCENT;
        return 0;
}

static uint64_t whole_units(const Conversion *c) {
        return c->options->card_mib / c->options->unit_mib;
}

/* Returns the units of the smallest slice that holds the amount. Of a percentage, it is the largest
 * slice within it, so that percentages that filled a card fill it here, too. Without --card, a unit
 * is that of --unit. With it, the card is divided evenly, so each unit is a little larger. */
static uint64_t units_of(const Conversion *c, const Ask *ask) {
        uint64_t unit = c->options->unit_mib, card = c->options->card_mib, whole = whole_units(c), units;

        if (card == 0)
                return ask->mib / unit + (ask->mib % unit != 0);
        units = ask->percent > 0 ? whole * ask->percent / PERCENT : (ask->mib * whole + card - 1) / card;
        return units > 0 ? units : 1;
}

static void tell_units(Conversion *c, const Ask *ask) {
        uint64_t slice = ask->units * c->options->card_mib / (whole_units(c) ? whole_units(c) : 1);

        if (c->options->card_mib > 0 && slice != ask->mib)
                tell(c, "container %s: %llu MiB become %llu of a card's %llu units, %llu MiB", ask->name,
                     (unsigned long long) ask->mib, (unsigned long long) ask->units,
                     (unsigned long long) whole_units(c), (unsigned long long) slice);
        if (c->options->card_mib > 0 || ask->units * c->options->unit_mib == ask->mib)
                return;
        tell(c,
             "container %s: %llu MiB become %llu units of %u MiB; with --card it is known whether as many "
             "fit on a card as before",
             ask->name, (unsigned long long) ask->mib, (unsigned long long) ask->units, c->options->unit_mib);
        c->partly = true;
}

static int read_units(Conversion *c, Ask *ask) {
        int r = read_memory(c, ask);

        if (r != 0)
                return r;
        if (c->options->card_mib > 0 && whole_units(c) == 0)
                return keep(c, "container %s: a card of %llu MiB has no unit of %u MiB", ask->name,
                            (unsigned long long) c->options->card_mib, c->options->unit_mib);
        ask->units = units_of(c, ask);
        if (ask->units == 0 || ask->units * ask->cards > UNITS_MAX)
                return keep(c, "container %s: %llu MiB is no amount of units of %u MiB", ask->name,
                            (unsigned long long) ask->mib, c->options->unit_mib);
        tell_units(c, ask);
        return 0;
}

/* Reads compute, rounded down as memory in percent is: what filled a card together still fits on
 * it. */
static int read_core(Conversion *c, Ask *ask) {
        bool present;
        uint64_t core;
        int r = read_amount(c, ask, ask->family->core, &present, &core);

        if (r != 0 || core == 0)
                return r;
        if (core > CORE_WHOLE)
                return keep(c, "container %s: %s is over 100", ask->name, ask->family->core);
        if (core == CORE_WHOLE && ask->units == whole_units(c))
                return 0; /* a pod that has all of a card's memory has the card alone */
        ask->core = core < CORE_STEP ? CORE_STEP : core / CORE_STEP * CORE_STEP;
        if (ask->core != core)
                tell(c, "container %s: %llu percent of compute become %llu, in steps of %d", ask->name,
                     (unsigned long long) core, (unsigned long long) ask->core, CORE_STEP);
        if (ask->core > core)
                c->partly = true;
        return 0;
}

/* The first name by which the container asks for their resources. */
static const char *asked_name(const Ask *ask) {
        const Family *f = ask->family;
        const char *const names[] = {f->memory, f->percent, f->count, f->core};
        const json_t *resources = json_object_get(ask->container, "resources");

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (names[i] && (json_object_get(json_object_get(resources, "limits"), names[i]) ||
                                 json_object_get(json_object_get(resources, "requests"), names[i])))
                        return names[i];
        return f->memory;
}

/* Refuses a pod that requests our resources as well: a pod has one number of cards, so the label
 * would change what they mean. */
static int check_ours(const Conversion *c, const json_t *pod, const Ask *asks, size_t n) {
        static const char *const places[] = {"limits", "requests"};
        static const char *const lists[] = {"initContainers", "containers"};
        const json_t *spec = json_object_get(pod, "spec"), *one;
        size_t i;

        if (json_object_get(json_object_get(json_object_get(pod, "metadata"), "labels"), LABEL_POD_COUNT))
                return keep(c, "it has our label " LABEL_POD_COUNT ", and container %s asks for %s",
                            asks[n - 1].name, asked_name(&asks[n - 1]));
        for (size_t k = 0; k < ELEMENTSOF(lists) * ELEMENTSOF(places); k++)
                json_array_foreach(json_object_get(spec, lists[k / 2]), i, one) {
                        json_t *amounts = json_object_get(json_object_get(one, "resources"), places[k % 2]);
                        const char *name = json_string_value(json_object_get(one, "name")), *key;
                        json_t *value;

                        json_object_foreach(amounts, key, value) {
                                if (strncmp(key, RESOURCE_BEGINNING, strlen(RESOURCE_BEGINNING)) == 0)
                                        return keep(c, "container %s asks for %s, and container %s for %s",
                                                    name ? name : "?", key, asks[n - 1].name,
                                                    asked_name(&asks[n - 1]));
                        }
                }
        return 0;
}

static ContainerKind kind_of(const json_t *container, bool init) {
        const char *policy = json_string_value(json_object_get(container, "restartPolicy"));

        if (!init)
                return CONTAINER_MAIN;
        return policy && strcmp(policy, "Always") == 0 ? CONTAINER_SIDECAR : CONTAINER_INIT;
}

/* Sets ask->family to NULL when the container asks for nothing of theirs. */
static int read_container(Conversion *c, json_t *container, bool init, Ask *ask) {
        const char *name = json_string_value(json_object_get(container, "name"));
        int r;

        *ask = (Ask){.container = container, .name = name ? name : "?", .kind = kind_of(container, init)};
        r = check_names(c, ask);
        for (size_t i = 0; i < ELEMENTSOF(families) && !ask->family && r == 0; i++) {
                const char *const names[] = {families[i].count, families[i].memory, families[i].percent,
                                             families[i].core};
                bool any = false;

                for (size_t j = 0; j < ELEMENTSOF(names) && r == 0; j++) {
                        bool present;
                        uint64_t amount;

                        r = read_amount(c, ask, names[j], &present, &amount);
                        any |= present;
                        if (j == 0)
                                ask->cards = present ? amount : 1;
                }
                ask->family = any ? &families[i] : NULL;
        }
        if (r != 0 || !ask->family || ask->cards == 0) {
                ask->family = r == 0 && ask->cards == 0 ? NULL : ask->family;
                return r;
        }
        if (ask->cards > CARDS_MAX)
                return keep(c, "container %s: %s is over %d", ask->name, ask->family->count, CARDS_MAX);
        r = read_units(c, ask);
        return r != 0 ? r : read_core(c, ask);
}

/* ---- what a pod of ours can request ---- */

static int check_pod(const Conversion *c, const Ask *asks, size_t n) {
        const Ask *first = &asks[0];
        Demand core = {0};

        for (size_t i = 0; i < n; i++) {
                demand_add(&core, asks[i].kind, (uint32_t) asks[i].core);
                if (asks[i].cards != first->cards)
                        return keep(
                                c,
                                "containers %s and %s ask for different numbers of cards; here a pod has one",
                                first->name, asks[i].name);
                if ((asks[i].core > 0) != (first->core > 0))
                        return keep(
                                c, "of containers %s and %s one asks for compute, and the other one does not",
                                first->name, asks[i].name);
        }
        if (demand_total(&core) > 0 && first->cards > 1)
                return keep(c, "compute of several cards cannot be asked for; remove %s, or ask for one card",
                            first->family->core);
        if (demand_total(&core) > CORE_WHOLE)
                return keep(c, "its containers ask for %llu percent of compute together, must be at most 100",
                            (unsigned long long) demand_total(&core));
        return 0;
}

/* How many pods with this share of a card fit on one. */
static uint64_t number_of(uint64_t card, uint64_t share) {
        return share > 0 ? card / share : UINT64_MAX;
}

/* Compares how many such pods fitted on a card before and fit now. The containers of a pod share
 * their cards here; in HAMi each may have its own. */
static int check_fit(Conversion *c, const Ask *asks, size_t n) {
        Demand mib = {0}, percent = {0}, units = {0};
        uint64_t card = c->options->card_mib, whole = whole_units(c), before, now;
        bool in_percent = true;

        for (size_t i = 0; i < n; i++) {
                demand_add(&mib, asks[i].kind, (uint32_t) asks[i].mib);
                demand_add(&percent, asks[i].kind, (uint32_t) asks[i].percent);
                demand_add(&units, asks[i].kind, (uint32_t) asks[i].units);
                in_percent &= asks[i].percent > 0;
        }
        if (card == 0)
                return 0;
        if (demand_total(&units) > whole)
                return keep(c,
                            "its containers become %llu units together, and a card of %llu MiB has %llu, "
                            "which the containers of a pod share",
                            (unsigned long long) demand_total(&units), (unsigned long long) card,
                            (unsigned long long) whole);
        before =
                in_percent ? number_of(PERCENT, demand_total(&percent)) : number_of(card, demand_total(&mib));
        now = number_of(whole, demand_total(&units));
        if (now >= before) {
                c->share = (ConvertShare){(uint32_t) demand_total(&units),
                                          in_percent ? card * demand_total(&percent)
                                                     : demand_total(&mib) * PERCENT};
                return 0;
        }
        tell(c, "%llu such pods fitted on a card of %llu MiB, now %llu fit%s", (unsigned long long) before,
             (unsigned long long) card, (unsigned long long) now, now == 1 ? "s" : "");
        c->partly = true;
        return 0;
}

/* Tells which keys of the converted pod are probably misspelt. They are left as they are. */
static int tell_misspelt(Conversion *c, Str pod, Arena *arena) {
        _cleanup_buf_ Buf lines = BUF_NULL;
        Str rest;

        if (pod_key_names_check(pod, arena, &lines) < 0)
                return -ENOMEM;
        rest = buf_str(&lines);
        while (!str_is_empty(rest)) {
                Str line = str_split(&rest, '\n');

                tell(c, STR_FMT, STR_ARG(line));
                c->partly = true;
        }
        return 0;
}

/* Checks the converted pod by the rules of the scheduler and the webhook. */
static int check_written(Conversion *c, const json_t *pod) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        json_t *labels = json_object_get(json_object_get(pod, "metadata"), "labels");
        json_t *annotations = json_object_get(json_object_get(pod, "metadata"), "annotations");
        json_t *object = json_pack("{s:{s:s, s:s, s:O*, s:O*}, s:O}", "metadata", "name", "pod", "namespace",
                                   "default", "labels", labels, "annotations", annotations, "spec",
                                   json_object_get(pod, "spec"));
        _cleanup_free_ char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
        _cleanup_buf_ Buf why = BUF_NULL;
        Fault fault = FAULT_NULL;
        Refusal refusal = {0};
        Request request;
        Pod decoded;
        int r;

        json_decref(object);
        r = text ? pod_decode(str_from(text), &arena, &decoded, &fault) : -ENOMEM;
        if (r > 0)
                return keep(c, "%s", fault.text);
        if (r == 0)
                r = request_from_pod(&decoded, &arena, &request, &refusal);
        if (r != REQUEST_E_REFUSED)
                return r < 0 ? r : tell_misspelt(c, str_from(text), &arena);
        refusal_format(&refusal, &why);
        return buf_result(&why) < 0 ? -ENOMEM : keep(c, "%s", why.data);
}

/* ---- writing ---- */

/* Returns the object below a member, made where there is none. NULL when out of memory or when the
 * member is something else. */
static json_t *make_object(json_t *from, const char *key) {
        json_t *value = json_object_get(from, key);

        if (!value || json_is_null(value)) {
                value = json_object();
                if (json_object_set_new(from, key, value) < 0)
                        return NULL;
        }
        return json_is_object(value) ? value : NULL;
}

static void remove_names(json_t *amounts, const Family *family) {
        const char *const names[] = {family->count, family->memory, family->percent, family->core,
                                     family->priority};

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (names[i])
                        (void) json_object_del(amounts, names[i]);
}

static int write_container(Conversion *c, const Ask *ask) {
        json_t *resources = make_object(ask->container, "resources");
        json_t *limits = resources ? make_object(resources, "limits") : NULL;
        json_t *requests = json_object_get(resources, "requests");

        if (!limits)
                return -ENOMEM;
        if (ask->family->priority && (json_object_get(limits, ask->family->priority) ||
                                      json_object_get(requests, ask->family->priority)))
                tell(c,
                     "container %s: %s is removed; " ENVIRONMENT_HIGH_PRIORITY
                     " in env gives a high priority",
                     ask->name, ask->family->priority);
        remove_names(limits, ask->family);
        remove_names(requests, ask->family);
        if (requests && json_object_size(requests) == 0)
                (void) json_object_del(resources, "requests");
        if (json_object_set_new(limits, RESOURCE_GPU_MEM,
                                json_integer((json_int_t) ask->units * (json_int_t) ask->cards)) < 0)
                return -ENOMEM;
        if (ask->core > 0 &&
            json_object_set_new(limits, RESOURCE_GPU_CORE, json_integer((json_int_t) ask->core)) < 0)
                return -ENOMEM;
        return 0;
}

/* Those that have no effect here. */
static void remove_annotations(Conversion *c, json_t *annotations) {
        bool policy = json_object_del(annotations, "hami.io/gpu-scheduler-policy") == 0;

        policy |= json_object_del(annotations, "hami.io/node-scheduler-policy") == 0;
        if (policy)
                tell(c, "the scheduler policies of hami.io are removed; the node's label " LABEL_PLACEMENT
                        " decides");
        if (json_object_del(annotations, "nvidia.com/vgpu-mode") == 0)
                tell(c,
                     "annotation nvidia.com/vgpu-mode is removed; a slice is always isolated as its node's "
                     "mode says");
}

static int write_pod(Conversion *c, json_t *pod, const Ask *asks, size_t n) {
        json_t *spec = json_object_get(pod, "spec"), *metadata, *labels;
        const char *scheduler = json_string_value(json_object_get(spec, "schedulerName"));
        char count[24];
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++)
                r = write_container(c, &asks[i]);
        if (r != 0)
                return r;
        if (asks[0].cards > 1) {
                (void) snprintf(count, sizeof count, "%llu", (unsigned long long) asks[0].cards);
                metadata = make_object(pod, "metadata");
                labels = metadata ? make_object(metadata, "labels") : NULL;
                if (!labels || json_object_set_new(labels, LABEL_POD_COUNT, json_string(count)) < 0)
                        return -ENOMEM;
        }
        if (scheduler && strcmp(scheduler, "default-scheduler") != 0) {
                tell(c, "schedulerName %s is removed; the webhook sets ours", scheduler);
                (void) json_object_del(spec, "schedulerName");
        }
        remove_annotations(c, json_object_get(json_object_get(pod, "metadata"), "annotations"));
        tell(c, "needs a node with the label " LABEL_SCHEDULE "=%s",
             asks[0].core > 0
                     ? "core_mem"
                     : "cgpu or core_mem; of core_mem one without pods that ask for compute, or with "
                       "the annotation " ANNOTATION_ALLOW_MIXED "=true");
        return 0;
}

/* ---- the walk ---- */

/* Checks annotations that change what their resources mean, or that have no equal. Those for card
 * type and UUID are obeyed here as they are. */
static int check_annotations(Conversion *c, const json_t *pod) {
        const json_t *annotations = json_object_get(json_object_get(pod, "metadata"), "annotations");
        const char *mode = json_string_value(json_object_get(annotations, "nvidia.com/vgpu-mode"));

        if (mode && strcmp(mode, "mig") == 0)
                return keep(c, "annotation nvidia.com/vgpu-mode asks for MIG, which is not served here");
        return 0;
}

/* Converts the pod, which is left half written when it is to be kept. */
static int try_pod(Conversion *c, json_t *pod) {
        static const char *const lists[] = {"initContainers", "containers"};
        json_t *spec = json_object_get(pod, "spec");
        _cleanup_free_ Ask *asks = NULL;
        size_t n = 0, i;
        json_t *container;
        int r = 0;

        asks = calloc(json_array_size(json_object_get(spec, "containers")) +
                              json_array_size(json_object_get(spec, "initContainers")) + 1,
                      sizeof *asks);
        if (!asks)
                return -ENOMEM;
        for (size_t list = 0; list < ELEMENTSOF(lists); list++)
                json_array_foreach(json_object_get(spec, lists[list]), i, container) {
                        int q = read_container(c, container, list == 0, &asks[n]);

                        r = worse_of(r, q);
                        n += asks[n].family != NULL;
                }
        if (r != 0 || n == 0)
                return r;
        r = check_annotations(c, pod);
        if (r == 0)
                r = check_ours(c, pod, asks, n);
        if (r == 0)
                r = check_pod(c, asks, n);
        if (r == 0)
                r = check_fit(c, asks, n);
        if (r == 0)
                r = write_pod(c, pod, asks, n);
        return r == 0 ? check_written(c, pod) : r;
}

/* Converts one pod. Returns 0; CONVERT_E_LEFT when it was left unconverted, or converted with a
 * change of behaviour that a note reports; or -ENOMEM. */
static int convert_pod(Conversion *c, json_t *pod) {
        json_t *copy = json_deep_copy(pod);
        int r;

        buf_clear(&c->changes);
        c->partly = false;
        c->share = (ConvertShare){0};
        r = copy ? try_pod(c, copy) : -ENOMEM;
        if (r == 0)
                r = buf_result(&c->changes);
        if (r == 0 && c->changes.len > 0) {
                tell_changes(c);
                r = json_object_update(pod, copy) < 0 ? -ENOMEM : 0;
                if (r == 0 && c->mix && c->share.units > 0)
                        r = convert_mix_add(c->mix, c->share.units, c->share.before);
        }
        json_decref(copy);
        c->told = r == CONVERT_E_LEFT;
        return r == 0 && c->partly ? CONVERT_E_LEFT : r;
}

static const char *name_of(const json_t *object) {
        return json_string_value(json_object_get(json_object_get(object, "metadata"), "name"));
}

/* Reports a name that another system reads: it is left, and means nothing to Aliquot. */
static int tell_left(Conversion *c, const char *what, const char *system) {
        char text[512];

        (void) snprintf(text, sizeof text, "%.300s: %.100s is of %s, has no equal here, and is left as it is",
                        c->path.len > 0 ? c->path.data : "", what, system);
        give_note(c, c->kind[0] ? c->kind : "object", text);
        return CONVERT_E_LEFT;
}

static int check_member(Conversion *c, const char *parent, const char *key, const json_t *value) {
        const char *system = foreign_key_system(key), *what = key;

        if (!system)
                system = foreign_key_of_member(parent, key, value, &what);
        if (system)
                return tell_left(c, what, system);
        if (!json_is_string(value))
                return 0;
        system = foreign_key_of_value(json_string_value(value));
        return system ? tell_left(c, json_string_value(value), system) : 0;
}

static int walk_value(Conversion *c, json_t *value, const char *parent);

static int walk_member(Conversion *c, const char *parent, const char *key, json_t *member) {
        size_t before = c->path.len;
        int r;

        if (strpbrk(key, "./"))
                buf_appendf(&c->path, "[%.200s]", key);
        else
                buf_appendf(&c->path, "%s%.200s", before > 0 ? "." : "", key);
        r = c->told ? 0 : check_member(c, parent, key, member);
        r = worse_of(r, walk_value(c, member, key));
        c->path.len = before;
        return r;
}

static int walk_item(Conversion *c, const char *parent, size_t i, json_t *item) {
        const char *system =
                !c->told && json_is_string(item) ? foreign_key_of_value(json_string_value(item)) : NULL;
        size_t before = c->path.len;
        int r;

        buf_appendf(&c->path, "[%zu]", i);
        r = system ? tell_left(c, json_string_value(item), system) : 0;
        r = worse_of(r, walk_value(c, item, parent));
        c->path.len = before;
        return r;
}

/* Sets name and kind for notes. A template without a name has that of the enclosing object. */
static void enter_object(Conversion *c, const Conversion *outer, const json_t *value) {
        const char *name = name_of(value), *kind = json_string_value(json_object_get(value, "kind"));

        c->pod = name ? name : outer->pod;
        c->kind = kind ? kind : outer->kind;
}

static int walk_value(Conversion *c, json_t *value, const char *parent) {
        const Conversion outer = *c;
        const char *key;
        json_t *member;
        void *next;
        size_t i;
        int r = 0;

        enter_object(c, &outer, value);
        if (json_is_array(json_object_get(json_object_get(value, "spec"), "containers")))
                r = convert_pod(c, value);
        enter_object(c, &outer, value); /* the texts of a converted pod are new ones */
        json_array_foreach(value, i, member) r = worse_of(r, walk_item(c, parent, i, member));
        json_object_foreach_safe(value, next, key, member) r =
                worse_of(r, walk_member(c, parent, key, member));
        c->pod = outer.pod;
        c->kind = outer.kind;
        c->told = outer.told;
        return r;
}

int convert_document(json_t *document, const ConvertOptions *options, ConvertMix *mix, ConvertNote note,
                     void *userdata) {
        Conversion c = {
                .options = options, .mix = mix, .note = note, .userdata = userdata, .kind = "", .pod = ""};
        int r = walk_value(&c, document, "");

        if (r >= 0 && buf_result(&c.path) < 0)
                r = -ENOMEM;
        buf_done(&c.changes);
        buf_done(&c.path);
        return r;
}
