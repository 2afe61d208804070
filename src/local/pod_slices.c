/* SPDX-License-Identifier: Apache-2.0 */
#include "local/pod_slices.h"

#include <errno.h>

#include "share/pod_grant.h"

/* Units of the pod over all its cards: the sum of the containers that stay, or, where none of them
 * has any, the largest init container. GrantSpec has the slices of a container side by side. */
static uint32_t pod_units(const GrantSpec *spec) {
        uint64_t stay = 0, init = 0, most = 0, n;

        for (size_t i = 0; i < spec->n_slices; i++) {
                const Slice *s = &spec->slices[i];

                if (s->kind != CONTAINER_INIT) {
                        stay += s->mem;
                        continue;
                }
                init = s->mem + (i > 0 && s[-1].container == s->container ? init : 0);
                most = init > most ? init : most;
        }
        n = stay > 0 ? stay : most;
        return n > UINT32_MAX ? UINT32_MAX : (uint32_t) n;
}

static size_t own_slices(const GrantSpec *spec, ContainerKind kind, uint32_t index, Slice *ret) {
        size_t n = 0;

        for (size_t i = 0; i < spec->n_slices; i++)
                if ((spec->slices[i].kind == CONTAINER_MAIN) == (kind == CONTAINER_MAIN) &&
                    spec->slices[i].container == index)
                        ret[n++] = spec->slices[i];
        return n;
}

static const PodContainer *container_of(const Pod *pod, ContainerKind kind, uint32_t index) {
        static const PodContainer none = {.index = 0};

        for (size_t i = 0; i < pod->n_containers; i++) {
                const PodContainer *c = &pod->containers[i];

                if ((c->kind == CONTAINER_MAIN) == (kind == CONTAINER_MAIN) && c->index == index)
                        return c;
        }
        return &none;
}

static void read_compute(const Node *node, const PodContainer *c, PodSlices *s) {
        CardCompute configured = compute_configured(COMPUTE_NATIVE);
        Fault own = FAULT_NULL, theirs = FAULT_NULL;

        (void) compute_request(c, &s->request, &own);
        if (compute_update(&configured, &node->annotations, COMPUTE_NATIVE, &theirs) != 0)
                (void) fault_set(&s->odd, 0, "%s%sits node's %s", own.text, own.text[0] ? "; " : "",
                                 theirs.text);
        else
                s->odd = own;
        s->compute = compute_for_mode(&configured, s->mode);
}

static int text_of(const json_t *object, Arena *arena, Str *ret) {
        _cleanup_free_ char *text = json_dumps(object, JSON_COMPACT);

        *ret = text ? arena_str(arena, str_from(text)) : (Str){0};
        return ret->data ? 0 : -ENOMEM;
}

static int read_node(const Node *node, Arena *arena, PodSlices *s) {
        Str unit = str_is_empty(node->annotations.unit_in_force) ? node->annotations.unit
                                                                 : node->annotations.unit_in_force;

        s->unit = MEMORY_UNIT_GIB;
        (void) memory_unit_parse(unit, &s->unit); /* stays GiB when it does not decode */
        s->mode = share_mode_from_label(
                str_is_empty(node->annotations.mode_in_force) ? node->mode : node->annotations.mode_in_force);
        return card_info_parse(node->annotations.cards, arena, &s->cards, &s->n_cards, NULL) < 0 ? -ENOMEM
                                                                                                 : 0;
}

int pod_slices_read(const BoundPod *place, ContainerKind kind, uint32_t index, Arena *arena, PodSlices *ret) {
        Str pod_text, node_text;
        GrantSpec spec;
        Node node;
        Pod pod;
        int r;

        *ret = (PodSlices){.n = 0};
        r = text_of(place->pod, arena, &pod_text);
        if (r == 0)
                r = text_of(place->node, arena, &node_text);
        if (r == 0)
                r = pod_decode(pod_text, arena, &pod, NULL);
        if (r == 0)
                r = node_decode(node_text, arena, &node, NULL);
        if (r == 0)
                r = pod_grant_spec(&pod, arena, &spec, NULL);
        if (r != 0)
                return r < 0 ? r : 0;
        ret->own = arena_new(arena, Slice, spec.n_slices + 1);
        if (!ret->own)
                return -ENOMEM;
        ret->pod_units = pod_units(&spec);
        ret->not_isolated = container_of(&pod, kind, index)->not_isolated;
        r = read_node(&node, arena, ret);
        if (r != 0)
                return r;
        read_compute(&node, container_of(&pod, kind, index), ret);
        ret->n = own_slices(&spec, kind, index, ret->own);
        return 0;
}

const CardInfo *pod_slices_card(const PodSlices *s, uint32_t index) {
        for (size_t i = 0; i < s->n_cards; i++)
                if (s->cards[i].index == index)
                        return &s->cards[i];
        return NULL;
}
