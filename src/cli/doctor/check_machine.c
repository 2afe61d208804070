/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/check_machine.h"

#include <errno.h>
#include <string.h>

#include "base/selinux.h"
#include "node/publish/driver_release.h"

#define LOAD_DRIVER "modprobe nvidia && nvidia-modprobe -c 0 -u"

enum { MIB = 1 << 20 };

/* Locks of open files came with 3.15, and pidfd_open(2), which --on-excess=kill needs, with 5.3
 * (docs/operate/install.md). */
void check_machine_kernel(const Facts *f, Finding *ret) {
        const char *release = f->host.release;
        unsigned major = 0, minor = 0;

        if (sscanf(release, "%u.%u", &major, &minor) != 2)
                finding_set(ret, GRADE_SKIPPED, "the kernel's release is \"%s\"", release);
        else if (major < 3 || (major == 3 && minor < 15)) {
                finding_set(ret, GRADE_FAIL, "Linux %s has no locks of open files, which came with 3.15",
                            release);
                finding_mend(ret, "install a newer kernel");
        } else if (major < 5 || (major == 5 && minor < 3)) {
                finding_set(ret, GRADE_WARN,
                            "Linux %s: --on-excess=kill needs 5.3, where a process can be held while it is "
                            "checked",
                            release);
                finding_mend(ret, "install a newer kernel, or keep --on-excess=report");
        } else
                finding_set(ret, GRADE_OK, "Linux %s", release);
}

/* Returns the first word of the driver's line that is a version: "NVRM version: NVIDIA UNIX x86_64
 * Kernel Module  535.129.03  Thu Oct 19 ...". */
static Str version_in(const char *line) {
        Str rest = str_from(line), word;

        rest.len = strcspn(line, "\n");
        while (rest.len > 0) {
                word = str_split(&rest, ' ');
                if (word.len > 3 && word.data[0] >= '0' && word.data[0] <= '9' &&
                    memchr(word.data, '.', word.len))
                        return word;
        }
        return STR("");
}

static Str driver_version(const HostFacts *h) {
        if (h->files[HOST_DRIVER].state == FACT_KNOWN && !h->simulated)
                return version_in(h->files[HOST_DRIVER].text);
        return h->nvml.state == FACT_KNOWN ? str_from(h->nvml.text) : STR("");
}

void check_machine_driver(const Facts *f, Finding *ret) {
        Str version = driver_version(&f->host);
        DriverRelease release = driver_release_judge(version, false);

        if (f->host.files[HOST_DRIVER].state != FACT_KNOWN && !f->host.paths[PATH_CTL]) {
                finding_set(ret, GRADE_FAIL,
                            "no NVIDIA driver is loaded: neither %s/nvidiactl nor "
                            "/proc/driver/nvidia/version is there",
                            f->host.driver);
                finding_mend(ret, LOAD_DRIVER);
        } else if (!release.reason)
                finding_set(ret, GRADE_SKIPPED, "the driver does not tell its version");
        else if (!release.reason[0])
                finding_set(ret, GRADE_OK, "driver " STR_FMT, STR_ARG(version));
        else {
                finding_set(ret, release.refused ? GRADE_FAIL : GRADE_WARN, "%s", release.fault.text);
                finding_mend(ret, release.refused ? "install a driver of a known branch (docs/use/cards.md)"
                                                  : "install a version of aliquot that knows this driver");
        }
}

void check_machine_devices(const Facts *f, Finding *ret) {
        const HostFacts *h = &f->host;

        if (!h->paths[PATH_CTL])
                finding_set(ret, GRADE_FAIL, "%s/nvidiactl is not there", h->driver);
        else if (h->n_cards == 0)
                finding_set(ret, GRADE_FAIL, "%s has no file of a card (nvidia0)", h->driver);
        else if (h->n_gpus > 0 && h->n_cards < (unsigned) h->n_gpus)
                finding_set(ret, GRADE_FAIL, "the driver has %d cards, and %s has files of %u", h->n_gpus,
                            h->driver, h->n_cards);
        else
                finding_set(ret, GRADE_OK, "%s has nvidiactl and the files of %u card%s", h->driver,
                            h->n_cards, h->n_cards == 1 ? "" : "s");
        if (ret->grade == GRADE_FAIL)
                finding_mend(ret, LOAD_DRIVER "; nvidia-smi");
}

void check_machine_uvm(const Facts *f, Finding *ret) {
        if (f->host.paths[PATH_UVM]) {
                finding_set(ret, GRADE_OK, "%s/nvidia-uvm is there", f->host.driver);
                return;
        }
        finding_set(ret, GRADE_FAIL, "%s/nvidia-uvm is not there, so CUDA does not start in a container",
                    f->host.driver);
        finding_mend(ret, "modprobe nvidia-uvm && nvidia-modprobe -u -c 0");
}

void check_machine_nvml(const Facts *f, Finding *ret) {
        const HostFacts *h = &f->host;
        Str loaded = h->files[HOST_DRIVER].state == FACT_KNOWN && !h->simulated ? driver_version(h) : STR("");

        if (h->nvml.state == FACT_UNASKED)
                finding_set(ret, GRADE_SKIPPED, "without a driver NVML is not asked");
        else if (h->nvml.state != FACT_KNOWN) {
                finding_set(ret, GRADE_FAIL, "%s", h->nvml.why.text);
                finding_mend(ret, "nvidia-smi; dmesg | grep -i nvrm");
        } else if (loaded.len > 0 && h->nvml.text[0] && !str_eq(loaded, str_from(h->nvml.text))) {
                finding_set(ret, GRADE_FAIL, "NVML is of driver %s, and the loaded one is " STR_FMT,
                            h->nvml.text, STR_ARG(loaded));
                finding_mend(ret, "load the driver that is installed: restart the machine");
        } else
                finding_set(ret, GRADE_OK, "NVML answers, with %zu card%s", h->cards.n,
                            h->cards.n == 1 ? "" : "s");
}

void check_machine_cards(const Facts *f, Finding *ret) {
        const HostFacts *h = &f->host;

        if (h->nvml.state != FACT_KNOWN) {
                finding_set(ret, GRADE_SKIPPED, "NVML tells no cards");
                return;
        }
        for (size_t i = 0; i < h->cards.n; i++)
                if (!h->cards.cards[i].healthy &&
                    finding_add(ret, GRADE_FAIL, "gpu%u: %s", h->cards.cards[i].index,
                                h->cards.cards[i].trouble))
                        finding_mend(ret, "nvidia-smi -q; for MIG: nvidia-smi -i %u -mig 0",
                                     h->cards.cards[i].index);
        if (h->cards.n == 0)
                finding_set(ret, GRADE_FAIL, "the driver has no card");
        else
                finding_pass(ret, "%zu healthy, the first is a %s", h->cards.n, h->cards.cards[0].model);
}

void check_machine_locks(const Facts *f, Finding *ret) {
        int r = f->host.locks;

        if (r == -ENOLCK || r == -EINVAL) {
                finding_set(ret, GRADE_FAIL, "%s", driver_release_without_locks().fault.text);
                finding_mend(ret, "use a kernel of its own and not gVisor, or share nodes without isolation");
        } else if (!f->host.paths[PATH_CTL] || r < 0)
                finding_set(ret, GRADE_SKIPPED, "%s/nvidiactl: %s", f->host.driver,
                            strerror(r < 0 ? -r : ENOENT));
        else
                finding_set(ret, GRADE_OK, "the driver's files can be locked");
}

void check_machine_slices(const Facts *f, Finding *ret) {
        const HostFacts *h = &f->host;
        unsigned long long free_mib = h->slices_free / MIB;

        if (h->slices.state == FACT_ABSENT)
                finding_set(ret, GRADE_OK, "no slice was given out since the machine started");
        else if (h->slices.state != FACT_KNOWN)
                finding_set(ret, GRADE_SKIPPED, "%s", h->slices.why.text);
        else if (free_mib == 0) {
                finding_set(ret, GRADE_FAIL, "%s is full: no slice can be made", h->slices.text);
                finding_mend(ret, "df -h %s; aliquot smi", h->slices.text);
        } else
                finding_set(ret, GRADE_OK, "%llu in %s, %llu MiB free", (unsigned long long) h->slices_n,
                            h->slices.text, free_mib);
}

static bool has_no_slice(const HostFacts *h) {
        return h->slices.state == FACT_ABSENT || (h->slices.state == FACT_KNOWN && h->slices_n == 0);
}

void check_machine_outside(const Facts *f, Finding *ret) {
        const Fact *outside = &f->host.outside;
        Str rest;

        if (outside->state == FACT_UNASKED && f->host.paths[PATH_PLUGINS])
                finding_set(ret, GRADE_OK, "not asked on a node: its agent audits it");
        else if (outside->state == FACT_UNASKED && has_no_slice(&f->host))
                finding_set(ret, GRADE_OK, "there is no slice");
        else if (outside->state == FACT_UNASKED)
                finding_set(ret, GRADE_SKIPPED, "%s",
                            f->host.slices.state == FACT_KNOWN
                                    ? "there is no driver to ask, or this is a slice itself"
                                    : "the slices of this machine are not known");
        else if (outside->state != FACT_KNOWN)
                finding_set(ret, GRADE_SKIPPED, "%s", outside->why.text);
        if (outside->state != FACT_KNOWN)
                return;
        rest = str_from(outside->text);
        while (!str_is_empty(rest)) {
                Str line = str_split(&rest, '\n');

                if (finding_add(ret, GRADE_WARN, STR_FMT, STR_ARG(line)))
                        finding_mend(ret,
                                     "start the process by aliquot run, with a script's own libraries in "
                                     "LD_PRELOAD behind ours");
        }
        finding_pass(ret, "no process outside of slices holds memory of a card");
}

void check_machine_library(const Facts *f, Finding *ret) {
        const HostFacts *h = &f->host;

        if (h->library.state != FACT_KNOWN) {
                finding_set(ret, GRADE_FAIL, "%s", h->library.why.text);
                finding_mend(ret, "install libaliquot.so beside aliquot, or in ../lib/aliquot");
        } else if (!h->library_same) {
                finding_set(ret, GRADE_WARN, "%s is not the one that the node agent gives to containers",
                            h->library.text);
                finding_mend(ret, "use the same version of aliquot here and in the DaemonSet");
        } else if (h->library_old > 0) {
                finding_set(ret, GRADE_WARN, "%u of %u processes have an older libaliquot.so loaded",
                            h->library_old, h->library_users);
                finding_mend(ret, "they get the new one when their pods start again");
        } else
                finding_set(ret, GRADE_OK, "%s, loaded in %u processes", h->library.text, h->library_users);
}

/* The label matters because glibc skips a preload that it may not read. */
void check_machine_selinux(const Facts *f, Finding *ret) {
        const HostFacts *h = &f->host;

        if (h->files[HOST_FILESYSTEMS].state != FACT_KNOWN)
                finding_set(ret, GRADE_SKIPPED, "%s", h->files[HOST_FILESYSTEMS].why.text);
        else if (!h->selinux)
                finding_set(ret, GRADE_OK, "SELinux is off");
        else if (!h->unlabelled[0])
                finding_set(ret, GRADE_OK, "SELinux is on, and what containers get has their label");
        else {
                finding_set(ret, GRADE_FAIL,
                            "SELinux is on, and %s has not the label " SELINUX_CONTAINER_FILE, h->unlabelled);
                finding_mend(ret, "start the node agent again, and then the pods that use the file");
        }
}
