/* SPDX-License-Identifier: Apache-2.0 */

/* aliquot-resize: gives a slice of `aliquot run` another size, while its command runs. The size is
 * written only to the slice's pages, so the next run and `aliquot smi` count the new one. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"
#include "cli/run/size_options.h"
#include "slicedir/slicedir.h"

enum { EXIT_NO = 1, EXIT_BROKEN = 3, RESIZE_E_NO = 1 };

typedef struct Options {
        SizeOptions size; /* must be the first member (size_options.h) */
        const char *slicedir;
} Options;

static const Option option_list[] = {
        SIZE_OPTIONS("percent of each card's compute, in steps of 5: 40 or 40%"),
        {"slices", "DIR", "where slices are counted (default " SLICEDIR_DEFAULT ")",
         OPTION_TO_TEXT(Options, slicedir)},
};

static const OptionsTable table = {
        .program = "aliquot resize",
        .usage = "NAME [--gpu-mem N] [--gpu-core P] [OPTION...]",
        .about = "Gives a slice of `aliquot run` another size, while its command runs. NAME is the slice's, "
                 "as "
                 "`aliquot smi` shows it. What is not given stays. A slice that holds more than its new size "
                 "keeps it, and gets no more.",
        .end = "Exit status: 0 done, 1 no such slice or no room, 2 wrong usage, 3 something broke.",
        .options = option_list,
        .n = ELEMENTSOF(option_list),
        .takes_words = true,
};

/* Parses the options, which may stand before NAME and after it. */
static int read_options(int argc, char **argv, Options *o, const char **ret_name) {
        char **words, **more;
        int r = options_parse(&table, argc, argv, o, &words);

        if (r != OPTIONS_GO)
                return r;
        if (!words[0])
                return options_wrong(&table, "NAME is missing");
        *ret_name = words[0];
        r = options_parse(&table, (int) (argv + argc - words), words, o, &more);
        if (r != OPTIONS_GO)
                return r;
        if (more[0])
                return options_wrong(&table, "%s: unexpected argument, NAME is %s already", more[0],
                                     *ret_name);
        if (!size_options_has_mem(&o->size) && !o->size.has_core)
                return options_wrong(&table, "--gpu-mem or --gpu-core is missing");
        if (!size_options_has_mem(&o->size) && o->size.unit)
                return options_wrong(&table, "--gpu-mem-unit goes with --gpu-mem");
        return size_options_has_mem(&o->size) ? size_options_finish(&table, &o->size) : OPTIONS_GO;
}

/* ---- one slice ---- */

typedef struct Search {
        const char *id;
        SlicedirEntry *ret;
        bool found;
} Search;

static int look_at_slice(void *userdata, const SlicedirEntry *slice) {
        Search *s = userdata;

        if (strcmp(slice->id, s->id) != 0)
                return 0;
        *s->ret = *slice;
        s->found = true;
        return 1;
}

static int find_slice(Slicedir *d, const char *name, SlicedirEntry *ret, Fault *fault) {
        Search s = {.id = name, .ret = ret};
        int r = slicedir_each(d, look_at_slice, &s);

        if (r < 0)
                return fault_set(fault, r, "cannot read the slice directory %s: %s", d->path, strerror(-r));
        if (!s.found)
                return fault_set(fault, RESIZE_E_NO, "%s: no such slice in %s; `aliquot smi` lists them",
                                 name, d->path);
        if (strncmp(ret->owner, SLICEDIR_AGENT, strlen(SLICEDIR_AGENT)) == 0)
                return fault_set(fault, RESIZE_E_NO,
                                 "%s: a slice of the node agent; only it changes its size", name);
        if (ret->n_cards == 0)
                return fault_set(fault, RESIZE_E_NO, "%s: its pages cannot be read", name);
        return 0;
}

/* Reads the cards of the slice, with what other slices reserve of them. A user without root has a
 * slice directory of its own, and root's slices count as well. */
static int read_cards(const Options *o, Slicedir *d, const SlicedirEntry *slice, HostCards *ret) {
        _cleanup_(slicedir_done) Slicedir roots = SLICEDIR_NULL;
        int r;

        *ret = (HostCards){.n = slice->n_cards};
        for (uint32_t i = 0; i < slice->n_cards; i++) {
                const SliceLimits *l = &slice->cards[i].limits;

                ret->cards[i].index = l->card;
                ret->cards[i].bytes = l->card_bytes;
                (void) snprintf(ret->cards[i].uuid, SLICE_UUID, "%.*s", SLICE_UUID - 1, l->uuid);
        }
        r = host_cards_count_slices(ret, d, slice->id);
        if (r == 0 && !o->slicedir && geteuid() != 0 &&
            slicedir_open(&roots, SLICEDIR_DEFAULT, false, NULL) == 0)
                r = host_cards_count_slices(ret, &roots, NULL);
        return r;
}

/* Refuses to add or remove a compute limit. Only a run that began with one has started an arbiter,
 * for which its library waits. */
static int check_core(const Options *o, const SlicedirEntry *slice, Fault *fault) {
        bool limited = slice->cards[0].limits.core_percent > 0;

        if (!o->size.has_core || limited == (o->size.request.core > 0))
                return 0;
        if (limited)
                return fault_set(fault, RESIZE_E_NO,
                                 "%s: its compute is limited as long as it runs; 100 gives all of it",
                                 slice->id);
        return fault_set(fault, RESIZE_E_NO,
                         "%s: it was started without --gpu-core, so its compute cannot be limited",
                         slice->id);
}

/* Returns the request for one card. What is not given stays as it is on that card. */
static SliceRequest request_for(const Options *o, const SliceLimits *l) {
        SliceRequest request = o->size.request;

        if (!size_options_has_mem(&o->size)) {
                request.mem = l->limit >> 20;
                request.unit_mib = 1;
        }
        if (!o->size.has_core)
                request.core = l->core_percent;
        return request;
}

static int check_cards(const Options *o, const SlicedirEntry *slice, const HostCards *cards, Fault *fault) {
        int r = check_core(o, slice, fault);

        for (uint32_t i = 0; r == 0 && i < slice->n_cards; i++) {
                const SliceLimits *l = &slice->cards[i].limits;
                SliceRequest request = request_for(o, l);

                r = slicing_check_growth(&cards->cards[i], &request, l->limit, l->core_percent, fault);
                if (r != 0)
                        return fault_wrap(fault, RESIZE_E_NO, "%s", slice->id);
        }
        return r;
}

static void print_card(const SlicedirEntry *slice, uint32_t i, uint64_t bytes, uint32_t core) {
        const SliceLimits *l = &slice->cards[i].limits;
        /* without the rows of ended processes */
        uint64_t held = slice->cards[i].report.used - slice->cards[i].report.dead;

        (void) printf("%s: gpu%u: %llu MiB", slice->id, l->card, (unsigned long long) (bytes >> 20));
        if (core > 0)
                (void) printf(", %u %% of compute", core);
        if (held > bytes)
                (void) printf("; it holds %llu MiB and gets no more until that is less",
                              (unsigned long long) (held >> 20));
        (void) printf("\n");
}

/* Writes the new sizes. If this process is killed between two cards, the others keep their old
 * size; the same command completes it. */
static int write_cards(const Options *o, Slicedir *d, const SlicedirEntry *slice, Fault *fault) {
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < slice->n_cards; i++) {
                const SliceLimits *l = &slice->cards[i].limits;
                SliceRequest request = request_for(o, l);
                uint64_t bytes = size_options_has_mem(&o->size)
                                         ? slicing_visible_bytes(l->card_bytes, request.mem, request.unit_mib)
                                         : l->limit;

                r = slicedir_resize(d, slice->id, slice->cards[i].number, bytes, request.core, fault);
                if (r == 0)
                        print_card(slice, i, bytes, request.core);
        }
        return r;
}

static int resize_slice(const Options *o, const char *name, Fault *fault) {
        _cleanup_(slicedir_done) Slicedir d = SLICEDIR_NULL;
        static SlicedirEntry slice; /* too large for the stack */
        HostCards cards;
        int r;

        r = slicedir_open(&d, o->slicedir, false, fault);
        if (r == -ENOENT)
                return fault_set(fault, RESIZE_E_NO, "%s: no slice was ever made here", name);
        if (r == 0)
                r = slicedir_lock(&d, fault);
        if (r == 0)
                r = find_slice(&d, name, &slice, fault);
        if (r != 0)
                return r;
        r = read_cards(o, &d, &slice, &cards);
        if (r < 0)
                return fault_set(fault, r, "cannot read the slice directory: %s", strerror(-r));
        r = check_cards(o, &slice, &cards, fault);
        return r != 0 ? r : write_cards(o, &d, &slice, fault);
}

int main(int argc, char **argv) {
        Options o = {.slicedir = NULL};
        const char *name = NULL;
        Fault fault = FAULT_NULL;
        int r;

        if (file_hold_standard() < 0)
                return EXIT_BROKEN;
        message_guard();
        r = read_options(argc, argv, &o, &name);
        if (r != OPTIONS_GO)
                return r;
        r = resize_slice(&o, name, &fault);
        if (r != 0)
                (void) fprintf(stderr, "aliquot resize: %s\n", fault.text);
        return r == 0 ? 0 : r == RESIZE_E_NO ? EXIT_NO : EXIT_BROKEN;
}
