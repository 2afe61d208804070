/* SPDX-License-Identifier: Apache-2.0 */
#include "local/runner.h"

#include <errno.h>

#include "local/container.h"
#include "local/machine_parts.h"
#include "local/machines.h"
#include "local/pod_environment.h"

/* One container of one pod, from its manifest to its log. */
typedef struct Run {
        const json_t *container;
        ContainerKind kind;
        uint32_t index;
        Variables environment, argv; /* argv: plain words, in a list of the same type */
        Buf notes;
        Container *process; /* NULL: not started */
        Fault skipped;      /* why it was not started */
} Run;

typedef struct PodRun {
        BoundPod place;
        Run *runs; /* init containers first */
        size_t n_runs, n_inits;
        bool failed; /* an init container failed, so no later container starts */
} PodRun;

typedef struct Runner {
        PodRun *pods;
        size_t n_pods;
        size_t n_started;
        usec_t timeout;
        Machines machines;
} Runner;

static void pod_run_done(PodRun *p) {
        for (size_t i = 0; i < p->n_runs; i++) {
                (void) container_free(p->runs[i].process);
                variables_done(&p->runs[i].environment);
                variables_done(&p->runs[i].argv);
                buf_done(&p->runs[i].notes);
        }
        free(p->runs);
}

/* Ends the drivers first: a process that waits for a driver's answer cannot end before. */
static void runner_done(Runner *r) {
        machines_done(&r->machines);
        for (size_t i = 0; i < r->n_pods; i++)
                pod_run_done(&r->pods[i]);
        free(r->pods);
}

/* --- preparation ------------------------------------------------------------------------------ */

static int add_arguments(Run *run, const char *part) {
        const json_t *words = json_object_get(run->container, part), *word;
        size_t i;

        json_array_foreach(words, i, word) {
                _cleanup_buf_ Buf expanded = BUF_NULL;
                char *text;

                variables_expand(&run->environment, str_from(json_string_value(word)), &expanded);
                text = buf_take(&expanded);
                if (!text || !variables_push(&run->argv, text))
                        return -ENOMEM;
        }
        return 0;
}

static int prepare_run(const PodRun *p, Run *run) {
        int r;

        r = pod_environment_make(&p->place, run->container, run->kind, run->index, &run->environment,
                                 &run->notes);
        if (r == 0 && json_array_size(json_object_get(run->container, "command")) > 0)
                r = add_arguments(run, "command");
        if (r == 0 && run->argv.n > 0)
                r = add_arguments(run, "args");
        return r;
}

static int prepare_list(PodRun *p, const char *list, bool init) {
        const json_t *containers = tree_at(p->place.pod, "spec", list, NULL), *one;
        size_t i;

        json_array_foreach(containers, i, one) {
                const char *policy = tree_text(one, "restartPolicy", NULL);
                Run *run = &p->runs[p->n_runs++];
                int r;

                run->container = one;
                run->index = (uint32_t) i;
                run->kind = !init                                     ? CONTAINER_MAIN
                            : policy && strcmp(policy, "Always") == 0 ? CONTAINER_SIDECAR
                                                                      : CONTAINER_INIT;
                r = prepare_run(p, run);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int prepare_pod(PodRun *p, const json_t *pod, const json_t *nodes) {
        const char *name = tree_text(pod, "spec", "nodeName", NULL);
        const json_t *node;
        size_t i;
        int r;

        p->place.pod = pod;
        json_array_foreach(nodes, i, node) {
                if (strcmp(tree_text(node, "metadata", "name", NULL), name) == 0)
                        p->place.node = node;
        }
        p->n_inits = json_array_size(tree_at(pod, "spec", "initContainers", NULL));
        p->runs = calloc(p->n_inits + json_array_size(tree_at(pod, "spec", "containers", NULL)) + 1,
                         sizeof *p->runs);
        if (!p->runs)
                return -ENOMEM;
        r = prepare_list(p, "initContainers", true);
        return r < 0 ? r : prepare_list(p, "containers", false);
}

/* --- running ---------------------------------------------------------------------------------- */

/* Puts the path before the variable's present value. */
static int prepend_path(Variables *v, Str name, const char *path) {
        const char *old = variables_get(v, name);
        _cleanup_buf_ Buf text = BUF_NULL;

        buf_appendf(&text, "%s%s%s", path, old && *old ? ":" : "", old ? old : "");
        return buf_result(&text) < 0 ? -ENOMEM : variables_set(v, name, buf_str(&text));
}

/* Gets the mounts of the container's cards, and adds their programs and libraries to PATH and
 * LD_LIBRARY_PATH. */
static int attach_cards(Runner *r, PodRun *p, Run *run, Arena *arena, MachineMounts *gift) {
        const char *name = tree_text(run->container, "name", NULL);
        char pod[TREE_NAME_MAX], id[64];
        _cleanup_buf_ Buf full_name = BUF_NULL;
        PodSlices slices;
        int e;

        tree_pod_name(p->place.pod, pod);
        buf_appendf(&full_name, "%s/%s", pod, name ? name : "");
        (void) snprintf(id, sizeof id, "pod%zu-%zu", (size_t) (p - r->pods),
                        (size_t) (run - p->runs)); /* it fits */
        e = buf_result(&full_name);
        if (e == 0)
                e = pod_slices_read(&p->place, run->kind, run->index, arena, &slices);
        if (e == 0 && slices.n > 0 && slices.odd.text[0])
                buf_appendf(&run->notes, "(%s; it is passed over)\n", slices.odd.text);
        if (e == 0)
                e = machines_attach(&r->machines, &p->place, &slices, id, full_name.data, arena, gift,
                                    &run->skipped);
        if (e == 0 && gift->n > 0)
                e = prepend_path(&run->environment, STR("PATH"), MACHINE_PROGRAMS);
        return e == 0 && gift->n > 0
                       ? prepend_path(&run->environment, STR("LD_LIBRARY_PATH"), MACHINE_PROGRAMS)
                       : e;
}

static int start_container(Runner *r, PodRun *p, Run *run) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        MachineMounts gift;
        ContainerSpec spec;
        int e;

        if (p->failed) {
                fault_set(&run->skipped, 0, "an init container did not succeed");
                return 0;
        }
        if (r->n_started == RUNNER_MAX_CONTAINERS) {
                fault_set(&run->skipped, 0, "this machine runs the first 256 containers only");
                return 0;
        }
        e = attach_cards(r, p, run, &arena, &gift);
        if (e != 0)
                return e < 0 ? e : 0;
        r->n_started++;
        spec = (ContainerSpec){.hostname = variables_get(&run->environment, STR("HOSTNAME")),
                               .argv = run->argv.items,
                               .envp = run->environment.items,
                               .workdir = tree_text(run->container, "workingDir", NULL),
                               .mounts = gift.mounts,
                               .n_mounts = gift.n};
        return container_new(&spec, &run->process);
}

static bool did_succeed(const Run *run) {
        ContainerState state = run->process ? container_state(run->process) : CONTAINER_HOLDING;

        if (state == CONTAINER_EXITED)
                return container_detail(run->process) == 0;
        return state != CONTAINER_KILLED && state != CONTAINER_TIMED_OUT;
}

/* Runs one init container of every pod. Sidecars are started and left running; other containers
 * must end before the next stage. */
static int run_init_stage(Runner *r, size_t stage) {
        _cleanup_free_ Container **waiting = calloc(r->n_pods + 1, sizeof(Container *));
        size_t n = 0;
        int e = 0;

        if (!waiting)
                return -ENOMEM;
        for (size_t i = 0; i < r->n_pods && e == 0; i++) {
                PodRun *p = &r->pods[i];

                if (stage >= p->n_inits)
                        continue;
                e = start_container(r, p, &p->runs[stage]);
                if (p->runs[stage].process && p->runs[stage].kind == CONTAINER_INIT)
                        waiting[n++] = p->runs[stage].process;
        }
        if (e == 0)
                e = container_wait_all(waiting, n, clock_monotonic_usec() + r->timeout, true);
        for (size_t i = 0; i < r->n_pods; i++) {
                PodRun *p = &r->pods[i];

                if (stage < p->n_inits && p->runs[stage].kind == CONTAINER_INIT &&
                    !did_succeed(&p->runs[stage]))
                        p->failed = true;
        }
        return e;
}

static int run_main_stage(Runner *r) {
        _cleanup_free_ Container **waiting = NULL;
        size_t n = 0, total = 0;
        int e = 0;

        for (size_t i = 0; i < r->n_pods; i++)
                total += r->pods[i].n_runs;
        waiting = calloc(total + 1, sizeof(Container *));
        if (!waiting)
                return -ENOMEM;
        for (size_t i = 0; i < r->n_pods; i++) {
                PodRun *p = &r->pods[i];

                for (size_t k = 0; k < p->n_runs && e == 0; k++) {
                        if (k >= p->n_inits)
                                e = start_container(r, p, &p->runs[k]);
                        if (p->runs[k].process)
                                waiting[n++] = p->runs[k].process;
                }
        }
        return e < 0 ? e : container_wait_all(waiting, n, clock_monotonic_usec() + r->timeout, true);
}

/* --- the log ---------------------------------------------------------------------------------- */

static void print_end(const Runner *r, const Run *run, Buf *out) {
        int detail = container_detail(run->process);

        switch (container_state(run->process)) {
        case CONTAINER_HOLDING:
                buf_append_str(out,
                               STR("(no command in the manifest; the container only holds its slice)\n"));
                break;
        case CONTAINER_NO_PROGRAM:
                buf_appendf(out, "(%s: %s; the container only holds its slice)\n", run->argv.items[0],
                            detail == ENOENT ? "not on this machine" : strerror(detail));
                break;
        case CONTAINER_EXITED:
                if (detail != 0)
                        buf_appendf(out, "(exited with %d)\n", detail);
                break;
        case CONTAINER_KILLED:
                buf_appendf(out, "(killed by signal %d)\n", detail);
                break;
        case CONTAINER_TIMED_OUT:
                buf_appendf(out, "(still running after %llu s; stopped)\n",
                            (unsigned long long) (r->timeout / USEC_PER_SEC));
                break;
        case CONTAINER_NO_ISOLATION:
                buf_appendf(out, "(not run: this machine cannot isolate it: %s: %s)\n",
                            container_failed_step(run->process), strerror(detail));
                break;
        case CONTAINER_RUNNING:
                break; /* after container_wait_all() no container is in this state */
        }
}

static void print_run(const Runner *r, const PodRun *p, const Run *run, Buf *out) {
        const char *name = tree_text(run->container, "name", NULL);
        char pod[TREE_NAME_MAX];

        tree_pod_name(p->place.pod, pod);
        buf_appendf(out, "== %s/%s\n", pod, name ? name : "");
        pod_environment_print(&run->environment, out);
        buf_append_str(out, buf_str(&run->notes));
        if (!run->process) {
                buf_appendf(out, "(not started%s%s)\n", run->skipped.text[0] ? ": " : "", run->skipped.text);
                return;
        }
        buf_append_str(out, buf_str(container_output(run->process)));
        if (out->len > 0 && out->data[out->len - 1] != '\n')
                buf_append_char(out, '\n');
        if (container_output_was_cut(run->process))
                buf_append_str(out, STR("(output cut at 1 MiB)\n"));
        print_end(r, run, out);
}

static bool ran_without_image(const Run *run) {
        return run->process && container_state(run->process) != CONTAINER_NO_ISOLATION &&
               tree_text(run->container, "image", NULL);
}

/* Notes that images are not used, once for all containers. */
static void note_images(const Runner *r, Buf *notes) {
        for (size_t i = 0; i < r->n_pods; i++)
                for (size_t k = 0; k < r->pods[i].n_runs; k++)
                        if (ran_without_image(&r->pods[i].runs[k])) {
                                buf_append_str(notes, STR("aliquot local: images are not used: each command "
                                                          "is a program of this machine, with its files\n"));
                                return;
                        }
}

int runner_run(const json_t *pods, const json_t *nodes, const RunnerOptions *options, Buf *out, Buf *notes) {
        _cleanup_(runner_done) Runner r = {.timeout = options->timeout, .machines = MACHINES_NULL};
        size_t stages = 0, i;
        const json_t *pod;
        int e;

        r.machines.ignores_disable = options->ignores_disable;
        r.pods = calloc(json_array_size(pods) + 1, sizeof *r.pods);
        if (!r.pods)
                return -ENOMEM;
        json_array_foreach(pods, i, pod) {
                e = prepare_pod(&r.pods[r.n_pods++], pod, nodes);
                if (e < 0)
                        return e;
                if (r.pods[i].n_inits > stages)
                        stages = r.pods[i].n_inits;
        }
        for (size_t stage = 0; stage < stages; stage++) {
                e = run_init_stage(&r, stage);
                if (e < 0)
                        return e;
        }
        e = run_main_stage(&r);
        if (e < 0)
                return e;
        for (i = 0; i < r.n_pods; i++)
                for (size_t k = 0; k < r.pods[i].n_runs; k++)
                        print_run(&r, &r.pods[i], &r.pods[i].runs[k], out);
        note_images(&r, notes);
        machines_print_troubles(&r.machines, notes);
        return buf_result(out) < 0 ? -ENOMEM : buf_result(notes);
}
