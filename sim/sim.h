/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The state of the driver's resource server (src/nvidia/src/libraries/resserv in NVIDIA's sources,
 * which the names here are from). Open files own clients, a client owns a tree of objects by
 * handle, and some objects hold memory of a card. Pure: no system call, one thread. Functions that
 * return a uint32_t return the driver's status, RM_OK or RM_ERR_*. */

#include "base/hash.h"
#include "sim/account.h"
#include "sim/card.h"
#include "sim/release.h"
#include "sim/timeshare.h"

typedef struct Sim Sim;
typedef struct SimFile SimFile;
typedef struct SimClient SimClient;
typedef struct SimObject SimObject;

enum {
        SIM_CARDS_MAX = 32,                 /* NV_MAX_DEVICES */
        SIM_FILE_OBJECTS_MAX = 64 * 1024,   /* of one open file, clients included */
        SIM_OBJECTS_MAX = 1024 * 1024,      /* of all */
        SIM_DEPTH_MAX = 6,                  /* RS_MAX_RESOURCE_DEPTH */
        SIM_GROUP_BYTES = 16 * 1024 * 1024, /* memory that the driver takes for each channel group */
};

typedef enum SimFileKind { SIM_FILE_CTL, SIM_FILE_CARD, SIM_FILE_UVM, SIM_FILE_UVM_TOOLS } SimFileKind;
struct SimObject {
        uint32_t handle, class_;
        uint32_t card;  /* card of the device above it; SIM_CARDS_MAX: none */
        unsigned depth; /* of the client's own object: 0 */
        SimClient *client;
        SimObject *parent, *children, *next, **link; /* link: the pointer to this object */
        SimBlock *block;        /* memory of class 0x40, or of a channel group; or NULL */
        bool owner;             /* it allocated the block; a duplicate did not */
        uint32_t slot;          /* slot of a channel group on the card's engines, plus 1; 0: none */
        SimTimeshare timeshare; /* of channels and channel groups */
        uint32_t *exports;      /* of class 0xE0: RM_EXPORT_MEM_MAX handles; or NULL */
        UT_hash_handle hh;
};

struct SimClient {
        uint32_t handle, pid, uid; /* pid of the process that made it, in the server's namespace */
        uint64_t started;          /* when that process started */
        uint32_t seen;             /* the same in the namespace of the current control's caller; 0: none */
        uint32_t next_handle;
        SimFile *file;
        SimObject *objects; /* by handle */
        SimObject *root;
        SimClient *next, **link; /* of the same file */
        UT_hash_handle hh;
};

/* Objects that were exported to a file, by index: handles of the driver's own client, or 0. */
typedef struct SimExports {
        uint32_t *handles;
        uint16_t n;      /* 0: nothing can be exported to it */
        uint32_t device; /* instance, of the exporter; SIM_CARDS_MAX: none */
        uint8_t metadata[64];
} SimExports;

struct SimFile {
        Sim *sim;
        SimFileKind kind;
        uint32_t card;    /* of SIM_FILE_CARD: index */
        bool registered;  /* RM_ESC_REGISTER_FD was done */
        bool initialized; /* UVM_INITIALIZE was done */
        bool hmm;         /* without the flag against it: then plain memory is the card's, too */
        uint32_t uvm_cards, uvm_spaces; /* registered cards, and those with a GPU VA space */
        struct SimUvmRange *uvm;        /* its ranges (uvm_space.h) */
        size_t n_uvm;                   /* ranges and mappings */
        size_t n_objects;
        SimClient *clients;
        SimExports exports;
};

struct Sim {
        SimRelease release; /* by the cards, unless it is changed after sim_init() */
        SimListener listener;
        SimAccount account;
        SimCard *cards;
        size_t n_cards;
        SimClient *clients; /* by handle, in the order of creation */
        uint32_t next_client;
        size_t n_files, n_objects, max_objects, max_file_objects;
        SimFile *exporter; /* the driver's own file, whose client has the exports; NULL: there are none */
        size_t n_exported;
};

/* reserved: bytes of each card that the driver keeps. 0, -E2BIG for more than SIM_CARDS_MAX cards,
 * -ERANGE, -ENOMEM. */
int sim_init(Sim *s, const CardList *cards, uint64_t reserved);
void sim_done(Sim *s);                                           /* all files must be closed */
SimFile *sim_file_open(Sim *s, SimFileKind kind, uint32_t card); /* NULL: no memory */
void sim_file_close(SimFile *f);                                 /* with all that it owns */

/* wanted: the handle that the client asks for, or 0. INVALID_OBJECT_HANDLE: no such client;
 * INVALID_CLIENT: of another file. */
uint32_t sim_client_new(SimFile *f, uint32_t wanted, SimProcess process, SimClient **ret);
uint32_t sim_client_get(const SimFile *f, uint32_t handle, SimProcess process, SimClient **ret);
SimClient *sim_client_find(const Sim *s, uint32_t handle); /* of any file; NULL: none */
void sim_client_free(SimClient *c);

SimObject *sim_object_find(const SimClient *c, uint32_t handle); /* NULL */

typedef struct SimWish {
        uint32_t parent, handle; /* handle 0: the driver makes one */
        uint32_t class_;
        uint32_t instance; /* of class 0x80: which card; of 0x2080: must be 0 */
        uint64_t bytes;    /* of class 0x40, rounded */
        SimCharge *charge; /* for them; the memory owns it on success */
} SimWish;

/* Changes nothing unless it returns RM_OK. */
uint32_t sim_object_new(SimClient *c, const SimWish *wish, SimObject **ret);
/* Duplicates `source`, of the same or another client, below the object `parent` of c. */
uint32_t sim_object_dup(SimClient *c, uint32_t parent, uint32_t wanted, SimClient *from, uint32_t source,
                        SimObject **ret);
void sim_object_free(SimObject *o); /* with all below it; for a client's own object: sim_client_free() */
