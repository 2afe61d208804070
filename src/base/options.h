/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The command line of every program and verb, from one table: parsing by getopt_long, --help,
 * --version, and one line on standard error for what is wrong. --help and --version go to standard
 * output with status 0. Wrong usage has status 2; its line names option, value and rule, says which
 * name was probably meant, and how to get help. Needs libc only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

typedef struct Option Option;

typedef enum OptionKind {
        OPTION_FLAG,   /* bool: becomes true */
        OPTION_TEXT,   /* const char *: borrowed from argv; not empty where `value` is DIR or FILE */
        OPTION_NUMBER, /* uint32_t: decimal digits, from low to high */
        OPTION_CHOICE, /* bool: `value` is "ONE|OTHER", and OTHER is true */
        OPTION_CALL,   /* take() reads the value */
} OptionKind;

struct Option {
        const char *name;  /* --NAME; of three letters at least, without the hyphens */
        const char *value; /* as --help shows it: FILE, or words as report|kill; NULL: takes none */
        const char *help;
        OptionKind kind;
        size_t offset; /* offset of the option's field in the struct that options_parse() fills */
        uint32_t low, high;
        /* 0, or another number with a fault that ends the sentence `--NAME is "VALUE", ...`. value
         * is NULL where the option takes none. */
        int (*take)(void *options, const Option *option, const char *value, Fault *fault);
        unsigned key; /* for take(), to tell options apart */
        char letter;  /* the letter L of -L; 0: none */
};

#define OPTION_TO_FLAG(type, field)   .kind = OPTION_FLAG, .offset = offsetof(type, field)
#define OPTION_TO_TEXT(type, field)   .kind = OPTION_TEXT, .offset = offsetof(type, field)
#define OPTION_TO_CHOICE(type, field) .kind = OPTION_CHOICE, .offset = offsetof(type, field)
#define OPTION_TO_NUMBER(type, field, from, to)                                                              \
        .kind = OPTION_NUMBER, .offset = offsetof(type, field), .low = (from), .high = (to)
#define OPTION_TO_CALL(function) .kind = OPTION_CALL, .take = (function)

/* Options that every daemon has. */
#define OPTIONS_LOG                                                                                          \
        {"log-format", "text|json", "how a line of the log is written (default text)",                       \
         OPTION_TO_CALL(options_take_log_format)},                                                           \
        {                                                                                                    \
                "verbose", NULL, "log every step", OPTION_TO_CALL(options_take_verbose), .letter = 'v'       \
        }

typedef struct OptionsTable {
        const char *program; /* "aliquot run" */
        const char *usage;   /* what follows it: "[OPTION...]" */
        const char *about;   /* what the program does */
        const char *end;     /* what else --help says, as the exit status; NULL: nothing */
        const Option *options;
        size_t n;
        bool takes_words; /* words that are no option are allowed */
} OptionsTable;

enum { OPTIONS_GO = -1, OPTIONS_EXIT_USAGE = 2, OPTIONS_EXIT_BROKEN = 3 };

/* Fills the fields of *options that the command line names, and sets *ret_words to the words after
 * the options, which end with NULL. ret_words may be NULL. The first word ends the options. Returns
 * OPTIONS_GO, or the exit status of a program that has nothing more to do. */
int options_parse(const OptionsTable *t, int argc, char **argv, void *options, char ***ret_words);

/* Prints "PROGRAM: TEXT; see `PROGRAM --help`". Returns OPTIONS_EXIT_USAGE. */
int options_wrong(const OptionsTable *t, const char *format, ...) _printf_(2, 3);

/* Prints the line of --version. Returns 0, or OPTIONS_EXIT_BROKEN. */
int options_print_version(const char *program);

/* Returns the name of an array that was probably meant: one that begins with the word, or one with
 * few letters that differ. The first field of each element is its name, a const char *. NULL:
 * none. */
const char *options_closest(const char *word, const void *names, size_t n, size_t size);

/* The functions of OPTIONS_LOG. */
int options_take_log_format(void *options, const Option *option, const char *value, Fault *fault);
int options_take_verbose(void *options, const Option *option, const char *value, Fault *fault);
