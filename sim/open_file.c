/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>

#include "sim/export.h"
#include "sim/uvm_space.h"

SimFile *sim_file_open(Sim *s, SimFileKind kind, uint32_t card) {
        SimFile *f = calloc(1, sizeof *f);

        if (!f)
                return NULL;
        *f = (SimFile){.sim = s, .kind = kind, .card = card};
        s->n_files++;
        if (kind == SIM_FILE_CARD)
                sim_account_open(&s->account, card);
        return f;
}

/* RmFreeUnusedClients(): frees what the last copy of the file still held. */
void sim_file_close(SimFile *f) {
        sim_uvm_done(f);
        sim_exports_done(f);
        while (f->clients)
                sim_client_free(f->clients);
        assert(f->n_objects == 0);
        f->sim->n_files--;
        if (f->kind == SIM_FILE_CARD)
                sim_account_close(&f->sim->account, f->card);
        free(f);
}
