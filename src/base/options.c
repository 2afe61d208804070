/* SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"

#include <getopt.h>
#include <stdarg.h>

#include "base/log.h"
#include "base/str.h"

/* What getopt_long() returns: INDEX and the option's place in the table, else HELP or VERSION. */
enum { OPTIONS_MAX = 60, INDEX = 0x100, HELP = INDEX + OPTIONS_MAX, VERSION };
enum { WIDTH = 80, COLUMN = 30 };

/* --- which name was meant --------------------------------------------------------------------- */

const char *options_closest(const char *word, const void *names, size_t n, size_t size) {
        const char *best = NULL;
        unsigned least_distance = (unsigned) strlen(word) / 3 + 1;

        for (size_t i = 0; i < n && strlen(word) > 1; i++) {
                const char *name = *(const char *const *) (const void *) ((const char *) names + i * size);
                unsigned d = str_misspelling(str_from(word), str_from(name));

                if (d < least_distance || (d == least_distance && !best)) {
                        best = name;
                        least_distance = d;
                }
        }
        return best;
}

/* --- what is printed -------------------------------------------------------------------------- */

int options_wrong(const OptionsTable *t, const char *format, ...) {
        va_list args;
        Fault fault;
        size_t n;

        va_start(args, format);
        (void) vsnprintf(fault.text, sizeof fault.text, format, args);
        va_end(args);
        n = strlen(fault.text);
        (void) fprintf(stderr, "%s: %s%s `%s --help`\n", t->program, fault.text,
                       n > 0 && fault.text[n - 1] == '?' ? " See" : "; see", t->program);
        return OPTIONS_EXIT_USAGE;
}

/* Output that was not written is a failure. */
static int check_output(void) {
        return fflush(stdout) == 0 ? 0 : OPTIONS_EXIT_BROKEN;
}

int options_print_version(const char *program) {
        (void) printf("%s %s (built with %s)\n", program, ALIQUOT_VERSION, __VERSION__);
        return check_output();
}

/* Breaks the text at blanks. Lines after the first begin at `indent`; a line ends before WIDTH,
 * unless a word is longer. */
static void print_wrapped(const char *text, size_t at, size_t indent) {
        while (*text) {
                size_t n = strcspn(text, " \n");

                if (at > indent && at + 1 + n > WIDTH) {
                        (void) printf("\n%*s", (int) indent, "");
                        at = indent;
                }
                at += (size_t) printf("%s%.*s", at > indent ? " " : "", (int) n, text);
                text += n;
                if (*text == '\n')
                        at = (size_t) printf("\n%*s", (int) indent, "") - 1;
                text += *text != '\0';
        }
        (void) putchar('\n');
}

static void print_option(char letter, const char *name, const char *value, const char *help) {
        int n = letter ? printf("  -%c, ", letter) : printf("      ");

        n += printf("--%s%s%s", name, value ? " " : "", value ? value : "");

        if (n > COLUMN - 2)
                n = printf("\n") - 1;
        (void) printf("%*s", COLUMN - n, "");
        print_wrapped(help, COLUMN, COLUMN);
}

static int print_help(const OptionsTable *t) {
        (void) printf("Usage: %s%s%s\n\n", t->program, t->usage[0] ? " " : "", t->usage);
        print_wrapped(t->about, 0, 0);
        (void) printf("\nOptions:\n");
        for (size_t i = 0; i < t->n; i++)
                print_option(t->options[i].letter, t->options[i].name, t->options[i].value,
                             t->options[i].help);
        print_option('h', "help", NULL, "print this text");
        print_option(0, "version", NULL, "print the version");
        if (t->end) {
                (void) putchar('\n');
                print_wrapped(t->end, 0, 0);
        }
        return check_output();
}

/* --- parsing ---------------------------------------------------------------------------------- */

static int take_number(const Option *option, const char *text, uint32_t *field, Fault *fault) {
        uint32_t n;

        if (!str_to_u32(str_from(text), &n) || n < option->low || n > option->high)
                return fault_set(fault, 1, "must be a whole number from %u to %u", option->low, option->high);
        *field = n;
        return 0;
}

static int take_choice(const Option *option, const char *text, bool *field, Fault *fault) {
        Str rest = str_from(option->value), first = str_split(&rest, '|');

        if (!str_eq(first, str_from(text)) && !str_eq(rest, str_from(text)))
                return fault_set(fault, 1, "must be %.*s or %.*s", STR_ARG(first), STR_ARG(rest));
        *field = str_eq(rest, str_from(text));
        return 0;
}

static bool is_path(const Option *option) {
        return strcmp(option->value, "DIR") == 0 || strcmp(option->value, "FILE") == 0;
}

static int take_text(const Option *option, const char *text, const char **field, Fault *fault) {
        if (text[0] == '\0' && is_path(option))
                return fault_set(fault, 1, "must be a path");
        *field = text;
        return 0;
}

static int take_value(const Option *option, const char *text, void *options, Fault *fault) {
        void *field = (char *) options + option->offset;

        switch (option->kind) {
        case OPTION_FLAG:
                *(bool *) field = true;
                return 0;
        case OPTION_TEXT:
                return take_text(option, text, field, fault);
        case OPTION_NUMBER:
                return take_number(option, text, field, fault);
        case OPTION_CHOICE:
                return take_choice(option, text, field, fault);
        case OPTION_CALL:
                return option->take(options, option, text, fault);
        }
        return 0;
}

static int take_option(const OptionsTable *t, const Option *option, const char *text, void *options) {
        Fault fault = FAULT_NULL;

        if (take_value(option, text, options, &fault) == 0)
                return OPTIONS_GO;
        return text ? options_wrong(t, "--%s is \"%s\", %s", option->name, text, fault.text)
                    : options_wrong(t, "--%s: %s", option->name, fault.text);
}

static const Option *find_letter(const OptionsTable *t, int letter) {
        for (size_t i = 0; i < t->n; i++)
                if (t->options[i].letter == letter && letter != 0)
                        return &t->options[i];
        return NULL;
}

/* The option for a value that getopt_long() returned or left in optopt. NULL: --help, --version, or
 * none. */
static const Option *option_of(const OptionsTable *t, int key) {
        return key >= INDEX && key < HELP ? &t->options[key - INDEX] : find_letter(t, key);
}

/* Reports a word that getopt_long() rejected. answer: ':' where the value is missing, else '?'. */
static int wrong_option(const OptionsTable *t, const struct option *names, size_t n, int answer,
                        const char *word) {
        const Option *option = option_of(t, optopt);
        const char *meant;
        char name[STR_MISSPELLING_MAX + 1];

        if (answer == ':' && option)
                return options_wrong(t, "--%s has no value, must have %s", option->name, option->value);
        if (optopt >= INDEX)
                return options_wrong(t, "%.*s takes no value", (int) strcspn(word, "="), word);
        if (optopt != 0)
                return options_wrong(t, "-%c: no such option", optopt);
        (void) snprintf(name, sizeof name, "%.*s", (int) strcspn(word + 2, "="), word + 2);
        meant = options_closest(name, names, n, sizeof *names);
        return meant ? options_wrong(t, "--%s: no such option; did you mean --%s?", name, meant)
                     : options_wrong(t, "--%s: no such option", name);
}

/* Fills the arrays that getopt_long() reads. Returns the number of long options. */
static size_t make_names(const OptionsTable *t, struct option *ret, char *ret_letters) {
        size_t n = 0;

        *ret_letters++ = '+';
        *ret_letters++ = ':';
        for (; n < t->n && n < OPTIONS_MAX; n++) {
                const Option *o = &t->options[n];

                ret[n] = (struct option){o->name, o->value ? required_argument : no_argument, NULL,
                                         INDEX + (int) n};
                if (!o->letter)
                        continue;
                *ret_letters++ = o->letter;
                if (o->value)
                        *ret_letters++ = ':';
        }
        ret[n++] = (struct option){"help", no_argument, NULL, HELP};
        ret[n++] = (struct option){"version", no_argument, NULL, VERSION};
        ret[n] = (struct option){0};
        *ret_letters++ = 'h';
        *ret_letters = '\0';
        return n;
}

int options_parse(const OptionsTable *t, int argc, char **argv, void *options, char ***ret_words) {
        struct option names[OPTIONS_MAX + 3];
        char letters[2 * OPTIONS_MAX + 4];
        size_t n = make_names(t, names, letters);

        opterr = 0;
        optind = 1;
        for (;;) {
                const char *word = optind < argc ? argv[optind] : "";
                int key = getopt_long(argc, argv, letters, names, NULL), r;

                if (key == -1)
                        break;
                if (key == HELP || key == 'h')
                        return print_help(t);
                if (key == VERSION)
                        return options_print_version(t->program);
                r = key == ':' || key == '?' ? wrong_option(t, names, n, key, word)
                                             : take_option(t, option_of(t, key), optarg, options);
                if (r != OPTIONS_GO)
                        return r;
        }
        if (optind < argc && !t->takes_words)
                return options_wrong(t, "%s: unexpected argument, must be an option", argv[optind]);
        if (ret_words)
                *ret_words = argv + optind;
        return OPTIONS_GO;
}

int options_take_log_format(void *options, const Option *option, const char *value, Fault *fault) {
        bool json = false;
        int r = take_choice(option, value, &json, fault);

        if (r == 0)
                log_set_json(json);
        return r;
}

int options_take_verbose(void *options, const Option *option, const char *value, Fault *fault) {
        log_set_level(LOG_LEVEL_DEBUG);
        return 0;
}
