/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/doctor.h"

#include "cli/doctor/check_cluster.h"
#include "cli/doctor/check_control.h"
#include "cli/doctor/check_machine.h"
#include "cli/doctor/check_node.h"

const DoctorCheck doctor_checks[] = {
        {"kernel", "is Linux new enough?", SCOPE_MACHINE, check_machine_kernel},
        {"driver", "is an NVIDIA driver loaded, of a known branch?", SCOPE_MACHINE, check_machine_driver},
        {"devices", "are the driver's files there?", SCOPE_MACHINE, check_machine_devices},
        {"uvm", "is nvidia-uvm loaded?", SCOPE_MACHINE, check_machine_uvm},
        {"nvml", "does NVML answer, and is it the driver's?", SCOPE_MACHINE, check_machine_nvml},
        {"cards", "is each card healthy, without MIG?", SCOPE_MACHINE, check_machine_cards},
        {"locks", "can the driver's files be locked?", SCOPE_MACHINE, check_machine_locks},
        {"slices", "has the directory of the slices room?", SCOPE_MACHINE, check_machine_slices},
        {"outside", "is memory of the cards held in slices alone?", SCOPE_MACHINE, check_machine_outside},
        {"library", "is libaliquot.so there, and in use?", SCOPE_MACHINE, check_machine_library},
        {"selinux", "may containers use the files of slices?", SCOPE_MACHINE, check_machine_selinux},
        {"kubelet", "does the kubelet's PodResources answer?", SCOPE_NODE, check_node_kubelet},
        {"kubelet-policy", "do CPU manager and Topology Manager fit?", SCOPE_NODE, check_node_policy},
        {"runtime", "which container runtime is here?", SCOPE_NODE, check_node_runtime},
        {"cdi", "is CDI switched on?", SCOPE_NODE, check_node_cdi},
        {"run-shared", "is /run a shared mount?", SCOPE_NODE, check_node_run_shared},
        {"agent", "does the node agent serve?", SCOPE_NODE, check_node_agent},
        {"records", "are the agent's records those of the kubelet?", SCOPE_NODE, check_node_records},
        {"other-plugin", "is another plugin for GPUs registered?", SCOPE_NODE, check_node_other_plugin},
        {"api", "does the API server answer, in a known version?", SCOPE_CLUSTER, check_cluster_api},
        {"nodes", "is each sharing node Ready, and offers its cards?", SCOPE_CLUSTER, check_cluster_nodes},
        {"labels", "are the nodes' labels and annotations good?", SCOPE_CLUSTER, check_cluster_labels},
        {"agents", "has each sharing node an agent that answers?", SCOPE_CLUSTER, check_cluster_agents},
        {"conditions", "has a node a condition of trouble?", SCOPE_CLUSTER, check_cluster_conditions},
        {"memory", "has a card memory that no pod accounts for?", SCOPE_CLUSTER, check_cluster_memory},
        {"changes", "does a change of mode or unit wait?", SCOPE_CLUSTER, check_cluster_changes},
        {"kubelet-policies", "do the kubelets' policies fit?", SCOPE_CLUSTER, check_cluster_policies},
        {"other-plugins", "does a sharing node offer nvidia.com/gpu, too?", SCOPE_CLUSTER,
         check_cluster_plugins},
        {"runtimes", "do the container runtimes know CDI?", SCOPE_CLUSTER, check_cluster_runtimes},
        {"extender", "does the extender answer?", SCOPE_CLUSTER, check_control_extender},
        {"leader", "does one scheduler lead?", SCOPE_CLUSTER, check_control_leader},
        {"kube-scheduler", "is there a kube-scheduler that asks it?", SCOPE_CLUSTER,
         check_control_kube_scheduler},
        {"webhook", "is the webhook configured, with a valid CA?", SCOPE_CLUSTER, check_control_webhook},
        {"certificate", "is the webhook's certificate valid?", SCOPE_CLUSTER, check_control_certificate},
        {"admission", "does a GPU pod pass the webhook, in a dry run?", SCOPE_CLUSTER,
         check_control_admission},
        {"network", "do NetworkPolicies fit?", SCOPE_CLUSTER, check_control_network},
        {"clock", "do the clocks agree?", SCOPE_CLUSTER, check_control_clock},
        {"versions", "do all pods of aliquot have one version?", SCOPE_CLUSTER, check_control_versions},
};

const size_t doctor_n_checks = ELEMENTSOF(doctor_checks);

void doctor_judge(const DoctorCheck *check, const Facts *f, Finding *ret) {
        *ret = (Finding){.grade = GRADE_SKIPPED};
        check->judge(f, ret);
        finding_close(ret);
        if (f->cluster.namespace_[0] != '\0')
                questions_localize(f->cluster.namespace_, &ret->mend);
}
