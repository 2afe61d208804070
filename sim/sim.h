/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the driver's resource server knows (src/nvidia/src/libraries/resserv in NVIDIA's sources,
 * which the names here are from): open files own clients, a client owns a tree of objects by
 * handle, and some objects hold memory of a card. Pure: no system call, one thread. Functions that
 * answer a uint32_t answer the driver's status, RM_OK or RM_ERR_*. */

#include "base/hash.h"
#include "sim/card.h"

typedef struct Sim Sim;
typedef struct SimFile SimFile;
typedef struct SimClient SimClient;
typedef struct SimObject SimObject;

enum {
        SIM_CARDS_MAX = 32,                 /* NV_MAX_DEVICES */
        SIM_FILE_OBJECTS_MAX = 64 * 1024,   /* of one open file, clients included */
        SIM_OBJECTS_MAX = 1024 * 1024,      /* of all */
        SIM_DEPTH_MAX = 6,                  /* RS_MAX_RESOURCE_DEPTH */
        SIM_GROUP_BYTES = 16 * 1024 * 1024, /* what the driver itself takes for a channel group */
};

typedef enum SimFileKind { SIM_FILE_CTL, SIM_FILE_CARD, SIM_FILE_UVM, SIM_FILE_UVM_TOOLS } SimFileKind;

struct SimObject {
        uint32_t handle, class_;
        uint32_t card;  /* whose device it is below; SIM_CARDS_MAX: no card's */
        unsigned depth; /* of the client's own object: 0 */
        SimClient *client;
        SimObject *parent, *children, *next, **link; /* link: where the pointer to it stands */
        SimBlock *block; /* class 0x40, or what the driver took for a group; or NULL */
        bool owner;      /* of the block: it was allocated and not duplicated */
        uint32_t place;  /* of a channel group on the card's engines, and 1; 0: it is none */
        UT_hash_handle hh;
};

struct SimClient {
        uint32_t handle, pid, uid; /* pid: of the process that made it, as the server sees it */
        uint32_t seen; /* the same as the caller of the control sees it that is being answered; 0: not */
        uint32_t next_handle;
        SimFile *file;
        SimObject *objects; /* by handle */
        SimObject *root;
        SimClient *next, **link; /* of the same file */
        UT_hash_handle hh;
};

/* Places for objects that travel with a file: handles of the driver's own client, 0 where there is
 * none. */
typedef struct SimExports {
        uint32_t *handles;
        uint16_t n;      /* 0: it is no such file */
        uint32_t device; /* instance, as the exporter named it; SIM_CARDS_MAX: none */
        uint8_t metadata[64];
} SimExports;

struct SimFile {
        Sim *sim;
        SimFileKind kind;
        uint32_t card;    /* of SIM_FILE_CARD: index */
        bool registered;  /* RM_ESC_REGISTER_FD was done */
        bool initialized; /* UVM_INITIALIZE was done */
        bool hmm;         /* and did not say no to it: then plain memory is the card's, too */
        size_t n_objects;
        SimClient *clients;
        SimExports exports;
};

/* Who is told when a channel group gets a place on its card's engines, and when it leaves it. */
typedef struct SimListener {
        void (*enter)(void *data, uint32_t card, uint32_t place, const SimObject *group);
        void (*leave)(void *data, uint32_t card, uint32_t place);
        void *data;
} SimListener;

struct Sim {
        SimListener listener;
        SimCard *cards;
        size_t n_cards;
        SimClient *clients; /* by handle, in the order in which they were made */
        uint32_t next_client;
        size_t n_files, n_objects, max_objects, max_file_objects;
        SimFile *exporter; /* the driver's own, whose client has what was exported; NULL while nothing is */
        size_t n_exported;
};

/* reserved: bytes that the driver keeps of each card. 0, -E2BIG for more than SIM_CARDS_MAX cards,
 * -ERANGE, -ENOMEM. */
int sim_init(Sim *s, const CardList *cards, uint64_t reserved);
void sim_done(Sim *s); /* all files must be closed */

SimFile *sim_file_open(Sim *s, SimFileKind kind, uint32_t card); /* NULL: no memory */
void sim_file_close(SimFile *f);                                 /* and all that is its own */

typedef struct SimProcess {
        uint32_t pid, uid;
} SimProcess;

/* wanted: 0, or the handle that the client asks for. */
uint32_t sim_client_new(SimFile *f, uint32_t wanted, SimProcess who, SimClient **ret);
/* The client of a call on this file: INVALID_OBJECT_HANDLE when there is none, INVALID_CLIENT when
 * it is another file's. */
uint32_t sim_client_get(const SimFile *f, uint32_t handle, SimProcess who, SimClient **ret);
SimClient *sim_client_find(const Sim *s, uint32_t handle); /* anybody's; NULL */
void sim_client_free(SimClient *c);

SimObject *sim_object_find(const SimClient *c, uint32_t handle); /* NULL */

typedef struct SimWish {
        uint32_t parent, handle; /* handle: 0 for one that is made here */
        uint32_t class_;
        uint32_t instance; /* of class 0x80: which card; of 0x2080: must be 0 */
        uint64_t bytes;    /* of class 0x40, rounded */
} SimWish;

/* Nothing is changed unless it answers RM_OK. */
uint32_t sim_object_new(SimClient *c, const SimWish *wish, SimObject **ret);
/* One more reference to what `source` of another client, or the same, is, below the object `parent`
 * of c. */
uint32_t sim_object_dup(SimClient *c, uint32_t parent, uint32_t wanted, SimClient *from, uint32_t source,
                        SimObject **ret);
void sim_object_free(
        SimObject *o); /* and all below it; not a client's own object: sim_client_free() does that */
