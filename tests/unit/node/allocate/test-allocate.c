/* SPDX-License-Identifier: Apache-2.0 */

/* The claims of docs/internals/identity.md against a model of the kubelet. In any order of events,
 * each container's environment, its devices and its pod's annotation name the same cards. No two
 * living pods hold the same device. */

#include "kubelet-model.h"
#include "test.h"
#include "thorough.h"

enum { STEPS = 2000 };

static ModelPod *any(bool (*wanted)(const ModelPod *)) {
        size_t from = model.n_pods > 0 ? model_random((uint32_t) model.n_pods) : 0;

        for (size_t i = 0; i < model.n_pods; i++) {
                ModelPod *pod = &model.pods[(from + i) % model.n_pods];

                if (wanted(pod))
                        return pod;
        }
        return NULL;
}

static bool runs(const ModelPod *pod) {
        return pod->in_api && pod->active && pod->processes;
}
static bool waits(const ModelPod *pod) {
        return pod->in_api && pod->active && pod->admitted && !pod->processes;
}
static bool is_orphan(const ModelPod *pod) {
        return !pod->in_api && pod->processes;
}

/* No device has two living holders. Devices that the kubelet gave to another pod too early are not
 * used before the processes of the old holder have ended. */
static void check_exclusive(void) {
        for (size_t i = 0; i < model.n_pods; i++)
                for (size_t k = 0; k < i; k++)
                        for (size_t a = 0;
                             runs(&model.pods[i]) && runs(&model.pods[k]) && a < model.pods[i].n; a++)
                                for (size_t b = 0; b < model.pods[k].n; b++)
                                        for (int kind = 0; kind < DEVICE_KINDS_; kind++)
                                                ASSERT_FALSE(device_set_touches(
                                                        &model.pods[i].containers[a].held[kind],
                                                        &model.pods[k].containers[b].held[kind]));
}

static void start_new(bool kill) {
        ModelPod *pod = model_make_pod();

        if (!pod)
                return;
        ASSERT_TRUE(model_admit(pod, kill));
        model_check(pod);
        (void) model_prestart(pod);
}

static void step(void) {
        ModelPod *pod;

        switch (model_random(8)) {
        case 0:
        case 1:
                pod = any(runs);
                if (pod)
                        model_finish(pod);
                return;
        case 2:
                pod = any(runs);
                if (pod && model_random(3) == 0)
                        model_force_delete(pod);
                return;
        case 3:
                pod = any(is_orphan);
                if (pod)
                        model_end_processes(pod);
                return;
        case 4:
                pod = any(waits);
                if (pod)
                        (void) model_prestart(pod);
                return;
        case 5:
                if (model_random(4) == 0)
                        model_restart_agent();
                return;
        default:
                start_new(model_random(10) == 0);
        }
}

static void run(uint64_t seed) {
        ModelPod *pod;

        model_start(seed);
        for (int i = 0; i < STEPS; i++) {
                step();
                check_exclusive();
        }
        while ((pod = any(is_orphan)))
                model_end_processes(pod);
        while ((pod = any(waits)))
                ASSERT_TRUE(model_prestart(pod)); /* no orphan holds their devices */
        ASSERT_INT(model.rejected, 0);
        ASSERT_INT(model_orphans(), 0);
        while ((pod = any(runs)))
                model_finish(pod);
        ASSERT_INT(model_records(), 0); /* no record is left */
        model_end();
}

static void every_container_gets_its_cards(void) {
        for (uint64_t seed = 1; seed <= few_or_all(1, 4); seed++)
                run(seed);
}

static void missing_checkpoint_changes_nothing(void) {
        ModelPod *pod;

        model_start(77);
        model.checkpoint_gone = true;
        for (int i = 0; i < 200; i++) {
                pod = model_make_pod();
                if (!pod)
                        break;
                if (pod->containers[0].kind == CONTAINER_INIT ||
                    pod->n > 1) { /* only the checkpoint has init containers */
                        model_finish(pod);
                        continue;
                }
                ASSERT_TRUE(model_admit(pod, false));
                model_check(pod);
                ASSERT_TRUE(model_prestart(pod));
        }
        model_end();
}

static void records_decide_without_list(void) {
        model_start(9);
        model.never_lists = true;
        for (int i = 0; i < 12; i++) {
                ModelPod *pod = model_make_pod();

                if (!pod)
                        break;
                ASSERT_TRUE(model_admit(pod, false));
                model_check(pod);
                ASSERT_TRUE(model_prestart(pod));
        }
        model_end();
}

static void random_devices_do_not_start(void) {
        ModelPod *pod;
        int strayed = 0;

        model_start(5);
        model.ignore_preference = true;
        for (int i = 0; i < 40; i++) {
                bool right = true;

                pod = model_make_pod();
                if (!pod)
                        break;
                ASSERT_TRUE(model_admit(pod, false));
                for (size_t k = 0; k < pod->n; k++)
                        for (size_t d = 0; d < pod->containers[k].held[DEVICE_MEM].n; d++)
                                right &= pod->cards == 1 &&
                                         device_card(pod->containers[k].held[DEVICE_MEM].ids[d]) ==
                                                 pod->place[0];
                if (!right && pod->cards == 1) {
                        ASSERT_FALSE(model_prestart(pod));
                        strayed++;
                }
                model_finish(pod);
        }
        ASSERT_TRUE(strayed > 10);
        model_end();
}

int main(void) {
        return TEST_MAIN(TEST(every_container_gets_its_cards), TEST(missing_checkpoint_changes_nothing),
                         TEST(records_decide_without_list), TEST(random_devices_do_not_start));
}
