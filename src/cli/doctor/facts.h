/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* All that the checks look at. The facts are gathered first, each within a time limit, and the
 * checks judge them without any I/O. */

#include "cli/doctor/fact.h"
#include "cli/doctor/finding.h"
#include "cli/doctor/questions.h"
#include "gpu/cards/card_list.h"

/* Files below --root; of several paths the first one that exists. */
#define FACTS_FILES(X)                                                                                       \
        X(DRIVER, "/proc/driver/nvidia/version")                                                             \
        X(FILESYSTEMS, "/proc/filesystems")                                                                  \
        X(MOUNTS, "/proc/1/mountinfo")                                                                       \
        X(KUBELET_CONFIG, "/var/lib/kubelet/config.yaml")                                                    \
        X(CPU_STATE, "/var/lib/kubelet/cpu_manager_state")                                                   \
        X(CONTAINERD, "/etc/containerd/config.toml:/var/lib/rancher/k3s/agent/etc/containerd/config.toml")   \
        X(CRIO, "/etc/crio/crio.conf:/etc/crio/crio.conf.d/10-crio.conf")                                    \
        X(CDI, "/var/run/cdi/aliquot.dev-gpu.json")

typedef enum HostFile {
#define FACTS_ENUM(name, path) HOST_##name,
        FACTS_FILES(FACTS_ENUM)
#undef FACTS_ENUM
                HOST_FILES_,
} HostFile;

/* Paths of which only the existence is checked. */
typedef enum HostPath {
        PATH_CTL,
        PATH_UVM,
        PATH_CONTAINERD_SOCKET,
        PATH_CRIO_SOCKET,
        PATH_DOCKER_SOCKET,
        PATH_PLUGINS,
        HOST_PATHS_,
} HostPath;

typedef struct HostFacts {
        const char *root;
        char driver[512]; /* directory of the driver's files */
        bool simulated;   /* they belong to a simulated driver */
        char release[72]; /* release of the kernel, from uname() */
        Fact files[HOST_FILES_];
        bool paths[HOST_PATHS_]; /* whether they exist */
        /* entries of /proc/driver/nvidia/gpus; -1: simulated; or -errno */
        int n_gpus;
        unsigned n_cards;               /* device files of cards */
        int locks;                      /* result of file_check_locks() */
        Fact nvml;                      /* text: the driver's version, or "" */
        CardList cards;                 /* as NVML reports them */
        Fact slices;                    /* text: path of the slice directory */
        uint64_t slices_free, slices_n; /* free bytes of its file system; slices in it */
        /* text: lines about memory that processes outside of all slices hold, or "". Asked only on
         * a machine with slices and without a kubelet. */
        Fact outside;
        bool selinux; /* the machine has it */
        /* a file for containers that lacks their SELinux label; "": none */
        char unlabelled[512];
        Fact library;      /* text: path of libaliquot.so beside this program */
        bool library_same; /* it equals the installed one, or none is installed */
        /* processes that have the library loaded; those of them that have another file */
        unsigned library_users, library_old;
        json_t *plugin_sockets; /* owned: names in the kubelet's folder of plugins */
        Fact agent_socket;      /* the node agent's plugin takes connections */
        /* json: "NAMESPACE/POD/CONTAINER RESOURCE" and the device IDs, by the kubelet and by the
         * agent's records */
        Fact pod_resources, records;
} HostFacts;

/* A Node that has a label or annotation of ours, or offers cards. */
typedef struct NodeFacts {
        char *name, *text; /* owned: the object's JSON */
        json_t *json;      /* owned: the same */
        bool shares;       /* its mode has aliyun.com/gpu-mem, or slices are held there */
        Fact configz;      /* the kubelet's configuration */
        Fact ready;        /* the answer of its agent's /readyz */
} NodeFacts;

enum { FACTS_NODES_ASKED = 64 }; /* most nodes with questions to kubelet and agent */

typedef struct ClusterFacts {
        Fact api[API_QUESTIONS_];
        /* namespace of the installation; "": the cluster is not asked */
        char namespace_[QUESTIONS_NAMESPACE_SIZE];
        NodeFacts *nodes; /* owned */
        size_t n_nodes;
} ClusterFacts;

typedef struct Facts {
        int64_t now; /* this machine's clock, in seconds since 1970 */
        HostFacts host;
        ClusterFacts cluster;
} Facts;

void facts_done(Facts *f);

#define _cleanup_facts_ _cleanup_(facts_done)
