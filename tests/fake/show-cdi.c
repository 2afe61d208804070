/* SPDX-License-Identifier: Apache-2.0 */

/* Prints the CDI specification for cards as simulated by CARDS, with the driver found below ROOT:
 *     show-cdi CARDS ROOT
 *     show-cdi CARDS --simulate
 *     show-cdi --slice ROOT     of a slice of the cards with the minors 2 and 5
 * CARDS "" is no cards. */

#include "gpu/cards/cdi.h"
#include "gpu/cards/simulated_cards.h"

static int print(const char *cards, const char *root) {
        _cleanup_(driver_files_done) DriverFiles driver = {0};
        _cleanup_(card_list_done) CardList list = {0};
        bool simulated = strcmp(root, "--simulate") == 0;
        _cleanup_buf_ Buf text = BUF_NULL;
        Fault fault = FAULT_NULL;
        int r = 0;

        if (cards[0] != '\0')
                r = cards_simulate(str_from(cards), STR("node"), &list, &fault);
        if (r == 0 && !simulated)
                r = driver_files_find(root, &driver);
        if (r != 0) {
                (void) fprintf(stderr, "%s\n", r > 0 ? fault.text : strerror(-r));
                return 3;
        }
        cdi_write(&list, &driver, simulated, &text);
        if (text.len > 0)
                printf("%s\n", text.data);
        return buf_result(&text) < 0 ? 3 : 0;
}

static int print_slice(const char *root) {
        _cleanup_(driver_files_done) DriverFiles driver = {0};
        const CdiMount mounts[] = {{"/pages", "/.aliquot/slice", false},
                                   {"/pages/counters", "/.aliquot/slice/0/counters", true}};
        const char *const variables[] = {"ALIYUN_COM_GPU_MEM_CONTAINER=2",
                                         "NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b"};
        const uint32_t minors[] = {2, 5};
        _cleanup_buf_ Buf text = BUF_NULL;

        if (driver_files_find(root, &driver) < 0)
                return 3;
        cdi_write_slice(&(CdiSlice){.name = "train",
                                    .variables = variables,
                                    .n_variables = ELEMENTSOF(variables),
                                    .minors = minors,
                                    .n_minors = ELEMENTSOF(minors),
                                    .driver = &driver,
                                    .mounts = mounts,
                                    .n_mounts = ELEMENTSOF(mounts)},
                        &text);
        return buf_result(&text) == 0 && puts(text.data) >= 0 ? 0 : 3;
}

int main(int argc, char **argv) {
        if (argc == 3 && strcmp(argv[1], "--slice") == 0)
                return print_slice(argv[2]);
        return argc == 3 ? print(argv[1], argv[2]) : 2;
}
