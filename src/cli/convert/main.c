/* SPDX-License-Identifier: Apache-2.0 */

/* The verb `aliquot convert`: reads manifests of HAMi or vgpu-manager and prints them for
 * Aliquot. */

#include "cli/convert/main.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/options.h"
#include "cli/convert/convert.h"
#include "cli/convert/yaml_write.h"
#include "share/memory_unit.h"
#include "wire/text_form.h"
#include "wire/yaml.h"

enum { EXIT_LEFT = 1, MANIFEST_MAX = 256 << 20, CARD_MIB_MAX = 1 << 24 };

typedef struct Options {
        const char *file;
        ConvertOptions convert;
} Options;

static int take_unit(void *options, const Option *option, const char *value, Fault *fault) {
        Options *o = options;
        MemoryUnit unit;

        (void) option;
        if (memory_unit_parse(str_from(value), &unit) != 0)
                return fault_set(fault, -EINVAL, "must be a unit of memory, as GiB or 128MiB");
        o->convert.unit_mib = unit.mib;
        return 0;
}

static int take_card(void *options, const Option *option, const char *value, Fault *fault) {
        Options *o = options;
        MemoryUnit size;

        (void) option;
        if (memory_unit_parse(str_from(value), &size) != 0 || size.mib > CARD_MIB_MAX)
                return fault_set(fault, -EINVAL,
                                 "must be the memory of a card, as nvidia-smi prints it: 81559MiB");
        o->convert.card_mib = size.mib;
        return 0;
}

static const Option option_list[] = {
        {"filename", "FILE", "a manifest; - is standard input", OPTION_TO_TEXT(Options, file), .letter = 'f'},
        {"unit", "UNIT", "the nodes' unit of aliyun.com/gpu-mem (default GiB)", OPTION_TO_CALL(take_unit)},
        {"card", "MEMORY",
         "memory of a card, as nvidia-smi --query-gpu=memory.total --format=csv prints it, 81559MiB; for "
         "requests in percent and whole cards",
         OPTION_TO_CALL(take_card)},
};

static const OptionsTable table = {
        .program = "aliquot convert",
        .usage = "[OPTION...] -f FILE | FILE...",
        .about = "Rewrites manifests for HAMi or vgpu-manager to Aliquot's resources, and prints them. "
                 "Notes about what changed go to standard error.",
        .end = "Exit status: 0 done, 1 a note says what was kept or left as it is, or of what fewer fit than "
               "before, 2 wrong usage or manifest, 3 broken.",
        .options = option_list,
        .n = ELEMENTSOF(option_list),
        .takes_words = true,
};

typedef struct Reading {
        const Options *options;
        const char *file;
        unsigned documents; /* number of documents in all files */
        bool left;
        ConvertMix mix;
        Buf out, notes; /* printed when all files have been converted */
} Reading;

static void on_note(void *userdata, const char *object, const char *text) {
        Reading *reading = userdata;

        buf_appendf(&reading->notes, "%s: %s: %s\n", reading->file, object, text);
}

static int on_document(void *userdata, Str json, unsigned line, Fault *fault) {
        Reading *reading = userdata;
        json_error_t error;
        json_t *document = json_loadb(json.data, json.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
        int r;

        if (!document)
                return fault_set(fault, YAML_E_MALFORMED, "the document at line %u: %s", line, error.text);
        if (!json_is_object(document) && !json_is_array(document)) {
                json_decref(document);
                return fault_set(fault, YAML_E_MALFORMED,
                                 "the document at line %u is no manifest, must be an object", line);
        }
        r = convert_document(document, &reading->options->convert, &reading->mix, on_note, reading);
        if (r >= 0) {
                reading->left |= r == CONVERT_E_LEFT;
                if (reading->documents++ > 0)
                        buf_append_str(&reading->out, STR("---\n"));
                yaml_write(document, &reading->out);
                r = buf_result(&reading->out);
        }
        json_decref(document);
        return r;
}

static int convert_file(Reading *reading, const char *file, Fault *fault) {
        _cleanup_buf_ Buf text = BUF_NULL;
        int r = file_read(file, MANIFEST_MAX, &text);

        reading->file = strcmp(file, "-") == 0 ? "standard input" : file;
        if (r < 0)
                return fault_set(fault, YAML_E_MALFORMED, "cannot be read: %s", strerror(-r));
        if (text_form_wrong(buf_str(&text)))
                return fault_set(fault, YAML_E_MALFORMED, "%s", text_form_wrong(buf_str(&text)));
        return yaml_documents(buf_str(&text), on_document, reading, fault);
}

/* Adds a note where pods of the files fitted on a card together and do not now. */
static int check_mix(Reading *reading) {
        const ConvertOptions *convert = &reading->options->convert;
        _cleanup_buf_ Buf text = BUF_NULL;
        int r = convert_mix_check(&reading->mix, convert->card_mib, convert->card_mib / convert->unit_mib,
                                  &text);

        if (r == 0 && text.len > 0) {
                buf_appendf(&reading->notes, "aliquot convert: pods of different amounts: %s\n", text.data);
                reading->left = true;
        }
        return r;
}

/* Prints notes and documents, when all files were read: a malformed file leaves no output. Returns
 * 0 or negative errno. */
static int print_reading(const Reading *reading) {
        int r = buf_result(&reading->notes);

        if (r < 0)
                return r;
        if (reading->documents == 0)
                (void) fputs("aliquot convert: nothing to convert\n", stderr);
        if (reading->notes.len > 0)
                (void) fwrite(reading->notes.data, 1, reading->notes.len, stderr);
        if (reading->out.len > 0 &&
            fwrite(reading->out.data, 1, reading->out.len, stdout) != reading->out.len)
                return -errno;
        return fflush(stdout) == 0 ? 0 : -errno;
}

static int convert_files(Reading *reading, const char *file, char **more) {
        Fault fault = FAULT_NULL;
        int r = file ? convert_file(reading, file, &fault) : 0;

        for (size_t i = 0; more[i] && r == 0; i++)
                r = convert_file(reading, more[i], &fault);
        if (r == 0)
                r = check_mix(reading);
        if (r == 0)
                r = print_reading(reading);
        if (r > 0) {
                (void) fprintf(stderr, "aliquot convert: %s: %s\n", reading->file, fault.text);
                return OPTIONS_EXIT_USAGE;
        }
        if (r < 0) {
                (void) fprintf(stderr, "aliquot convert: %s\n", strerror(-r));
                return OPTIONS_EXIT_BROKEN;
        }
        return reading->left ? EXIT_LEFT : 0;
}

int convert_main(int argc, char **argv) {
        Options o = {.convert = {.unit_mib = MEMORY_UNIT_GIB.mib}};
        Reading reading = {.options = &o};
        char **files = NULL;
        int r = options_parse(&table, argc, argv, &o, &files);

        if (r != OPTIONS_GO)
                return r;
        if (!o.file && !files[0])
                return options_wrong(&table, "a manifest is missing");
        r = convert_files(&reading, o.file, files);
        buf_done(&reading.out);
        buf_done(&reading.notes);
        convert_mix_done(&reading.mix);
        return r;
}
