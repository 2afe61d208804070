/* SPDX-License-Identifier: Apache-2.0 */

/* Makes and changes the files of a slice; declared in slice_files.h. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slicedir/slice_files-internal.h"

/* ---- making ---- */

static int write_at(int fd, const void *bytes, size_t size, size_t at) {
        size_t done = 0;

        while (done < size) {
                ssize_t n = pwrite(fd, (const char *) bytes + done, size - done, (off_t) (at + done));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                done += (size_t) n;
        }
        return 0;
}

void slice_files_close(SliceFds *fds) {
        cleanup_closep(&fds->limits);
        cleanup_closep(&fds->counters);
        *fds = SLICE_FDS_NULL;
}

/* Writes a new file under a name that is renamed afterwards. If a file was planted under that name,
 * it is unlinked and not written to. */
static int write_beside(int directory, const char *name, const void *bytes, size_t size, mode_t mode,
                        int *ret) {
        _cleanup_close_ int fd = -1;
        int r;

        if (unlinkat(directory, name, 0) < 0 && errno != ENOENT)
                return -errno;
        fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        if (fchmod(fd, mode) < 0) /* not reduced by the umask */
                return -errno;
        r = write_at(fd, bytes, size, 0);
        if (r == 0)
                *ret = TAKE_FD(fd);
        return r;
}

/* Replaces a file. The new one is open for writing before it has its name and until the caller
 * closes it, so no container can have leased it. */
static int replace_file(int directory, const char *name, const void *bytes, size_t size, mode_t mode,
                        int *ret, Fault *fault) {
        _cleanup_close_ int fd = -1;
        char beside[32];
        int r;

        /* Both names are constants, and short. */
        (void) snprintf(beside, sizeof beside, "%s.new", name);
        r = write_beside(directory, beside, bytes, size, mode, &fd);
        if (r == 0 && renameat(directory, beside, directory, name) < 0)
                r = -errno;
        if (r == 0) {
                *ret = TAKE_FD(fd);
                return 0;
        }
        (void) unlinkat(directory, beside, 0);
        return fault_set(fault, r, "cannot write the slice's %s: %s", name, strerror(-r));
}

static int make_limits(int directory, const SliceSpec *spec, int *ret, Fault *fault) {
        SliceLimits l = {.magic = SLICE_LIMITS_MAGIC,
                         .version = SLICE_VERSION,
                         .size = sizeof l,
                         .limit = spec->limit,
                         .card_bytes = spec->card_bytes,
                         .group_bytes = spec->group_bytes,
                         .granted = spec->granted,
                         .granted_percent = spec->granted_percent,
                         .card = spec->card,
                         .core_percent = spec->request.percent,
                         .flags = spec->flags,
                         .ctl = spec->ctl,
                         .device = spec->device,
                         .uvm = spec->uvm,
                         .asked_limit = spec->granted > 0 ? spec->granted : spec->limit,
                         .log = spec->log,
                         .weight = spec->request.weight,
                         .high_priority = spec->request.high_priority,
                         .policy = spec->compute.policy,
                         .max_inst = spec->compute.max_inst,
                         .prio_ratio = spec->compute.prio_ratio};

        if (strlen(spec->uuid) >= sizeof l.uuid)
                return fault_set(fault, -EINVAL, "uuid of card %u is longer than %zu characters: %s",
                                 spec->card, sizeof l.uuid - 1, spec->uuid);
        (void) snprintf(l.uuid, sizeof l.uuid, "%s", spec->uuid);
        /* snprintf() cuts it if it is too long. */
        (void) snprintf(l.container, sizeof l.container, "%s", spec->container);
        (void) snprintf(l.asked, sizeof l.asked, "%s", spec->asked);
        return replace_file(directory, "limits", &l, sizeof l, 0644, ret, fault);
}

static int keep_counters(int directory) {
        _cleanup_close_ int fd = -1;
        SliceCounters counters;
        int r = slice_files_open_file(directory, "counters", O_RDONLY, &fd);

        return r == 0 ? slice_files_load_counters(fd, &counters) : r;
}

/* Opens an existing file for reading and writing; -1 on any failure, as where it is leased or not
 * regular. */
static int open_writable(int directory, const char *name) {
        int fd = -1;

        (void) slice_files_open_file(directory, name, O_RDWR, &fd);
        return fd;
}

static int make_counters(int directory, int *ret, Fault *fault) {
        SliceCounters c;
        int r = keep_counters(directory);

        if (r == 0) {
                *ret = open_writable(directory, "counters");
                return 0;
        }
        if (r < 0 && r != -ENOENT)
                return fault_set(fault, r, "cannot read the slice's counters: %s", strerror(-r));
        memset(&c, 0, sizeof c);
        c.magic = SLICE_COUNTERS_MAGIC;
        c.version = SLICE_VERSION;
        c.size = sizeof c;
        return replace_file(directory, "counters", &c, sizeof c, 0666, ret,
                            fault); /* writable for any user of the container */
}

/* An existing FIFO stays, because a container may have it mounted. */
static int make_doorbell(int directory, Fault *fault) {
        struct stat st;
        int r = fstatat(directory, SLICE_DOORBELL, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;

        if (r == 0 && !S_ISFIFO(st.st_mode))
                r = unlinkat(directory, SLICE_DOORBELL, 0) < 0 ? -errno : -ENOENT;
        if (r == -ENOENT)
                r = mkfifoat(directory, SLICE_DOORBELL, 0600) < 0 ? -errno : 0;
        /* Not reduced by the umask. */
        if (r == 0 && fchmodat(directory, SLICE_DOORBELL, 0666, 0) < 0)
                r = -errno;
        return r < 0 ? fault_set(fault, r, "cannot make the slice's doorbell: %s", strerror(-r)) : 0;
}

/* Without OFD locks the preloaded library could open no slice and would refuse all memory. The
 * error comes before a container starts. */
static int check_kernel(int directory, Fault *fault) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

        if (fcntl(directory, F_OFD_GETLK, &lock) < 0 && errno == EINVAL)
                return fault_set(
                        fault, -EOPNOTSUPP,
                        "memory cannot be isolated on this kernel: it has no locks of open files (OFD), "
                        "which Linux has since 3.15");
        return 0;
}

/* `limits` is made last: its presence marks the slice as complete. */
int slice_files_make_open(int directory, const SliceSpec *spec, SliceFds *ret_fds, Fault *fault) {
        _cleanup_(slice_files_close) SliceFds fds = SLICE_FDS_NULL;
        int r = check_kernel(directory, fault);

        if (r == 0)
                r = make_counters(directory, &fds.counters, fault);
        if (r == 0)
                r = make_doorbell(directory, fault);
        if (r == 0)
                r = make_limits(directory, spec, &fds.limits, fault);
        if (r < 0)
                return r;
        *ret_fds = fds;
        fds = SLICE_FDS_NULL;
        return 0;
}

int slice_files_make(int directory, const SliceSpec *spec, Fault *fault) {
        _cleanup_(slice_files_close) SliceFds fds = SLICE_FDS_NULL;

        return slice_files_make_open(directory, spec, &fds, fault);
}

void slice_files_open(int directory, SliceFds *ret_fds) {
        *ret_fds = (SliceFds){.limits = open_writable(directory, "limits"),
                              .counters = open_writable(directory, "counters")};
}

/* ---- changing ---- */

static uint64_t generation_of(const SliceLimits *limits) {
        return atomic_load_explicit(&limits->generation, memory_order_relaxed);
}

/* The next odd generation after this one, which is odd itself if a writer was killed. */
static uint64_t odd_after(uint64_t generation) {
        return (generation | 1) + (generation % 2 == 1 ? 2 : 0);
}

/* Writes the size, with an odd generation until it is complete. Generation and limit are neighbours
 * and go out in one write. A process killed between the writes leaves an odd generation, with the
 * new limit and the old percent; the next write completes it. */
static int write_size(int fd, uint64_t generation, uint64_t bytes, uint32_t percent) {
        uint64_t words[2] = {odd_after(generation), bytes};
        int r;

        _Static_assert(offsetof(SliceLimits, limit) == offsetof(SliceLimits, generation) + sizeof(uint64_t),
                       "one write");
        r = write_at(fd, words, sizeof words, offsetof(SliceLimits, generation));
        if (r == 0)
                r = write_at(fd, &percent, sizeof percent, offsetof(SliceLimits, core_percent));
        words[0]++;
        return r < 0 ? r : write_at(fd, words, sizeof words[0], offsetof(SliceLimits, generation));
}

static bool says_size(const SliceLimits *l, uint64_t bytes, uint32_t percent) {
        return generation_of(l) % 2 == 0 && l->limit == bytes && l->core_percent == percent;
}

static bool says_compute(const SliceLimits *l, const CardCompute *c) {
        return generation_of(l) % 2 == 0 && l->policy == c->policy && l->max_inst == c->max_inst &&
               l->prio_ratio == c->prio_ratio;
}

/* Writes only these words, because the arbiter writes the schedule in the same page through its
 * mapping. */
static int write_compute(int fd, uint64_t generation, const CardCompute *c) {
        const uint32_t words[] = {c->policy, c->max_inst, c->prio_ratio};
        uint64_t word = odd_after(generation);
        int r;

        _Static_assert(offsetof(SliceLimits, max_inst) == offsetof(SliceLimits, policy) + 4 &&
                               offsetof(SliceLimits, prio_ratio) == offsetof(SliceLimits, policy) + 8,
                       "one write");
        r = write_at(fd, &word, sizeof word, offsetof(SliceLimits, generation));
        if (r == 0)
                r = write_at(fd, words, sizeof words, offsetof(SliceLimits, policy));
        word++;
        return r < 0 ? r : write_at(fd, &word, sizeof word, offsetof(SliceLimits, generation));
}

static int open_limits(int directory, SliceLimits *limits, int *ret) {
        _cleanup_close_ int fd = -1;
        int r = slice_files_open_file(directory, "limits", O_RDWR, &fd);

        if (r == 0)
                r = slice_files_load_limits(fd, limits);
        if (r == 0)
                *ret = TAKE_FD(fd);
        return r;
}

static int judge_change(int r, Fault *fault) {
        if (r > 0)
                return fault_set(fault, r, "the slice's limits are not a page of version %d", SLICE_VERSION);
        return r < 0 ? fault_set(fault, r, "cannot write the slice's limits: %s", strerror(-r)) : 0;
}

int slice_files_set_size(int directory, uint64_t bytes, uint32_t percent, bool *ret_written, Fault *fault) {
        _cleanup_close_ int fd = -1;
        SliceLimits limits;
        int r = open_limits(directory, &limits, &fd);
        bool differs = r == 0 && !says_size(&limits, bytes, percent);

        if (differs)
                r = write_size(fd, generation_of(&limits), bytes, percent);
        if (ret_written)
                *ret_written = differs;
        return judge_change(r, fault);
}

int slice_files_set_compute(int directory, const CardCompute *compute, Fault *fault) {
        _cleanup_close_ int fd = -1;
        SliceLimits limits;
        int r = open_limits(directory, &limits, &fd);

        if (r == 0 && !says_compute(&limits, compute))
                r = write_compute(fd, generation_of(&limits), compute);
        return judge_change(r, fault);
}
