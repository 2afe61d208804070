/* SPDX-License-Identifier: Apache-2.0 */

/* The texts that --help and errors print are compared by tests/blackbox/words.py. */

#include "base/options.h"
#include "test.h"

typedef struct Taken {
        bool flag, choice;
        const char *text;
        uint32_t number;
        unsigned called;
} Taken;

static int call(void *options, const Option *option, const char *value, Fault *fault) {
        ((Taken *) options)->called += option->key;
        return value && strcmp(value, "bad") == 0 ? fault_set(fault, 1, "must be good") : 0;
}

static const Option list[] = {
        {"flag", NULL, "", OPTION_TO_FLAG(Taken, flag), .letter = 'f'},
        {"text", "FILE", "", OPTION_TO_TEXT(Taken, text), .letter = 't'},
        {"name", "NAME", "", OPTION_TO_TEXT(Taken, text)},
        {"number", "N", "", OPTION_TO_NUMBER(Taken, number, 2, 70)},
        {"choice", "report|kill", "", OPTION_TO_CHOICE(Taken, choice)},
        {"call", "X", "", OPTION_TO_CALL(call), .key = 3},
};

static int parse(bool takes_words, Taken *ret, const char *const *words, size_t n, char ***ret_rest) {
        const OptionsTable table = {.program = "test",
                                    .usage = "",
                                    .about = "",
                                    .options = list,
                                    .n = ELEMENTSOF(list),
                                    .takes_words = takes_words};
        static char *argv[16];

        argv[0] = (char *) "test";
        for (size_t i = 0; i < n; i++)
                argv[i + 1] = (char *) words[i];
        argv[n + 1] = NULL;
        *ret = (Taken){0};
        return options_parse(&table, (int) n + 1, argv, ret, ret_rest);
}

#define PARSE(words, taken, ...)                                                                             \
        parse(words, taken, (const char *const[]){__VA_ARGS__},                                              \
              sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), NULL)

static void takes_each_kind(void) {
        Taken t;

        ASSERT_INT(PARSE(false, &t, "-f", "--text=a", "--number", "70", "--choice=kill", "--call", "x"),
                   OPTIONS_GO);
        ASSERT_TRUE(t.flag && t.choice);
        ASSERT_TEXT(t.text, "a");
        ASSERT_INT(t.number, 70);
        ASSERT_INT(t.called, 3);
        ASSERT_INT(PARSE(false, &t, "-tb", "--choice", "report", "--num=2"), OPTIONS_GO);
        ASSERT_TEXT(t.text, "b");
        ASSERT_FALSE(t.flag || t.choice);
        ASSERT_INT(t.number, 2);
        ASSERT_INT(PARSE(false, &t, "--name="), OPTIONS_GO);
        ASSERT_TEXT(t.text, "");
}

static void refuses(void) {
        static const char *const wrong[][2] = {
                {"--number", "1"},           {"--number", "71"}, {"--number", "2x"}, {"--number", ""},
                {"--choice", "rep"},         {"--choice", ""},   {"--call", "bad"},  {"--text", NULL},
                {"--flag=yes", NULL},        {"-x", NULL},       {"--flog", NULL},   {"-t", NULL},
                {"--choice", "report|kill"}, {"--text", ""},     {"--text=", NULL},
        };
        Taken t;

        for (size_t i = 0; i < ELEMENTSOF(wrong); i++)
                ASSERT_INT(parse(false, &t, wrong[i], wrong[i][1] ? 2 : 1, NULL), OPTIONS_EXIT_USAGE);
}

static void ends_at_the_first_word(void) {
        char **rest = NULL;
        Taken t;

        ASSERT_INT(PARSE(false, &t, "-f", "word"), OPTIONS_EXIT_USAGE);
        ASSERT_INT(parse(true, &t, (const char *const[]){"-f", "word", "--text"}, 3, &rest), OPTIONS_GO);
        ASSERT_TEXT(rest[0], "word");
        ASSERT_TEXT(rest[1], "--text");
        ASSERT_TRUE(rest[2] == NULL);
        ASSERT_INT(parse(true, &t, (const char *const[]){"--", "-f"}, 2, &rest), OPTIONS_GO);
        ASSERT_TEXT(rest[0], "-f");
        ASSERT_FALSE(t.flag);
}

static const char *closest(const char *word) {
        static const char *const names[] = {"local", "node",    "run",         "scheduler",
                                            "smi",   "gpu-mem", "gpu-mem-unit"};

        return options_closest(word, names, ELEMENTSOF(names), sizeof names[0]);
}

static void guesses_what_was_meant(void) {
        ASSERT_TEXT(closest("nod"), "node");
        ASSERT_TEXT(closest("ndoe"), "node");
        ASSERT_TEXT(closest("sched"), "scheduler");
        ASSERT_TEXT(closest("schedular"), "scheduler");
        ASSERT_TEXT(closest("gpu-men"), "gpu-mem");
        ASSERT_TEXT(closest("gpu-memunit"), "gpu-mem-unit");
        ASSERT_TEXT(closest("smii"), "smi");
        ASSERT_TRUE(closest("apply") == NULL);
        ASSERT_TRUE(closest("") == NULL);
        ASSERT_TRUE(closest("xx") == NULL);
        ASSERT_TRUE(closest("a-name-that-is-longer-than-any-option-can-be-here") == NULL);
}

int main(void) {
        return TEST_MAIN(TEST(takes_each_kind), TEST(refuses), TEST(ends_at_the_first_word),
                         TEST(guesses_what_was_meant));
}
