/* SPDX-License-Identifier: Apache-2.0 */

/* kubectl-inspect-cgpu: kubectl finds it on PATH and runs it for `kubectl inspect cgpu`. Exit
 * status:
 *     0  done
 *     1  the answer is no: no such node, kubectl failed, objects had to be left out
 *     2  wrong usage, or a FILE that cannot be read or is no List
 *     3  an internal error */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <string.h>

#include "base/file.h"
#include "cli/inspect/feed.h"
#include "cli/inspect/kubectl.h"

enum { EXIT_NO = 1, EXIT_USAGE = 2, EXIT_BROKEN = 3 };
enum { WARNINGS_MAX = 20 };

typedef int (*Printer)(Inspect *i, Str node, Buf *out, Fault *fault);

typedef struct Options {
        bool details, json;
        const char *from;
        Str node;
        const char *kubectl_flags[KUBECTL_MAX_FLAGS];
        size_t n_kubectl_flags;
} Options;

typedef struct Warnings {
        size_t n;
} Warnings;

/* One list, for getopt_long and for --help. Options without a letter are passed to kubectl. */
enum { OPTION_FROM = 256, OPTION_VERSION, OPTION_KUBECTL };
static const struct {
        const char *name, *value, *help;
        int key;
} option_list[] = {
        {"details", NULL, "also list the pods that hold slices, node by node", 'd'},
        {"output", "FORMAT", "table (default) or json", 'o'},
        {"from", "FILE", "read FILE (- for standard input), made by\nkubectl get nodes,pods -A -o json",
         OPTION_FROM},
        {"help", NULL, "this text", 'h'},
        {"version", NULL, "print the version", OPTION_VERSION},
        {"kubeconfig", "FILE", "handed on to kubectl, as the following ones are", OPTION_KUBECTL},
        {"context", "NAME", "", OPTION_KUBECTL},
        {"cluster", "NAME", "", OPTION_KUBECTL},
        {"user", "NAME", "", OPTION_KUBECTL},
        {"server", "URL", "", OPTION_KUBECTL},
        {"token", "TOKEN", "", OPTION_KUBECTL},
        {"as", "NAME", "", OPTION_KUBECTL},
        {"as-group", "NAME", "", OPTION_KUBECTL},
        {"request-timeout", "TIME", "", OPTION_KUBECTL},
};

static void print_help(void) {
        puts("Usage: kubectl inspect cgpu [-d] [-o table|json] [NODE] [--from FILE]\n"
             "Shows which pods hold how much of which GPU.\n");
        for (size_t i = 0; i < ELEMENTSOF(option_list); i++) {
                const char *value = option_list[i].value, *help = option_list[i].help,
                           *line = strchr(help, '\n');
                int key = option_list[i].key, n = line ? (int) (line - help) : (int) strlen(help), width;

                width = printf(key < 256 ? "  -%c, " : "      ", key);
                width += printf("--%s%s%s", option_list[i].name, value ? " " : "", value ? value : "");
                if (n > 0)
                        printf("%*s%.*s", width < 30 ? 30 - width : 1, "", n, help);
                putchar('\n');
                if (line)
                        printf("%30s%s\n", "", line + 1);
        }
}

/* Prints a line on standard error. Control characters are replaced: names may come from an
 * unchecked file. */
static void print_error(const char *before, const char *text) {
        (void) fputs(before, stderr);
        for (; *text; text++)
                (void) fputc(*text >= ' ' && *text <= '~' ? *text : '?', stderr);
        (void) fputc('\n', stderr);
}

static int complain(int status, const Fault *fault, int r) {
        const char *text = fault->text[0] ? fault->text : strerror(r < 0 ? -r : EINVAL);

        print_error("kubectl-inspect-cgpu: ", text);
        return status;
}

static int usage(const char *text, const char *value) {
        Fault fault = FAULT_NULL;

        return complain(EXIT_USAGE, &fault, fault_set(&fault, 0, "%s%s; see --help", text, value));
}

static int no_memory(void) {
        print_error("kubectl-inspect-cgpu: ", strerror(ENOMEM));
        return EXIT_BROKEN;
}

/* Keeps the flag as one word, --name=value, so that no value can be taken for an option. It lives
 * as long as argv. */
static int keep_kubectl_flag(Options *o, const char *name, const char *value) {
        char *flag;
        size_t size = strlen(name) + strlen(value) + sizeof "--=";

        if (o->n_kubectl_flags == KUBECTL_MAX_FLAGS)
                return usage("too many options for kubectl: --", name);
        flag = malloc(size);
        if (!flag)
                return no_memory();
        (void) snprintf(flag, size, "--%s=%s", name, value);
        o->kubectl_flags[o->n_kubectl_flags++] = flag;
        return 0;
}

static void options_done(Options *o) {
        for (size_t i = 0; i < o->n_kubectl_flags; i++)
                free((void *) o->kubectl_flags[i]);
}

/* Returns -1 to go on, else the exit status. */
static int parse_option(Options *o, int key, int index) {
        switch (key) {
        case 'd':
                o->details = true;
                return -1;
        case 'o':
                if (strcmp(optarg, "json") != 0 && strcmp(optarg, "table") != 0)
                        return usage("-o takes table or json, not ", optarg);
                o->json = strcmp(optarg, "json") == 0;
                return -1;
        case 'h':
                print_help();
                return 0;
        case OPTION_FROM:
                o->from = optarg;
                return -1;
        case OPTION_VERSION:
                puts("kubectl-inspect-cgpu " ALIQUOT_VERSION);
                return 0;
        case OPTION_KUBECTL: {
                int r = keep_kubectl_flag(o, option_list[index].name, optarg);

                return r == 0 ? -1 : r;
        }
        default:
                return EXIT_USAGE; /* getopt_long has printed why */
        }
}

static int parse_options(Options *o, int argc, char **argv) {
        struct option longs[ELEMENTSOF(option_list) + 1] = {{0}};
        int key, index = 0, r;

        for (size_t i = 0; i < ELEMENTSOF(option_list); i++)
                longs[i] = (struct option){option_list[i].name,
                                           option_list[i].value ? required_argument : no_argument, NULL,
                                           option_list[i].key};
        while ((key = getopt_long(argc, argv, "do:h", longs, &index)) != -1) {
                r = parse_option(o, key, index);
                if (r >= 0)
                        return r;
        }
        if (argc - optind > 1)
                return usage("one NODE at most, then came ", argv[optind + 1]);
        if (argc - optind == 1 && argv[optind][0] == '\0')
                return usage("NODE is empty", "");
        if (argc - optind == 1)
                o->node = str_from(argv[optind]);
        return -1;
}

static void warn(void *userdata, const char *text) {
        Warnings *w = userdata;

        if (w->n++ < WARNINGS_MAX)
                print_error("", text);
}

static int read_file(Feed *f, const char *path) {
        bool is_stdin = strcmp(path, "-") == 0;
        _cleanup_close_ int fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        Fault fault = FAULT_NULL;
        int r;

        f->source = is_stdin ? "standard input" : path;
        if (fd < 0)
                return complain(EXIT_USAGE, &fault,
                                fault_set(&fault, 0, "%s: %s", f->source, strerror(errno)));
        r = feed_fd(f, fd, &fault);
        if (r == 0)
                return 0;
        return complain(r == -ENOMEM ? EXIT_BROKEN : EXIT_USAGE, &fault, r);
}

static int read_kubectl(Feed *f, const Options *o, const char *path) {
        Fault why = FAULT_NULL, fault = FAULT_NULL;
        Kubectl kubectl;
        int fed, r;

        r = kubectl_get_raw(o->kubectl_flags, o->n_kubectl_flags, path, &kubectl, &fault);
        if (r < 0)
                return complain(EXIT_BROKEN, &fault, r);
        f->source = kubectl.command;
        fed = feed_fd(f, kubectl.out, &why);
        r = kubectl_finish(&kubectl, fed != 0 && !f->at_end, &fault);
        /* A failure of kubectl explains a list that breaks off, unless we stopped kubectl
         * ourselves. */
        if (r != 0 && (fed == 0 || f->at_end))
                return complain(r < 0 ? EXIT_BROKEN : EXIT_NO, &fault, r);
        if (fed != 0)
                return complain(fed < 0 ? EXIT_BROKEN : EXIT_NO, &why, fed);
        return 0;
}

/* Escapes everything that is not safe in a field selector within a URL. */
static void append_escaped(Buf *url, Str s) {
        static const char hex[] = "0123456789ABCDEF";

        for (size_t i = 0; i < s.len; i++) {
                unsigned char c = (unsigned char) s.data[i];
                bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                             c == '-' || c == '.';

                if (plain) {
                        buf_append_char(url, (char) c);
                        continue;
                }
                buf_append_char(url, '%');
                buf_append_char(url, hex[c >> 4]);
                buf_append_char(url, hex[c & 15]);
        }
}

/* Selects on the server: objects that the report needs, and only those of the requested node. On a
 * large cluster that saves most of the bytes. */
static char *path_of(const char *resource, Str selector, Str node_field, Str node) {
        Buf url = BUF_NULL;

        buf_appendf(&url, "/api/v1/%s", resource);
        if (selector.len > 0 || node.len > 0)
                buf_append_str(&url, STR("?fieldSelector="));
        append_escaped(&url, selector);
        if (node.len > 0) {
                if (selector.len > 0)
                        buf_append_str(&url, STR("%2C"));
                append_escaped(&url, node_field);
                buf_append_str(&url, STR("%3D"));
                append_escaped(&url, node);
        }
        return buf_take(&url);
}

static int read_objects(Inspect *inspect, const Options *o, Str only, const char *path, Warnings *warnings) {
        _cleanup_(feed_done)
                Feed feed = {.inspect = inspect, .only = only, .warn = warn, .userdata = warnings};
        int status;

        if (feed_init(&feed) < 0)
                return no_memory();
        status = path ? read_kubectl(&feed, o, path) : read_file(&feed, o->from);
        return status == 0 && feed.n_left_out > 0 ? -EXIT_NO : status;
}

/* Returns 0, an exit status that ends the program, or a negated one for its end after an incomplete
 * report. */
static int read_cluster(Inspect *inspect, const Options *o, Warnings *warnings) {
        _cleanup_free_ char *nodes = path_of("nodes", STR(""), STR("metadata.name"), o->node);
        _cleanup_free_ char *pods = path_of("pods", STR("status.phase!=Succeeded,status.phase!=Failed"),
                                            STR("spec.nodeName"), o->node);
        int first, second;

        if (!nodes || !pods)
                return no_memory();
        first = read_objects(inspect, o, STR("Node"), nodes, warnings);
        if (first > 0)
                return first;
        second = read_objects(inspect, o, STR("Pod"), pods, warnings);
        return second != 0 ? second : first;
}

static int write_out(const Buf *out) {
        if (fwrite(out->data, 1, out->len, stdout) != out->len || fflush(stdout) != 0) {
                Fault fault = FAULT_NULL;

                return complain(EXIT_BROKEN, &fault,
                                fault_set(&fault, 0, "standard output: %s", strerror(errno)));
        }
        return 0;
}

/* On standard error, because the table has no place for it and other programs read the table. */
static void print_differences(Inspect *inspect, const Options *o) {
        size_t n;

        if (inspect_count_differences(inspect, o->node, &n, NULL) == 0 && n > 0)
                (void) fprintf(
                        stderr,
                        "%zu %s annotations that differ from the limits, which are what counts: see -d\n", n,
                        n == 1 ? "pod has" : "pods have");
}

static int report(Inspect *inspect, const Options *o) {
        _cleanup_buf_ Buf out = BUF_NULL;
        Printer print = o->json      ? inspect_print_json
                        : o->details ? inspect_print_details
                                     : inspect_print_summary;
        Fault fault = FAULT_NULL;
        int r;

        r = print(inspect, o->node, &out, &fault);
        if (r != 0)
                return complain(r < 0 ? EXIT_BROKEN : EXIT_NO, &fault, r);
        r = write_out(&out);
        if (r == 0 && !o->details && !o->json)
                print_differences(inspect, o);
        return r;
}

static int run(const Options *o) {
        _cleanup_(inspect_freep) Inspect *inspect = NULL;
        Warnings warnings = {0};
        int status, printed;

        if (inspect_new(&inspect) < 0)
                return no_memory();
        status = o->from ? read_objects(inspect, o, STR(""), NULL, &warnings)
                         : read_cluster(inspect, o, &warnings);
        if (warnings.n > WARNINGS_MAX)
                (void) fprintf(stderr, "and %zu more such lines\n", warnings.n - WARNINGS_MAX);
        if (status > 0)
                return status;
        printed = report(inspect, o);
        return printed != 0 ? printed : -status;
}

int main(int argc, char **argv) {
        _cleanup_(options_done) Options o = {0};
        int status;

        if (file_hold_standard() < 0)
                return EXIT_BROKEN;
        status = parse_options(&o, argc, argv);
        return status >= 0 ? status : run(&o);
}
