/* SPDX-License-Identifier: Apache-2.0 */
#include "share/unserved_key.h"

#include "share/request.h"
#include "wire/pod_gang.h"
#include "wire/topology_keys.h"

/* Keys of pods with a share. */
static const char *of_share(const Pod *pod, bool has_gangs) {
        if (!str_is_empty(pod->topology_job) && !request_is_whole(pod))
                return "label " LABEL_TOPOLOGY_JOB " has no effect: the pod asks for no " RESOURCE_GPU;
        if (!str_is_empty(pod->topology_job) && !has_gangs)
                return "label " LABEL_TOPOLOGY_JOB " has no effect: the pods of a job are placed one by one";
        if (!str_is_empty(pod->annotations.cpuset))
                return "annotation " ANNOTATION_CPUSET " has no effect: CPUs are not placed by NUMA node";
        if (!str_is_empty(pod->annotations.numa_spec))
                return "annotation " ANNOTATION_NUMA_SPEC " has no effect: CPUs are not placed by NUMA node";
        return NULL;
}

/* Keys of gangs: members without a share have them, too. */
static const char *of_gang(const Pod *pod, bool has_gangs) {
        const PodGangKeys *keys = &pod->gang_keys;

        if (!str_is_empty(pod->topology_job))
                return NULL;
        if (!pod->names_gang && keys->native)
                return "spec.schedulingGroup has no effect: Workload and PodGroup objects are not read, and "
                       "a "
                       "gang has the labels " LABEL_GANG_NAME " and " LABEL_GANG_MIN;
        if (!pod->names_gang)
                return keys->pod_group ? "label " LABEL_POD_GROUP " has no effect: PodGroup objects are not "
                                         "read, and a gang has the labels " LABEL_GANG_NAME
                                         " and " LABEL_GANG_MIN
                                       : NULL;
        if (!has_gangs)
                return "the pod's gang has no effect: gangs are off, and the pods are placed one by one";
        if (!keys->min)
                return "the pod names a gang and has no label " LABEL_GANG_MIN
                       ": PodGroup objects are not read, "
                       "and a gang without the number on any member is placed pod by pod";
        if (keys->groups)
                return "the groups of the pod's gang have no effect: each gang is placed by itself";
        if (!str_is_empty(keys->match) && !str_eq(keys->match, STR("once-satisfied")))
                return "the match-policy of the pod's gang has no effect: it is once-satisfied for all gangs";
        return NULL;
}

const char *unserved_key_of(const Pod *pod, bool has_share, bool has_gangs) {
        const char *text = has_share ? of_share(pod, has_gangs) : NULL;

        return text ? text : of_gang(pod, has_gangs);
}
