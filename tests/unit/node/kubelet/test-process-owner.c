/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "node/kubelet/process_owner.h"
#include "test.h"
#include <stdio.h>
#include <stdlib.h>

#define PLAIN "0aae7c4e-5b9c-4c4e-9f0e-2f6d6b1f0001"
#define LOWER "0aae7c4e_5b9c_4c4e_9f0e_2f6d6b1f0001"
#define OTHER "1bbe7c4e-5b9c-4c4e-9f0e-2f6d6b1f0002"
#define ID    "4fd0aa0b6f1f2d1b0b0c6a1e9f0d4c3b2a190807060504030201000f0e0d0c0b"
#define SLICE "kubepods-burstable-pod" LOWER ".slice"

static bool owner_of(const char *text, size_t n, ProcessOwner *ret) {
        char *exact = malloc(n > 0 ? n : 1); /* exact size, so that the sanitizers see a read behind it */
        bool found;

        ASSERT_TRUE(exact != NULL);
        memcpy(exact, text, n);
        found = process_owner_parse((Str){exact, n}, ret);
        free(exact);
        return found;
}

static void expect(const char *text, const char *uid, const char *container) {
        ProcessOwner owner;

        ASSERT_TRUE(owner_of(text, strlen(text), &owner));
        ASSERT_TEXT(owner.uid, uid);
        ASSERT_TEXT(owner.container, container);
}

static void knows_pod_and_container(void) {
        static const char *const good[] = {
                "0::/kubepods/burstable/pod" PLAIN "/" ID "\n",
                "0::/kubepods/pod" PLAIN "/" ID,
                "0::/kubepods/besteffort/pod" PLAIN "/crio-" ID "\n",
                "0::/kubepods.slice/kubepods-burstable.slice/" SLICE "/cri-containerd-" ID ".scope\n",
                "0::/kubepods.slice/kubepods-pod" LOWER ".slice/crio-" ID ".scope\n",
                "0::/kubepods.slice/kubepods-burstable.slice/" SLICE "/docker-" ID ".scope\n",
                "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-" SLICE
                "/cri-containerd-" ID ".scope\n",
                "0::/my-pods.slice/my-pods-" SLICE "/cri-containerd-" ID ".scope\n",
                "12:pids:/kubepods/besteffort/pod" PLAIN "/" ID "\n11:memory:/kubepods/besteffort/pod" PLAIN
                "/" ID "\n1:name=systemd:/\n",
                "0::/../../burstable/pod" PLAIN "/" ID "\n",
                "0::/system.slice/containerd.service/" SLICE ":cri-containerd:" ID "\n",
        };

        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                expect(good[i], PLAIN, ID);
        expect("0::/kubepods/pod0123456789abcdef0123456789abcdef/c0\n", "0123456789abcdef0123456789abcdef",
               "c0"); /* a static pod */
}

/* Cgroups inside a container change nothing: those of a docker, of a systemd, or with misleading
 * names. */
static void the_outermost_pod_counts(void) {
        static const char *const nested[] = {
                "0::/kubepods/burstable/pod" PLAIN "/" ID "/docker/0123",
                "0::/kubepods/burstable/pod" PLAIN "/" ID "/init.scope",
                "0::/kubepods/burstable/pod" PLAIN "/" ID "/kubepods/pod" OTHER "/0123",
                "0::/kubepods.slice/" SLICE "/crio-" ID ".scope/container",
                "0::/kubepods.slice/" SLICE "/cri-containerd-" ID
                ".scope/system.slice/cri-containerd-0.scope",
                "0::/system.slice/docker-0123.scope/kubelet.slice/kubelet-" SLICE "/cri-containerd-" ID
                ".scope",
        };

        for (size_t i = 0; i < ELEMENTSOF(nested); i++)
                expect(nested[i], PLAIN, ID);
}

static void a_pod_without_container_is_found(void) {
        expect("0::/kubepods/burstable/pod" PLAIN "\n", PLAIN, "");
        expect("0::/kubepods/burstable/pod" PLAIN "/\n", PLAIN, "");
        expect("0::/kubepods.slice/" SLICE "\n", PLAIN, "");
        expect("0::/kubepods.slice/" SLICE ":\n", PLAIN, "");
        expect("0::/kubepods/pod" PLAIN "/with blank\n", PLAIN, "");
        expect("0::/kubepods/pod" PLAIN "/.scope\n", PLAIN, "");
        expect("0::/kubepods/pod" PLAIN "/cri-containerd-.scope\n", PLAIN, "");
        expect("0::/kubepods/pod" PLAIN "/" ID ID "0\n", PLAIN, ""); /* 129 characters */
        expect("0::/kubepods/pod" PLAIN "/" ID ID "\n", PLAIN, ID ID);
        /* Version 1: the line of another controller may name the container of the same pod. */
        expect("5:pids:/kubepods/pod" PLAIN "\n4:memory:/kubepods/pod" OTHER "/0\n3:cpu:/kubepods/pod" PLAIN
               "/" ID "\n",
               PLAIN, ID);
}

static void other_cgroups_are_in_no_pod(void) {
        static const char *const none[] = {
                "",
                "0::/\n",
                "0::/user.slice/user-0.slice/session-1.scope\n",
                "0::/machine/podman/x\n",
                "0::/pod\n",
                "0::/pod/pod\n",
                "0::/pod0aae7c4e\n",
                "0::/pod" PLAIN PLAIN "\n",
                "0::/pod0aae7c4e-5b9c-4c4e-9f0e-2f6d6b1f000G\n",
                "0::/kubepods-pod" LOWER ".scope\n",
                "0::/kubepods-pod" LOWER "\n",
                "////\n\n\n//",
                "0::/x-pod.slice\n",
                "0::/x-pod",
        };
        static const char zeros[256];
        ProcessOwner owner = {.uid = "kept"};

        for (size_t i = 0; i < ELEMENTSOF(none); i++)
                ASSERT_TRUE(!owner_of(none[i], strlen(none[i]), &owner));
        ASSERT_TRUE(!owner_of(zeros, sizeof zeros, &owner));
        ASSERT_TEXT(owner.uid, "kept");
}

static void reads_the_file(void) {
        static const char text[] = "0::/kubepods/burstable/pod" PLAIN "/" ID "\n";
        char proc[] = "/tmp/aliquot-proc-XXXXXX", path[64];
        ProcessOwner owner;
        int fd;

        ASSERT_TRUE(mkdtemp(proc) != NULL);
        (void) snprintf(path, sizeof path, "%s/7", proc);
        ASSERT_OK(mkdir(path, 0700));
        (void) snprintf(path, sizeof path, "%s/7/cgroup", proc);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ASSERT_INT(write(fd, text, strlen(text)), strlen(text));
        ASSERT_OK(close(fd));
        ASSERT_TRUE(process_owner_of(proc, 7, &owner));
        ASSERT_TEXT(owner.container, ID);
        ASSERT_TRUE(!process_owner_of(proc, 8, &owner));
        ASSERT_OK(unlink(path));
        (void) snprintf(path, sizeof path, "%s/7", proc);
        ASSERT_OK(rmdir(path));
        ASSERT_OK(rmdir(proc));
}

static void expect_path(const char *path, size_t n) {
        Str found = process_owner_container_path(str_from(path));

        ASSERT_INT(found.len, n);
        ASSERT_TRUE(n == 0 || found.data == path);
}

static void knows_the_cgroup_of_the_container(void) {
        static const char *const good[] = {
                "/kubepods/burstable/pod" PLAIN "/" ID,
                "/kubepods.slice/kubepods-burstable.slice/" SLICE "/cri-containerd-" ID ".scope",
                "/kubepods.slice/kubepods-burstable.slice/" SLICE "/crio-" ID ".scope",
                "/system.slice/containerd.service/" SLICE ":cri-containerd:" ID,
        };
        static const char other[] = "/kubepods/pod" OTHER "/" ID;
        const char *const below[] = {"", "/", "/container", "/docker/0", other};
        char path[512];

        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                for (size_t k = 0; k < ELEMENTSOF(below); k++) {
                        (void) snprintf(path, sizeof path, "%s%s", good[i], below[k]);
                        expect_path(path, strlen(good[i]));
                }
        expect_path("", 0);
        expect_path("/", 0);
        expect_path("/kubepods/burstable/pod" PLAIN, 0);
        expect_path("/kubepods/burstable/pod" PLAIN "/", 0);
        expect_path("/system.slice/x.service", 0);
        expect_path("/kubepods/burstable/pod" PLAIN "/not_an_id", 0);
}

int main(void) {
        return TEST_MAIN(TEST(knows_pod_and_container), TEST(knows_the_cgroup_of_the_container),
                         TEST(the_outermost_pod_counts), TEST(a_pod_without_container_is_found),
                         TEST(other_cgroups_are_in_no_pod), TEST(reads_the_file));
}
