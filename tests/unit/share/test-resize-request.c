/* SPDX-License-Identifier: Apache-2.0 */
#include "share/resize_request.h"
#include "test.h"

static const ResizeLimit limits[] = {
        {.name = {"main", 4}, .index = 0, .mem = 8, .core = 60, .cards = 1},
        {.name = {"side", 4}, .index = 2, .mem = 4, .cards = 1},
};
static const ResizeLimit wide[] = {{.name = {"main", 4}, .index = 0, .mem = 8, .cards = 4}};

static const ResizeLimit grows[] = {
        {.name = {"main", 4}, .index = 0, .mem = 8, .core = 60, .cards = 2, .grows = true}};
static const ResizeLimit uneven[] = {{.name = {"main", 4}, .index = 0, .mem = 10, .cards = 3}};

typedef struct Case {
        const char *mem, *core;
        const ResizeLimit *limits;
        size_t n;
        uint32_t sizes[4];   /* mem and core of each */
        const char *refusal; /* NULL: none */
} Case;

#define BOTH   limits, 2
#define MAIN   limits, 1
#define WIDE   wide, 1
#define UNEVEN uneven, 1
#define GROWS  grows, 1

static const Case cases[] = {
        {"", "", BOTH, {8, 60, 4, 0}, NULL},
        {"6", "", MAIN, {6, 60}, NULL},
        {" 6\n", "50", MAIN, {6, 50}, NULL},
        {"8", "60", MAIN, {8, 60}, NULL},
        {"1", "5", MAIN, {1, 5}, NULL},
        {"", "30", BOTH, {8, 30, 4, 0}, NULL},
        {"{\"2\":3}", "", BOTH, {8, 60, 3, 0}, NULL},
        {"{\"0\":1,\"2\":3}", "{\"0\":5}", BOTH, {1, 5, 3, 0}, NULL},
        {"{}", "{}", BOTH, {8, 60, 4, 0}, NULL},
        {"4", "", WIDE, {4, 0}, NULL},
        {"9", "", UNEVEN, {9, 0}, NULL},
        {"10", "", UNEVEN, {10, 0}, NULL},
        {"8", "", UNEVEN, {0}, "must be a multiple of its 3 cards"},
        {"12", "65", GROWS, {12, 65}, NULL},
        {"13", "", GROWS, {0}, "must be a multiple of its 2 cards"},
        {"4294967296", "", GROWS, {0}, "does not grow beyond its limit"},
        {"2", "", UNEVEN, {0}, "must be a multiple of its 3 cards"},
        {"9",
         "",
         MAIN,
         {0},
         "annotation aliquot.dev/gpu-mem gives container 0 (\"main\") 9, and its limit of aliyun.com/gpu-mem "
         "is 8: a "
         "slice does not grow beyond its limit"},
        {"99999999999999999", "", MAIN, {0}, "does not grow beyond its limit"},
        {"0", "", MAIN, {0}, "gives container 0 (\"main\") 0, must be 1 at least"},
        {"0", "", WIDE, {0}, "gives container 0 (\"main\") 0, must be 4 at least"},
        {"", "0", MAIN, {0}, "gives container 0 (\"main\") 0, must be 5 at least"},
        {"6",
         "",
         BOTH,
         {0},
         "and 2 containers of the pod have a limit of aliyun.com/gpu-mem: it must name each"},
        {"6", "5", wide, 0, {0}, "and 0 containers of the pod have a limit"},
        {"", "10", WIDE, {0}, "there is nothing to resize"},
        {"x",
         "",
         MAIN,
         {0},
         "annotation aliquot.dev/gpu-mem is \"x\", must be a whole number, or one for each container as "
         "{\"0\":6}"},
        {"-1", "", MAIN, {0}, "must be a whole number"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\u00e9",
         "",
         MAIN,
         {0},
         "aaa\", must be"},
        {"1.5", "", MAIN, {0}, "must be a whole number"},
        {"6GiB", "", MAIN, {0}, "must be a whole number"},
        {"99999999999999999999", "", MAIN, {0}, "must be a whole number"},
        {"{\"0\":6", "", MAIN, {0}, "must be a whole number"},
        {"{\"0\":\"6\"}", "", MAIN, {0}, "must be a whole number"},
        {"{\"0\":-6}", "", MAIN, {0}, "must be a whole number"},
        {"{\"0\":6}x", "", MAIN, {0}, "must be a whole number"},
        {"[6]", "", MAIN, {0}, "must be a whole number"},
        {"{\"1\":6}", "", BOTH, {0}, "names container 1, which has no limit of aliyun.com/gpu-mem"},
        {"{\"main\":6}", "", BOTH, {0}, "names container main, which has no limit"},
        {"",
         "{\"2\":30}",
         BOTH,
         {0},
         "names container 2, which has no limit of aliyun.com/gpu-core.percentage"},
        {"{\"0\":6,\"0\":7}", "", BOTH, {0}, "names container 0 twice"},
        {"",
         "7",
         MAIN,
         {0},
         "annotation aliquot.dev/gpu-core gives container 0 (\"main\") 7, must be a multiple of 5"},
        {"", "65", MAIN, {0}, "its limit of aliyun.com/gpu-core.percentage is 60"},
        {"6", "", WIDE, {0}, "gives container 0 (\"main\") 6, must be a multiple of its 4 cards"},
};

static void reads_sizes(void) {
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const Case *c = &cases[i];
                ResizeSize sizes[2] = {{0}, {0}};
                Fault fault = FAULT_NULL;
                int r = resize_request_read(str_from(c->mem), str_from(c->core), c->limits, c->n, sizes,
                                            &fault);

                ASSERT_INT(r, c->refusal ? RESIZE_REQUEST_E_REFUSED : 0);
                if (c->refusal)
                        ASSERT_CONTAINS(fault.text, c->refusal);
                for (size_t k = 0; k < 2; k++) {
                        ASSERT_INT(sizes[k].mem, c->sizes[2 * k]);
                        ASSERT_INT(sizes[k].core, c->sizes[2 * k + 1]);
                }
        }
}

int main(void) {
        return TEST_MAIN(TEST(reads_sizes));
}
