/* SPDX-License-Identifier: Apache-2.0 */
#include "slicedir/slicedir.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "mounts.h"
#include "scratch.h"
#include "slice/container_paths.h"
#include "slice/pin.h"
#include "slice/slice.h"
#include "test.h"

static char home[64], path[128];

/* Removes the directory of the case before. */
static void end(void) {
        if (home[0])
                scratch_remove(home);
        home[0] = '\0';
}

static void begin(void) {
        end();
        (void) snprintf(home, sizeof home, "/tmp/aliquot-slicedir-XXXXXX");
        scratch_make(home);
        (void) snprintf(path, sizeof path, "%s/a/slices", home);
}

static Slicedir open_slicedir(void) {
        Fault fault = FAULT_NULL;
        Slicedir b;

        ASSERT_OK(slicedir_open(&b, path, true, &fault));
        return b;
}

static int put(Slicedir *b, const char *id, const char *owner) {
        SliceSpec specs[2] = {
                {.limit = 1 << 20, .card_bytes = 1 << 24, .uuid = "GPU-a", .container = id},
                {.limit = 2 << 20, .card_bytes = 1 << 24, .uuid = "GPU-b", .card = 1, .container = id}};
        Fault fault = FAULT_NULL;
        int fd = -1;

        ASSERT_OK(slicedir_lock(b, &fault));
        ASSERT_OK(slicedir_create(b, id, owner, specs, 2, &fd, &fault));
        slicedir_unlock(b);
        return fd;
}

static int seen(void *userdata, const SlicedirEntry *slice) {
        unsigned *n = userdata;

        ASSERT_INT(slice->n_cards, 2);
        ASSERT_INT(slice->cards[1].limits.limit, 2 << 20);
        ++*n;
        return 0;
}

static unsigned count(Slicedir *b, bool locked) {
        Fault fault = FAULT_NULL;
        unsigned n = 0;

        if (locked)
                ASSERT_OK(slicedir_lock(b, &fault));
        ASSERT_OK(slicedir_each(b, seen, &n));
        slicedir_unlock(b);
        return n;
}

static bool is_there(const char *id) {
        char text[256];

        (void) snprintf(text, sizeof text, "%s/%s", path, id);
        return access(text, F_OK) == 0;
}

static void slices_live_as_long_as_their_owner(void) {
        Slicedir b;
        int one, two;

        begin();
        b = open_slicedir();
        one = put(&b, "one", "run 1 x");
        two = put(&b, "two", "run 2 y");
        ASSERT_INT(count(&b, false), 2);
        ASSERT_OK(close(one));
        ASSERT_INT(count(&b, false), 1);
        ASSERT_TRUE(is_there("one")); /* not removed without the lock */
        ASSERT_INT(count(&b, true), 1);
        ASSERT_TRUE(!is_there("one") && is_there("two"));
        slicedir_remove(&b, "two");
        ASSERT_TRUE(!is_there("two"));
        ASSERT_OK(close(two));
        slicedir_done(&b);
}

/* The command may outlive the process that started it. */
static void slices_live_as_long_as_a_process_has_a_row(void) {
        char directory[256];
        int status, owner, tell[2];
        pid_t pid;
        char byte;
        Slicedir b;

        begin();
        b = open_slicedir();
        owner = put(&b, "one", "run 1 x");
        (void) snprintf(directory, sizeof directory, "%s/one/0", path);
        ASSERT_OK(pipe(tell));
        pid = fork();
        if (pid == 0) {
                static SliceUser slice;

                (void) close(owner);
                if (slice_open(directory, &slice) != 0 || slice_reserve(&slice, 4096) != 0)
                        _exit(1);
                if (write(tell[1], "x", 1) != 1)
                        _exit(1);
                pause();
                _exit(0);
        }
        ASSERT_INT(read(tell[0], &byte, 1), 1);
        ASSERT_OK(close(owner));
        ASSERT_INT(count(&b, true), 1);
        ASSERT_OK(kill(pid, SIGKILL));
        ASSERT_INT(waitpid(pid, &status, 0), pid);
        ASSERT_INT(count(&b, true), 0);
        ASSERT_TRUE(!is_there("one"));
        slicedir_done(&b);
}

/* Another process has a driver file of an ended process, and nothing else of the slice. */
static void slices_live_as_long_as_a_file_pins_a_row(void) {
        char directory[256], name[] = "/tmp/test-slicedir-file-XXXXXX";
        int file = mkostemp(name, O_CLOEXEC), owner;
        uint64_t key = pin_key_new();
        SliceUser slice;
        Slicedir b;

        begin();
        b = open_slicedir();
        owner = put(&b, "one", "run 1 x");
        (void) snprintf(directory, sizeof directory, "%s/one/0", path);
        ASSERT_OK(unlink(name));
        ASSERT_OK(slice_open_with(directory, file, key, &slice));
        pin_note_inodes(&slice.counters->rows[slice.row], pin_inode(file, PIN_RM));
        ASSERT_OK(pin_file(file, key));
        ASSERT_OK(slice_reserve(&slice, 4096));
        slice_close(&slice);
        ASSERT_OK(close(owner));
        ASSERT_INT(count(&b, true), 1);
        ASSERT_OK(close(file));
        ASSERT_INT(count(&b, true), 0);
        slicedir_done(&b);
}

static void the_agents_slices_live_until_it_removes_them(void) {
        Slicedir b;

        begin();
        b = open_slicedir();
        ASSERT_OK(close(put(&b, "pod", "agent default/a/main")));
        ASSERT_INT(count(&b, true), 1);
        slicedir_remove(&b, "pod");
        ASSERT_INT(count(&b, true), 0);
        slicedir_done(&b);
}

static void has_text(const char *file, const char *expected) {
        int fd = open(file, O_RDONLY | O_CLOEXEC);
        char text[64] = "";
        struct stat st;

        ASSERT_OK(fstat(fd, &st));
        ASSERT_INT(st.st_mode & 07777, 0644);
        ASSERT_TRUE(read(fd, text, sizeof text - 1) > 0);
        ASSERT_TEXT(text, expected);
        ASSERT_OK(close(fd));
}

/* Every user can read the file, whatever the umask is, and a missing one is made. */
static void the_agents_slices_have_a_preload(void) {
        SliceSpec spec = {.limit = 1 << 20, .card_bytes = 1 << 24, .uuid = "GPU-a", .container = "x"};
        Fault fault = FAULT_NULL;
        mode_t before = umask(0077);
        char file[256];
        Slicedir b;

        begin();
        b = open_slicedir();
        ASSERT_INT(slicedir_write_preload(&b, "pod", &fault),
                   -ENOENT); /* there is no such slice, and none is made */
        ASSERT_OK(slicedir_update(&b, "pod", "agent d/a/main", &spec, 1, &fault));
        (void) snprintf(file, sizeof file, "%s/pod/%s", path, SLICEDIR_PRELOAD);
        for (unsigned i = 0; i < 2; i++) {
                ASSERT_OK(slicedir_write_preload(&b, "pod", &fault));
                has_text(file, SLICE_GATE "\n");
                ASSERT_OK(unlink(file));
        }
        (void) umask(before);
        slicedir_remove(&b, "pod");
        ASSERT_TRUE(!is_there("pod"));
        slicedir_done(&b);
}

static bool keep_pod(void *userdata, const char *id) {
        return strcmp(id, "pod") == 0;
}

static void the_agent_updates_its_slices(void) {
        SliceSpec spec = {.limit = 1 << 20, .card_bytes = 1 << 24, .uuid = "GPU-a", .container = "x"};
        static SliceUser slice;
        Fault fault = FAULT_NULL;
        char directory[256];
        Slicedir b;
        int run;

        begin();
        b = open_slicedir();
        ASSERT_OK(slicedir_update(&b, "pod", "agent d/a/main", &spec, 1, &fault));
        ASSERT_OK(slicedir_update(&b, "gone", "agent d/b/main", &spec, 1, &fault));
        run = put(&b, "one", "run 1 x");
        (void) snprintf(directory, sizeof directory, "%s/pod/0", path);
        ASSERT_OK(slice_open(directory, &slice));
        ASSERT_OK(slice_reserve(&slice, 8192));
        spec.limit = 2 << 20;
        ASSERT_OK(slicedir_update(&b, "pod", "agent d/a/main", &spec, 1, &fault));
        ASSERT_INT(slice_used(&slice), 8192);
        ASSERT_OK(slice_reserve(&slice, 4096));
        slice_close(&slice);
        /* The container's next start sees the new limits. */
        ASSERT_OK(slice_open(directory, &slice));
        ASSERT_INT(slice_limit(&slice), 2 << 20);
        slice_close(&slice);
        ASSERT_OK(slicedir_sweep(&b, keep_pod, NULL));
        ASSERT_TRUE(is_there("pod") && !is_there("gone") && is_there("one"));
        ASSERT_OK(close(run));
        slicedir_remove(&b, "pod");
        slicedir_done(&b);
}

/* Which leases a container can take of a file that it has mounted: 0 none, 1 one kind, 2 both. */
static int leases(const char *id, const char *name) {
        int fd, n = 0;
        char text[256];

        (void) snprintf(text, sizeof text, "%s/%s/0/%s", path, id, name);
        fd = open(text, O_RDONLY | O_CLOEXEC);
        ASSERT_TRUE(fd >= 0);
        for (int i = 0; i < 2; i++) {
                bool had = fcntl(fd, F_SETLEASE, i == 0 ? F_RDLCK : F_WRLCK) == 0;

                ASSERT_TRUE(had || errno == EAGAIN);
                n += had;
                (void) fcntl(fd, F_SETLEASE, F_UNLCK);
        }
        ASSERT_OK(close(fd));
        return n;
}

static int leases_any(const char *id) {
        return leases(id, "limits") + leases(id, "counters");
}

static void pages_are_held_open(void) {
        SliceSpec spec = {.limit = 1 << 20, .card_bytes = 1 << 24, .uuid = "GPU-a", .container = "x"};
        Fault fault = FAULT_NULL;
        char text[256];
        Slicedir b, other;
        int run, old;

        begin();
        b = open_slicedir();
        other = open_slicedir();
        (void) snprintf(text, sizeof text, "%s/pod/0/limits", path);
        ASSERT_OK(slicedir_update(&b, "pod", "agent d/a/main", &spec, 1, &fault));
        ASSERT_INT(leases_any("pod"), 0);
        old = open(text, O_RDONLY | O_CLOEXEC);
        ASSERT_OK(slicedir_update(&b, "pod", "agent d/a/main", &spec, 1,
                                  &fault)); /* the container's next start */
        ASSERT_INT(leases_any("pod"), 0);
        ASSERT_OK(fcntl(old, F_SETLEASE, F_WRLCK)); /* no process holds the old file any more */
        ASSERT_OK(close(old));
        b.proc = NULL;
        run = put(&b, "run", SLICEDIR_RUN "1 x");
        ASSERT_INT(leases_any("run"), 0);
        ASSERT_OK(close(run));
        slicedir_remove(&b, "run");

        slicedir_done(&b);
        ASSERT_INT(leases_any("pod"), 4);                  /* no agent holds them */
        ASSERT_OK(slicedir_sweep(&other, keep_pod, NULL)); /* of the next agent */
        ASSERT_INT(leases_any("pod"), 0);
        ASSERT_OK(slicedir_sweep(&other, keep_pod, NULL));
        ASSERT_INT(leases_any("pod"), 0);
        old = open(text, O_RDONLY | O_CLOEXEC);
        slicedir_remove(&other, "pod");
        ASSERT_OK(fcntl(old, F_SETLEASE, F_WRLCK));
        ASSERT_OK(close(old));
        slicedir_done(&other);
}

/* The page is leased when an agent begins. The agent does not wait, holds the files that it can
 * open, and the rest at its next look. */
static void a_leased_page_is_held_later(void) {
        SliceSpec spec = {.limit = 1 << 20, .card_bytes = 1 << 24, .uuid = "GPU-a", .container = "x"};
        Fault fault = FAULT_NULL;
        char text[256];
        Slicedir b;
        int fd;

        begin();
        b = open_slicedir();
        ASSERT_OK(slicedir_update(&b, "pod", "agent d/a/main", &spec, 1, &fault));
        slicedir_done(&b);
        b = open_slicedir();
        (void) snprintf(text, sizeof text, "%s/pod/0/limits", path);
        (void) signal(SIGIO, SIG_IGN);
        fd = open(text, O_RDONLY | O_CLOEXEC);
        ASSERT_OK(fcntl(fd, F_SETLEASE, F_RDLCK));
        ASSERT_OK(slicedir_sweep(&b, keep_pod, NULL));
        ASSERT_OK(close(fd));
        ASSERT_INT(leases("pod", "limits"), 2);
        ASSERT_INT(leases("pod", "counters"), 0);
        ASSERT_OK(slicedir_sweep(&b, keep_pod, NULL));
        ASSERT_INT(leases_any("pod"), 0);
        slicedir_remove(&b, "pod");
        slicedir_done(&b);
}

/* Other programs clean /run. Containers keep the slices of the directory that was removed. */
static void a_directory_that_moves_keeps_its_pages(void) {
        SliceSpec spec = {.limit = 1 << 20, .card_bytes = 1 << 24, .uuid = "GPU-a", .container = "x"};
        Fault fault = FAULT_NULL;
        char away[128];
        Slicedir b;

        begin();
        b = open_slicedir();
        ASSERT_OK(slicedir_update(&b, "pod", "agent d/a/main", &spec, 1, &fault));
        (void) snprintf(away, sizeof away, "%s/away", home);
        ASSERT_OK(rename(path, away));
        b.labels = true;
        ASSERT_OK(slicedir_refresh(&b, &fault));
        ASSERT_TRUE(b.labels);
        b.labels = false;
        ASSERT_OK(slicedir_update(&b, "new", "agent d/b/main", &spec, 1, &fault));
        ASSERT_INT(leases_any("new"), 0);
        ASSERT_OK(slicedir_sweep(&b, keep_pod, NULL));
        ASSERT_TRUE(!is_there("new"));
        (void) snprintf(path, sizeof path, "%s", away);
        ASSERT_INT(leases_any("pod"), 0);
        slicedir_done(&b);
        b = open_slicedir();
        ASSERT_INT(leases_any("pod"), 4);
        slicedir_remove(&b, "pod");
        slicedir_done(&b);
}

static bool is_told(int watch) {
        char bytes[4096];
        bool told = false;

        while (read(watch, bytes, sizeof bytes) > 0)
                told = true;
        return told;
}

/* The arbiter watches this directory, and no other. */
static void watchers_see_new_pages(void) {
        SliceSpec spec = {.limit = 1 << 20, .card_bytes = 1 << 24, .uuid = "GPU-a", .container = "x"};
        Fault fault = FAULT_NULL;
        int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        Slicedir b;

        begin();
        b = open_slicedir();
        ASSERT_OK(slicedir_update(&b, "pod", "agent d/a/main", &spec, 1, &fault));
        ASSERT_TRUE(inotify_add_watch(watch, path, IN_CREATE | IN_DELETE | IN_MOVE | IN_ATTRIB) >= 0);
        ASSERT_TRUE(!is_told(watch));
        ASSERT_OK(slicedir_update(&b, "pod", "agent d/a/main", &spec, 1, &fault));
        ASSERT_TRUE(is_told(watch));
        ASSERT_OK(slicedir_resize(&b, "pod", 0, 1 << 20, 0, &fault)); /* the size that it has */
        ASSERT_TRUE(!is_told(watch));
        ASSERT_OK(slicedir_resize(&b, "pod", 0, 1 << 19, 0, &fault));
        ASSERT_TRUE(is_told(watch));
        ASSERT_OK(close(watch));
        slicedir_remove(&b, "pod");
        slicedir_done(&b);
}

static void unreadable_slices_are_skipped(void) {
        Fault fault = FAULT_NULL;
        char text[256];
        Slicedir b;
        int fd;

        begin();
        b = open_slicedir();
        fd = put(&b, "one", "run 1 x");
        (void) snprintf(text, sizeof text, "%s/file", path);
        ASSERT_OK(close(open(text, O_WRONLY | O_CREAT, 0600)));
        (void) snprintf(text, sizeof text, "%s/link", path);
        ASSERT_OK(symlink("/etc", text));
        ASSERT_INT(count(&b, true), 1);
        ASSERT_OK(close(fd));
        (void) snprintf(text, sizeof text, "%s/a", home);
        ASSERT_OK(chmod(text, 0777));
        slicedir_done(&b);
        ASSERT_OK(slicedir_open(&b, path, true, &fault));
        ASSERT_OK(chmod(path, 0777));
        ASSERT_INT(slicedir_open(&b, path, true, &fault), -EACCES);
        ASSERT_CONTAINS(fault.text, path);
}

static void names_are_not_taken_twice(void) {
        SliceSpec spec = {.limit = 4096, .card_bytes = 4096, .uuid = "GPU-a", .container = "x"};
        Fault fault = FAULT_NULL;
        int one, two = -1;
        Slicedir b;

        begin();
        b = open_slicedir();
        one = put(&b, "one", "run 1 x");
        ASSERT_INT(slicedir_create(&b, "one", "run 1 x", &spec, 1, &two, &fault), -EEXIST);
        ASSERT_CONTAINS(fault.text, "one");
        spec.uuid = "GPU-0123456789012345678901234567890123456789012345678901234567890123456789";
        ASSERT_TRUE(slicedir_create(&b, "two", "run 1 x", &spec, 1, &two, &fault) < 0);
        ASSERT_TRUE(!is_there("two"));
        ASSERT_OK(close(one));
        slicedir_done(&b);
}

static void a_dead_slice_is_removed(void) {
        Fault fault = FAULT_NULL;
        Slicedir b;
        int one, copy;

        begin();
        b = open_slicedir();
        one = put(&b, "one", "run 1 x");
        ASSERT_OK(slicedir_lock(&b, &fault));
        copy = dup(one);
        ASSERT_TRUE(copy >= 0);
        ASSERT_OK(close(one));
        slicedir_remove_dead(&b, "one");
        ASSERT_TRUE(is_there("one"));
        ASSERT_OK(close(copy));
        slicedir_remove_dead(&b, "one");
        ASSERT_TRUE(!is_there("one"));
        slicedir_remove_dead(&b, "none");
        slicedir_done(&b);
}

/* What other users could have made in /tmp before. */
/* The process that made the slice was killed between writing a file and its rename. */
static void an_unfinished_file_is_removed_with_its_slice(void) {
        static const char *const files[] = {"one/0/limits.new", "one/1/counters.new"};
        Slicedir b;
        int fd;

        begin();
        b = open_slicedir();
        fd = put(&b, "one", "run 1 a");
        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                int made = openat(b.fd, files[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

                ASSERT_TRUE(made >= 0);
                (void) close(made);
        }
        (void) close(fd);
        slicedir_remove(&b, "one");
        ASSERT_TRUE(!is_there("one"));
        slicedir_done(&b);
}

static void a_default_path_is_below_a_directory_of_the_user(void) {
        char parent[128], other[160];
        Fault fault = FAULT_NULL;
        Slicedir b;

        if (geteuid() == 0)
                return; /* root's is in /run, where no other user writes */
        begin();
        ASSERT_OK(setenv("XDG_RUNTIME_DIR", home, 1));
        ASSERT_OK(slicedir_open(&b, NULL, true, &fault));
        slicedir_done(&b);
        (void) snprintf(parent, sizeof parent, "%s/aliquot", home);
        ASSERT_OK(chmod(parent, 0777));
        ASSERT_INT(slicedir_open(&b, NULL, true, &fault), -EACCES);
        ASSERT_OK(chmod(parent, 0755));
        (void) snprintf(other, sizeof other, "%s/other", home);
        ASSERT_OK(rename(parent, other));
        ASSERT_OK(symlink(other, parent));
        ASSERT_INT(slicedir_open(&b, NULL, true, &fault), -EACCES);
        ASSERT_CONTAINS(fault.text, "symbolic link");
}

/* ---- counters that grow ---- */

static char cut[256];

static void on_cut(void *userdata, const SlicedirCard *grown) {
        size_t n = strlen(cut);

        ASSERT_TRUE(grown->bytes > sizeof(SliceCounters));
        (void) snprintf(cut + n, sizeof cut - n, "%s/%u of %s;", grown->id, grown->number, grown->owner);
}

static int open_counters(const char *id, unsigned number) {
        char text[256];
        int fd;

        (void) snprintf(text, sizeof text, "%s/%s/%u/counters", path, id, number);
        fd = open(text, O_RDWR | O_CLOEXEC);
        ASSERT_TRUE(fd >= 0);
        return fd;
}

static struct stat stat_of(int fd) {
        struct stat st;

        ASSERT_OK(fstat(fd, &st));
        return st;
}

static void counters_that_grew_are_cut_back(void) {
        char text[1024] = "";
        int one, fd, before;
        Slicedir b;

        begin();
        b = open_slicedir();
        one = put(&b, "one", "run 1 x");
        fd = open_counters("one", 1);
        before = open_counters("one", 0);
        ASSERT_OK(slicedir_trim(&b, on_cut, NULL));
        ASSERT_TEXT(cut, "");
        ASSERT_TRUE(pwrite(fd, "x", 1, 3 << 20) == 1);
        ASSERT_OK(slicedir_trim(&b, on_cut, NULL));
        ASSERT_TEXT(cut, "one/1 of run 1 x;");
        ASSERT_INT(stat_of(fd).st_size, sizeof(SliceCounters));
        ASSERT_TRUE(pread(fd, text, sizeof text, 0) == (ssize_t) sizeof text);
        /* The content stays. */
        ASSERT_TRUE(memcmp(text, &(uint64_t){SLICE_COUNTERS_MAGIC}, 8) == 0);
        cut[0] = '\0';
        /* Not all file systems support it. */
        if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 1 << 20, 1 << 20) == 0) {
                ASSERT_TRUE(stat_of(fd).st_blocks * 512 >= 1 << 20);
                ASSERT_OK(slicedir_trim(&b, on_cut, NULL));
                ASSERT_TEXT(cut, "one/1 of run 1 x;");
                ASSERT_TRUE(stat_of(fd).st_blocks * 512 < 1 << 20);
        }
        cut[0] = '\0';
        ASSERT_OK(ftruncate(before, 10)); /* trimming does not extend a shorter file */
        ASSERT_OK(slicedir_trim(&b, on_cut, NULL));
        ASSERT_INT(stat_of(before).st_size, 10);
        ASSERT_TEXT(cut, "");
        ASSERT_OK(close(fd));
        ASSERT_OK(close(before));
        ASSERT_OK(close(one));
        slicedir_done(&b);
}

/* In namespaces of its own, in which a small file system can be mounted. Exit 77: not possible
 * here. */
static void fill(void) {
        SliceSpec spec = {.limit = 1 << 20, .card_bytes = 1 << 24, .uuid = "GPU-a", .container = "x"};
        Fault fault = FAULT_NULL;
        int one, fd, other = -1;
        char zeros[4096] = "";
        Slicedir b;

        if (!mounts_enter() || mount("x", home, "tmpfs", 0, "size=256k") < 0)
                _exit(77);
        b = open_slicedir();
        one = put(&b, "one", "run 1 x");
        ASSERT_OK(slicedir_update(&b, "old", SLICEDIR_AGENT "d/p/c", &spec, 1, &fault));
        fd = open_counters("one", 1);
        ASSERT_TRUE(lseek(fd, 0, SEEK_END) > 0);
        while (write(fd, zeros, sizeof zeros) > 0)
                ;
        ASSERT_INT(slicedir_create(&b, "two", "run 2 y", &spec, 1, &other, &fault), -ENOSPC);
        ASSERT_TRUE(strstr(fault.text, "is full") && strstr(fault.text, path));
        ASSERT_INT(slicedir_update(&b, "new", SLICEDIR_AGENT "d/p/c", &spec, 1, &fault), -ENOSPC);
        ASSERT_TRUE(strstr(fault.text, "is full"));
        ASSERT_INT(slicedir_update(&b, "old", SLICEDIR_AGENT "d/p/c", &spec, 1, &fault), -ENOSPC);
        ASSERT_TRUE(!is_there("two") && !is_there("new"));
        ASSERT_TRUE(is_there("old/owner") && is_there("old/0/limits") && is_there("old/0/counters"));
        ASSERT_OK(slicedir_trim(&b, on_cut, NULL));
        ASSERT_OK(slicedir_update(&b, "new", SLICEDIR_AGENT "d/p/c", &spec, 1, &fault));
        ASSERT_OK(slicedir_update(&b, "old", SLICEDIR_AGENT "d/p/c", &spec, 1, &fault));
        ASSERT_OK(close(one));
        _exit(0);
}

static void in_namespaces(void (*body)(void)) {
        int status = 0;
        pid_t pid;

        begin();
        pid = fork();
        if (pid == 0)
                body();
        ASSERT_TRUE(waitpid(pid, &status, 0) == pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
                (void) printf("no namespaces here: not tried\n");
        else
                ASSERT_INT(status, 0);
}

static void a_full_directory_refuses(void) {
        in_namespaces(fill);
}

/* ---- slices on file systems of their own ---- */

static const SliceSpec small = {.limit = 1 << 20, .card_bytes = 1 << 24, .uuid = "GPU-a", .container = "x"};

/* A host whose pid 1 sees what this process sees. */
static Slicedir open_apart(const char *options) {
        static char proc[80];
        char text[128];
        Slicedir b;

        if (!mounts_enter() || mount("x", home, "tmpfs", 0, options) < 0)
                _exit(77);
        (void) snprintf(proc, sizeof proc, "%s/proc", home);
        ASSERT_OK(mkdir(proc, 0755));
        (void) snprintf(text, sizeof text, "%s/1", proc);
        ASSERT_OK(mkdir(text, 0755));
        (void) snprintf(text, sizeof text, "%s/1/root", proc);
        ASSERT_OK(symlink("/", text));
        b = open_slicedir();
        b.proc = proc;
        return b;
}

static void update(Slicedir *b, const char *id) {
        Fault fault = FAULT_NULL;
        int r = slicedir_update(b, id, SLICEDIR_AGENT "d/p/c", &small, 1, &fault);

        if (r != 0)
                (void) fprintf(stderr, "%s: %s\n", id, fault.text);
        ASSERT_OK(r);
}

static bool stands_apart(const Slicedir *b, const char *id) {
        char text[256];
        struct stat st;

        (void) snprintf(text, sizeof text, "%s/%s", path, id);
        ASSERT_OK(stat(text, &st));
        return st.st_dev != stat_of(b->fd).st_dev;
}

static uint64_t room_of(int fd) {
        struct statfs st;

        ASSERT_OK(fstatfs(fd, &st));
        return (uint64_t) st.f_blocks * (uint64_t) st.f_bsize;
}

static unsigned agents(Slicedir *b) {
        unsigned n = 0;

        cut[0] = '\0';
        ASSERT_OK(slicedir_trim(b, on_cut, NULL));
        for (const char *at = cut; (at = strstr(at, "of " SLICEDIR_AGENT)) != NULL; at++)
                n++;
        return n;
}

static void own_tmpfs(void) {
        Slicedir b = open_apart("size=1m");
        char text[1024];
        struct stat before;
        int fd;

        update(&b, "one");
        update(&b, "two");
        ASSERT_TRUE(stands_apart(&b, "one") && stands_apart(&b, "two"));
        fd = open_counters("one", 0);
        before = stat_of(fd);
        ASSERT_TRUE(room_of(fd) >= 2 * sizeof(SliceCounters) && room_of(fd) < 1 << 20);
        ASSERT_TRUE(pwrite(fd, "x", 1, 3 << 20) == 1);
        ASSERT_INT(agents(&b), 1); /* visited and cut back, as before */
        update(&b, "one");         /* the agent and a container start again */
        ASSERT_INT(stat_of(fd).st_ino, before.st_ino);
        slicedir_done(&b);
        b = open_slicedir();
        ASSERT_OK(slicedir_sweep(&b, keep_pod, NULL)); /* the sweep of an agent that cannot mount */
        ASSERT_TRUE(!is_there("one") && !is_there("two"));
        ASSERT_TRUE(pread(fd, text, sizeof text, 0) ==
                    (ssize_t) sizeof text); /* an open file keeps its content */
        update(&b, "one");
        ASSERT_TRUE(!stands_apart(&b, "one"));
        _exit(0);
}

static void slices_with_their_own_tmpfs(void) {
        in_namespaces(own_tmpfs);
}

static void older_and_half_made(void) {
        Slicedir b = open_apart("size=1m");
        const char *proc = b.proc;
        Fault fault = FAULT_NULL;
        char text[256];
        int run;

        b.proc = NULL;
        update(&b, "old");
        b.proc = proc;
        update(&b, "old"); /* a container has the files mounted */
        ASSERT_TRUE(!stands_apart(&b, "old"));
        (void) snprintf(text, sizeof text, "%s/half", path);
        ASSERT_OK(mkdir(text, 0755)); /* the agent was killed before it mounted */
        update(&b, "half");
        ASSERT_TRUE(stands_apart(&b, "half"));
        (void) snprintf(text, sizeof text, "%s/half/owner", path);
        ASSERT_OK(unlink(text)); /* the agent was killed after that */
        ASSERT_OK(slicedir_lock(&b, &fault));
        slicedir_remove_dead(&b, "half"); /* `aliquot run` removes dead slices in between */
        slicedir_unlock(&b);
        ASSERT_TRUE(stands_apart(&b, "half"));
        update(&b, "half");
        ASSERT_OK(unlink(text));
        b.proc = NULL;
        run = put(&b, "run", SLICEDIR_RUN "1 x");
        ASSERT_TRUE(!stands_apart(&b, "run"));
        ASSERT_OK(slicedir_sweep(&b, keep_pod, NULL));
        ASSERT_TRUE(!is_there("old") && !is_there("half") && is_there("run"));
        ASSERT_OK(close(run));
        _exit(0);
}

static void older_slices_stay_and_unfinished_ones_go(void) {
        in_namespaces(older_and_half_made);
}

static void unseen(void) {
        Slicedir b = open_apart("size=1m");
        Fault fault = FAULT_NULL;

        b.proc = "/dev/null";
        ASSERT_INT(slicedir_update(&b, "one", SLICEDIR_AGENT "d/p/c", &small, 1, &fault), -ENXIO);
        ASSERT_CONTAINS(fault.text, "the host (pid 1) would not see");
        ASSERT_TRUE(!is_there("one"));
        _exit(0);
}

static void a_slice_that_the_host_does_not_see_is_not_made(void) {
        in_namespaces(unseen);
}

/* A process that does nothing but take all space and all names that the file system of its counters
 * has. */
typedef struct Glutton {
        int fd;
        atomic_ulong full; /* how often nothing was left */
} Glutton;

static void *devour(void *userdata) {
        static const char zeros[4096];
        Glutton *g = userdata;
        char name[32];

        for (unsigned long i = 0;; i++) {
                (void) snprintf(name, sizeof name, "user.%lu", i);
                (void) fsetxattr(g->fd, name, zeros, 200,
                                 0); /* they use inodes where the file system counts them */
                if (lseek(g->fd, 0, SEEK_END) < 0 || write(g->fd, zeros, sizeof zeros) <= 0)
                        atomic_fetch_add(&g->full, 1);
        }
        return NULL;
}

static void full_again(Glutton *g) {
        unsigned long before = atomic_load(&g->full);

        while (atomic_load(&g->full) == before)
                (void) usleep(100);
}

/* The directory has space for three slices that share it, and inodes for fifty directories. */
static void flooded(void) {
        Slicedir b = open_apart("size=128k,nr_inodes=80");
        Glutton g = {.full = 0};
        pthread_t thread;
        char id[16];

        update(&b, "glutton");
        g.fd = open_counters("glutton", 0);
        ASSERT_OK(pthread_create(&thread, NULL, devour, &g));
        for (unsigned i = 0; i < 50; i++) {
                full_again(&g);
                (void) snprintf(id, sizeof id, "pod-%u", i);
                update(&b, id);
                ASSERT_TRUE(is_there(id));
                (void) agents(&b); /* the agent looks, and may be too late */
        }
        for (unsigned i = 0; i < 50; i++) { /* containers start again and again */
                full_again(&g);
                (void) snprintf(id, sizeof id, "pod-%u", i);
                update(&b, id);
        }
        _exit(0);
}

static void a_container_fills_only_its_own_tmpfs(void) {
        in_namespaces(flooded);
}

/* Fills the space beside the files, by too little to be reported. */
static void filled_and_started_again(void) {
        Slicedir b = open_apart("size=1m");
        char zeros[4096] = "";
        int fd;

        update(&b, "one");
        fd = open_counters("one", 0);
        while (fallocate(fd, FALLOC_FL_KEEP_SIZE, stat_of(fd).st_blocks * 512, sizeof zeros) == 0)
                ;
        ASSERT_INT(errno, ENOSPC);
        ASSERT_INT(agents(&b), 0);
        update(&b, "one");
        ASSERT_OK(ftruncate(fd, 10)); /* damaged, so it is made anew */
        update(&b, "one");
        ASSERT_OK(close(fd));
        fd = open_counters("one", 0);
        ASSERT_INT(stat_of(fd).st_size, sizeof(SliceCounters));
        _exit(0);
}

static void a_container_with_a_full_tmpfs_starts_again(void) {
        in_namespaces(filled_and_started_again);
}

static int fill_counters(const char *id) {
        char zeros[4096] = "";
        int fd = open_counters(id, 0);

        ASSERT_TRUE(lseek(fd, 0, SEEK_END) > 0);
        for (int i = 0; i < 1000; i++)
                if (write(fd, zeros, sizeof zeros) <= 0)
                        return fd;
        TEST_FAIL_("%s took as much as the host has", id);
}

/* Two cards. The second look is one of a program that mounts nothing itself, as `aliquot smi`. */
static void slice_of_run(void) {
        Slicedir b = open_apart("size=8m"), look;
        char text[256];
        int owner, fd;

        owner = put(&b, "train", SLICEDIR_RUN "1 true");
        ASSERT_TRUE(stands_apart(&b, "train"));
        fd = fill_counters("train");
        ASSERT_INT(errno, ENOSPC);
        ASSERT_OK(close(fd));
        look = open_slicedir();
        ASSERT_INT(count(&look, true), 1);
        ASSERT_OK(slicedir_sweep(&look, keep_pod, NULL)); /* of an agent */
        ASSERT_INT(count(&look, true), 1);
        ASSERT_OK(close(owner));
        held_fds_done(&b.held);
        ASSERT_INT(count(&look, true), 0);
        ASSERT_FALSE(is_there("train"));

        (void) snprintf(text, sizeof text, "%s/train", path); /* a run that was killed here */
        ASSERT_OK(mkdir(text, 0));
        ASSERT_OK(mount("x", text, "tmpfs", 0, "size=64k"));
        ASSERT_INT(count(&look, true), 0);
        ASSERT_TRUE(is_there("train"));
        owner = put(&b, "train", SLICEDIR_RUN "1 true");
        ASSERT_INT(count(&look, true), 1);
        ASSERT_OK(umount2(text, MNT_DETACH)); /* as a program sees it in another mount namespace */
        ASSERT_OK(close(owner));
        ASSERT_INT(count(&look, true), 0);
        ASSERT_TRUE(is_there("train"));
        _exit(0);
}

static void a_slice_of_run_with_its_own_tmpfs(void) {
        in_namespaces(slice_of_run);
}

/* No file system of its own, where pid 1 would not see it. */
static void unseen_slice_of_run(void) {
        Slicedir b = open_apart("size=8m");
        int owner;

        b.proc = "/proc/self/absent";
        owner = put(&b, "train", SLICEDIR_RUN "1 true");
        ASSERT_FALSE(stands_apart(&b, "train"));
        ASSERT_INT(count(&b, true), 1);
        ASSERT_OK(close(owner));
        ASSERT_INT(count(&b, true), 0);
        ASSERT_FALSE(is_there("train"));
        _exit(0);
}

static void a_slice_of_run_that_the_host_does_not_see(void) {
        in_namespaces(unseen_slice_of_run);
}

int main(void) {
        int r = TEST_MAIN(
                TEST(slices_live_as_long_as_their_owner), TEST(slices_live_as_long_as_a_process_has_a_row),
                TEST(slices_live_as_long_as_a_file_pins_a_row),
                TEST(the_agents_slices_live_until_it_removes_them), TEST(the_agent_updates_its_slices),
                TEST(the_agents_slices_have_a_preload), TEST(pages_are_held_open),
                TEST(a_leased_page_is_held_later), TEST(a_directory_that_moves_keeps_its_pages),
                TEST(watchers_see_new_pages), TEST(unreadable_slices_are_skipped),
                TEST(names_are_not_taken_twice), TEST(a_dead_slice_is_removed),
                TEST(an_unfinished_file_is_removed_with_its_slice),
                TEST(a_default_path_is_below_a_directory_of_the_user), TEST(counters_that_grew_are_cut_back),
                TEST(a_full_directory_refuses), TEST(slices_with_their_own_tmpfs),
                TEST(older_slices_stay_and_unfinished_ones_go),
                TEST(a_slice_that_the_host_does_not_see_is_not_made),
                TEST(a_container_fills_only_its_own_tmpfs), TEST(a_container_with_a_full_tmpfs_starts_again),
                TEST(a_slice_of_run_with_its_own_tmpfs), TEST(a_slice_of_run_that_the_host_does_not_see));

        end();
        return r;
}
