/* SPDX-License-Identifier: Apache-2.0 */
#include "node/kubelet/process_state.h"

#include <errno.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process_stat.h"

enum { CGROUP_FILE_MAX = 64 * 1024, STATE_FILE_MAX = 4096 };

static bool names(Str list, Str controller) {
        if (str_is_empty(controller))
                return str_is_empty(list);
        while (!str_is_empty(list))
                if (str_eq(str_split(&list, ','), controller))
                        return true;
        return false;
}

static bool climbs(Str path) {
        while (!str_is_empty(path))
                if (str_eq(str_split(&path, '/'), STR("..")))
                        return true;
        return false;
}

Str process_state_cgroup_path(Str text, Str controller) {
        while (!str_is_empty(text)) {
                Str line = str_split(&text, '\n');

                (void) str_split(&line, ':'); /* hierarchy number */
                if (!names(str_split(&line, ':'), controller))
                        continue;
                while (str_has_prefix(line, STR("/../")))
                        line = (Str){line.data + 3, line.len - 3};
                return str_has_prefix(line, STR("/")) && !climbs(line) && !memchr(line.data, '\0', line.len)
                               ? line
                               : STR("");
        }
        return STR("");
}

int process_state_cgroup_file(const char *root, const char *tree, Str path, const char *file, Buf *ret) {
        static const char *const above[] = {"",
                                            "/kubepods",
                                            "/kubepods/burstable",
                                            "/kubepods/besteffort",
                                            "/kubepods.slice",
                                            "/kubepods.slice/kubepods-burstable.slice",
                                            "/kubepods.slice/kubepods-besteffort.slice"};

        for (size_t i = 0; i < ELEMENTSOF(above); i++) {
                _cleanup_buf_ Buf name = BUF_NULL;

                buf_appendf(&name, "%s%s%s" STR_FMT "/%s", root, tree, above[i], STR_ARG(path), file);
                if (buf_result(&name) < 0)
                        return -ENOMEM;
                if (access(name.data, F_OK) != 0)
                        continue;
                buf_append_str(ret, buf_str(&name));
                return buf_result(ret);
        }
        return -ENOENT;
}

/* Whether the file of that cgroup contains the word. */
static bool contains(const char *root, const char *tree, Str path, const char *file, Str word) {
        _cleanup_buf_ Buf name = BUF_NULL, text = BUF_NULL;

        return process_state_cgroup_file(root, tree, path, file, &name) == 0 &&
               file_read(name.data, STATE_FILE_MAX, &text) == 0 && text.data &&
               memmem(text.data, text.len, word.data, word.len);
}

static bool is_frozen(const char *root, Str cgroups) {
        Str one = process_state_cgroup_path(cgroups, STR("")),
            freezer = process_state_cgroup_path(cgroups, STR("freezer"));

        return (one.len > 1 && contains(root, "", one, "cgroup.events", STR("frozen 1"))) ||
               (freezer.len > 1 && contains(root, "/freezer", freezer, "freezer.state", STR("FROZEN")));
}

static bool read_cgroups(const char *proc, uint32_t pid, Buf *into) {
        _cleanup_buf_ Buf path = BUF_NULL;

        buf_appendf(&path, "%s/%u/cgroup", proc, pid);
        return buf_result(&path) == 0 && file_read(path.data, CGROUP_FILE_MAX, into) == 0;
}

bool process_state_is_paused(const char *proc, const char *root, uint32_t pid) {
        _cleanup_buf_ Buf cgroups = BUF_NULL;

        if (process_stat_is_stopped(proc, pid))
                return true;
        return root && read_cgroups(proc, pid, &cgroups) && is_frozen(root, buf_str(&cgroups));
}
