/* SPDX-License-Identifier: Apache-2.0 */

/* The mounts that Allocate names, and the directory that they come from. */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/selinux.h"
#include "node/isolation/isolation.h"
#include "scratch.h"
#include "slice/container_paths.h"
#include "test.h"
#include "wire/gate_cover.h"

enum { CARDS = 8, UNITS = 15 };

static char directory[64];

static bool labels; /* as of a machine with SELinux */

static Isolation begin(void) {
        char slices[96], gate[96];
        int fd;

        (void) snprintf(directory, sizeof directory, "/tmp/aliquot-mounts-XXXXXX");
        scratch_make(directory);
        (void) snprintf(slices, sizeof slices, "%s/slices", directory);
        (void) snprintf(gate, sizeof gate, "%s/given.so", directory);
        fd = open(gate, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        ASSERT_TRUE(fd >= 0 && write(fd, "gate", 4) == 4);
        ASSERT_OK(close(fd));
        {
                IsolationOptions o = {
                        .slices = slices, .labels = labels, .state_dir = directory, .library = gate};
                Isolation i;

                ASSERT_OK(isolation_init(&i, &o));
                ASSERT_TEXT(i.unavailable.text, "");
                return i;
        }
}

static void end(Isolation *i) {
        isolation_done(i);
        scratch_remove(directory);
}

/* One unit of each of the first n cards. */
static size_t mounts_of(const Isolation *i, DeviceId ids[], size_t n, ShareMode mode, Arena *arena,
                        PluginMount ret[static ISOLATION_MOUNTS]) {
        Inventory v = {.mode = mode};
        DeviceSet set = {.ids = ids, .n = n};
        int r;

        for (size_t k = 0; k < n; k++)
                ids[k] = device_id((uint32_t) k, 0);
        r = isolation_mounts(i, &v, &set, arena, ret);
        ASSERT_TRUE(r >= 0);
        return (size_t) r;
}

static const PluginMount *above(const PluginMount *mounts, size_t n, const char *path) {
        for (size_t i = 0; i < n; i++) {
                size_t length = strlen(mounts[i].container_path);

                if (strncmp(path, mounts[i].container_path, length) == 0 && path[length] == '/')
                        return &mounts[i];
        }
        return NULL;
}

/* A mount point cannot be renamed or removed. A directory above it can, unless it is a read-only
 * mount. The dynamic linker has the path of its preload file compiled in. */
static bool cannot_be_moved(const PluginMount *mounts, size_t at) {
        const char *path = mounts[at].container_path;
        const PluginMount *parent = above(mounts, at, path);

        if (strcmp(path, SLICE_PRELOAD) == 0 || strchr(path + 1, '/') == NULL)
                return mounts[at].read_only;
        return parent && parent->read_only && strchr(parent->container_path + 1, '/') == NULL;
}

static void no_mount_can_be_moved_away(void) {
        Isolation i = begin();
        PluginMount mounts[ISOLATION_MOUNTS];
        DeviceId ids[CARDS];

        for (size_t n = 1; n <= CARDS; n++) {
                Arena arena = ARENA_NULL;
                size_t found = mounts_of(&i, ids, n, SHARE_MODE_CORE_MEM, &arena, mounts);

                ASSERT_INT(found, 4 + 4 * n);
                for (size_t k = 0; k < found; k++)
                        ASSERT_TRUE(cannot_be_moved(mounts, k));
                arena_done(&arena);
        }
        end(&i);
}

/* The container may write counters and doorbell, and nothing else. */
static void only_counters_and_doorbells_are_writable(void) {
        Isolation i = begin();
        PluginMount mounts[ISOLATION_MOUNTS];
        DeviceId ids[CARDS];
        Arena arena = ARENA_NULL;
        size_t n = mounts_of(&i, ids, CARDS, SHARE_MODE_CGPU, &arena, mounts), writable = 0;

        for (size_t k = 0; k < n; k++) {
                const char *name = strrchr(mounts[k].container_path, '/');

                if (mounts[k].read_only)
                        continue;
                writable++;
                ASSERT_TRUE(strcmp(name, "/counters") == 0 || strcmp(name, "/doorbell") == 0);
        }
        ASSERT_INT(writable, 2 * CARDS);
        arena_done(&arena);
        end(&i);
}

/* The kubelet keeps the answer of Allocate, so a record must lead to the same directory. */
static void record_leads_to_what_allocate_named(void) {
        Isolation i = begin();
        PluginMount mounts[ISOLATION_MOUNTS];
        DeviceId ids[2];
        RecordContainer container = {.name = (char *) "main", .given[DEVICE_MEM] = {ids, 2}};
        char id[SLICEDIR_ID_SIZE], part[SLICEDIR_ID_SIZE + 2];
        Arena arena = ARENA_NULL;

        ASSERT_INT(mounts_of(&i, ids, 2, SHARE_MODE_CGPU, &arena, mounts), 4 + 4 * 2);
        isolation_slice_name(&container, id);
        (void) snprintf(part, sizeof part, "/%s/", id);
        ASSERT_CONTAINS(mounts[3].host_path, part);
        ASSERT_TEXT(id, "gpu0-2-0832880967eb6fed");
        arena_done(&arena);
        end(&i);
}

static void other_modes_have_no_mounts(void) {
        Isolation i = begin();
        PluginMount mounts[ISOLATION_MOUNTS];
        DeviceId ids[1];
        Arena arena = ARENA_NULL;

        ASSERT_INT(mounts_of(&i, ids, 1, SHARE_MODE_SHARE, &arena, mounts), 0);
        arena_done(&arena);
        end(&i);
}

static bool is_directory(const char *path) {
        unsigned number;
        int n = 0;

        return strcmp(path, SLICE_MOUNT_DIR) == 0 || strcmp(path, SLICE_PAGES) == 0 ||
               (sscanf(path, SLICE_PAGES "/%u%n", &number, &n) == 1 && path[n] == '\0');
}

static bool is_named(const PluginMount *mounts, size_t n, const char *path, size_t length) {
        for (size_t i = 0; i < n; i++)
                if (strlen(mounts[i].container_path) == length &&
                    strncmp(mounts[i].container_path, path, length) == 0)
                        return true;
        return false;
}

/* containerd mounts a VOLUME of the image unless a mount has exactly its path. */
static void each_directory_is_a_mount(void) {
        Isolation i = begin();
        PluginMount mounts[ISOLATION_MOUNTS];
        DeviceId ids[CARDS];
        Arena arena = ARENA_NULL;
        size_t n = mounts_of(&i, ids, CARDS, SHARE_MODE_CGPU, &arena, mounts);

        for (size_t k = 0; k < n; k++) {
                const char *path = mounts[k].container_path, *end = path;

                if (strncmp(path, SLICE_MOUNT_DIR, strlen(SLICE_MOUNT_DIR)) != 0)
                        continue;
                while ((end = strchr(end + 1, '/')))
                        ASSERT_TRUE(is_named(mounts, n, path, (size_t) (end - path)));
        }
        arena_done(&arena);
        end(&i);
}

/* A manifest may not mount over any path that Allocate names. */
static void each_mount_is_protected(void) {
        Isolation i = begin();
        PluginMount mounts[ISOLATION_MOUNTS];
        DeviceId ids[CARDS];
        Arena arena = ARENA_NULL;
        size_t n = mounts_of(&i, ids, CARDS, SHARE_MODE_CGPU, &arena, mounts);

        for (size_t k = 0; k < n; k++)
                ASSERT_TRUE(gate_cover_is_at(str_from(mounts[k].container_path)));
        arena_done(&arena);
        end(&i);
}

/* The largest answer: the array has room for a simulated driver beside it. */
static void most_cards_have_room(void) {
        Isolation i = begin();
        PluginMount mounts[ISOLATION_MOUNTS];
        DeviceId ids[SLICEDIR_CARDS_MAX];
        Arena arena = ARENA_NULL;

        ASSERT_INT(mounts_of(&i, ids, SLICEDIR_CARDS_MAX, SHARE_MODE_CGPU, &arena, mounts),
                   ISOLATION_MOUNTS - SIMULATED_DRIVER_MOUNTS);
        arena_done(&arena);
        end(&i);
}

/* The runtime can make no mount point below a read-only mount. */
static void each_mount_point_exists(void) {
        Isolation i = begin();
        PluginMount mounts[ISOLATION_MOUNTS];
        DeviceId ids[CARDS];
        Fault fault = FAULT_NULL;
        mode_t before = umask(0077);
        char path[PRELOAD_FOLDER + 64];
        struct stat st;

        for (size_t n = 1; n <= CARDS; n++) {
                Arena arena = ARENA_NULL;
                size_t found = mounts_of(&i, ids, n, SHARE_MODE_CORE_MEM, &arena, mounts);

                ASSERT_OK(preload_files_make_folder(&i.preload, n, &fault));
                for (size_t k = 0; k < found; k++) {
                        if (strncmp(mounts[k].container_path, SLICE_MOUNT_DIR, strlen(SLICE_MOUNT_DIR)) != 0)
                                continue;
                        (void) snprintf(path, sizeof path, "%s%s", mounts[0].host_path,
                                        mounts[k].container_path + strlen(SLICE_MOUNT_DIR));
                        ASSERT_OK(stat(path, &st));
                        ASSERT_TRUE(k > 0 || (st.st_mode & 07777) == 0755);
                        ASSERT_TRUE(is_directory(mounts[k].container_path) ? S_ISDIR(st.st_mode)
                                                                           : S_ISREG(st.st_mode));
                }
                (void) snprintf(path, sizeof path, "%s/slice/%zu", mounts[0].host_path, n);
                ASSERT_INT(access(path, F_OK), -1); /* the library takes each directory for a slice */
                arena_done(&arena);
        }
        (void) umask(before);
        end(&i);
}

/* Containers have mounts on these files: they are never replaced. */
static void existing_files_stay(void) {
        Isolation i = begin();
        Fault fault = FAULT_NULL;
        char path[PRELOAD_FOLDER + 64];
        struct stat st;
        ino_t first;

        ASSERT_OK(preload_files_make_folder(&i.preload, 1, &fault));
        preload_files_folder(&i.preload, 1, path);
        (void) snprintf(path + strlen(path), 32, "/slice/0/limits");
        ASSERT_OK(stat(path, &st));
        first = st.st_ino;
        ASSERT_OK(preload_files_make_folder(&i.preload, 1, &fault));
        ASSERT_OK(stat(path, &st));
        ASSERT_TRUE(st.st_ino == first);
        ASSERT_OK(unlink(path));
        ASSERT_OK(preload_files_make_folder(&i.preload, 1, &fault));
        ASSERT_OK(stat(path, &st));
        end(&i);
}

static void file_in_the_way_is_named(void) {
        Isolation i = begin();
        Fault fault = FAULT_NULL;
        char path[PRELOAD_FOLDER + 64], folder[PRELOAD_FOLDER];

        preload_files_folder(&i.preload, 2, folder);
        ASSERT_OK(preload_files_make_folder(&i.preload, 2, &fault));
        (void) snprintf(path, sizeof path, "%s/slice/1/doorbell", folder);
        ASSERT_OK(unlink(path));
        ASSERT_OK(mkfifo(path, 0644));
        ASSERT_INT(preload_files_make_folder(&i.preload, 2, &fault), -EEXIST);
        ASSERT_TRUE(strstr(fault.text, path) != NULL);
        ASSERT_OK(unlink(path));
        ASSERT_OK(symlink("limits", path));
        ASSERT_INT(preload_files_make_folder(&i.preload, 2, &fault), -ELOOP);
        end(&i);
}

static bool may_label(void) {
        Fault fault = FAULT_NULL;
        int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), r = selinux_label(fd, "", &fault);

        ASSERT_OK(close(fd));
        if (r < 0)
                (void) printf("no label can be set here: not tried\n");
        return r == 0;
}

/* SELinux lets a container use what has the label, and glibc passes over a preload without it. */
static void each_mount_has_the_label(void) {
        SliceSpec spec = {.limit = 1 << 20, .card_bytes = 1 << 24, .uuid = "GPU-a", .container = "x"};
        PluginMount mounts[ISOLATION_MOUNTS];
        Arena arena = ARENA_NULL;
        Fault fault = FAULT_NULL;
        DeviceId ids[CARDS];
        char slice[PRELOAD_FOLDER];
        size_t n, seen = 0;
        Isolation i;

        if (!may_label())
                return;
        labels = true;
        i = begin();
        labels = false;
        n = mounts_of(&i, ids, 2, SHARE_MODE_CORE_MEM, &arena, mounts);
        ASSERT_OK(preload_files_make_folder(&i.preload, 2, &fault));
        for (size_t k = 0; k < n; k++) {
                if (strstr(mounts[k].host_path, "/slices/"))
                        continue; /* inherited from the directory of the slice */
                ASSERT_TRUE(selinux_is_labelled(mounts[k].host_path));
                seen++;
        }
        ASSERT_INT(seen,
                   1 + 1 + 1 + 2); /* SLICE_MOUNT_DIR, the library, slice, and a directory of each card */
        ASSERT_OK(slicedir_update(&i.slicedir, "gpu0", SLICEDIR_AGENT "d/p/c", &spec, 1, &fault));
        (void) snprintf(slice, sizeof slice, "%s/slices/gpu0", directory);
        ASSERT_TRUE(selinux_is_labelled(slice));
        (void) snprintf(slice, sizeof slice, "%s/inside", directory);
        ASSERT_TRUE(selinux_is_labelled(slice));
        arena_done(&arena);
        end(&i);
}

int main(void) {
        return TEST_MAIN(TEST(no_mount_can_be_moved_away), TEST(only_counters_and_doorbells_are_writable),
                         TEST(other_modes_have_no_mounts), TEST(record_leads_to_what_allocate_named),
                         TEST(each_directory_is_a_mount), TEST(each_mount_is_protected),
                         TEST(most_cards_have_room), TEST(each_mount_point_exists), TEST(existing_files_stay),
                         TEST(file_in_the_way_is_named), TEST(each_mount_has_the_label));
}
