/* SPDX-License-Identifier: Apache-2.0 */
#include "node/kubelet/process_owner.h"

#include "base/file.h"

enum { CGROUP_FILE_MAX = 64 * 1024, UID_MIN = 32 };

/* Takes a UUID, with "_" for "-" as in a slice's name. The UID of a static pod is a hash. */
static bool take_uid(Str text, char ret[static POD_UID_SIZE]) {
        size_t n = 0;

        if (text.len < UID_MIN || text.len >= POD_UID_SIZE)
                return false;
        for (; n < text.len; n++) {
                char c = text.data[n] == '_' ? '-' : text.data[n];

                if (c != '-' && !(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
                        return false;
                ret[n] = c;
        }
        ret[n] = '\0';
        return true;
}

/* The part behind the last `mark`; all of the text when there is none. */
static Str behind(Str text, char mark) {
        const char *at = text.len > 0 ? memrchr(text.data, mark, text.len) : NULL;

        return at ? (Str){at + 1, text.len - (size_t) (at + 1 - text.data)} : text;
}

/* Takes "ID", "crio-ID" or "cri-containerd-ID.scope". Any other name, of a cgroup that a program
 * made, gives no container. */
static void take_container(Str name, char ret[static CONTAINER_ID_SIZE]) {
        const Str scope = STR(".scope");

        ret[0] = '\0';
        if (name.len > scope.len && memcmp(name.data + name.len - scope.len, scope.data, scope.len) == 0)
                name.len -= scope.len;
        name = behind(name, '-');
        if (name.len == 0 || name.len >= CONTAINER_ID_SIZE)
                return;
        for (size_t i = 0; i < name.len; i++) {
                char c = name.data[i];

                if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z'))
                        return;
        }
        memcpy(ret, name.data, name.len);
        ret[name.len] = '\0';
}

/* The part behind the last "-pod": a --cgroup-root may contain "-pod", a UID cannot. */
static const char *find_uid(Str name) {
        const char *found = NULL;
        size_t at = 0;

        while (at < name.len) {
                const char *next = memmem(name.data + at, name.len - at, "-pod", 4);

                if (!next)
                        break;
                found = next + 4;
                at = (size_t) (found - name.data);
        }
        return found;
}

/* Whether this part of the path is a pod's. *ret_joined: the container, where the same part names
 * it. */
static bool take_pod(Str name, char ret_uid[static POD_UID_SIZE], Str *ret_joined) {
        const char *slice = find_uid(name);
        Str uid, end;

        *ret_joined = (Str){0};
        if (!slice) {
                if (name.len <= 3 || memcmp(name.data, "pod", 3) != 0)
                        return false;
                return take_uid((Str){name.data + 3, name.len - 3}, ret_uid);
        }
        end = (Str){slice, name.len - (size_t) (slice - name.data)};
        uid = str_split(&end, '.');
        *ret_joined = end;
        if (!str_eq(str_split(ret_joined, ':'), STR("slice")))
                return false;
        *ret_joined = behind(*ret_joined, ':');
        return take_uid(uid, ret_uid);
}

/* Takes one line, "12:pids:/a/b/c". The outermost pod counts: a cluster inside a container belongs
 * to that container. */
static bool take_line(Str line, ProcessOwner *ret) {
        while (line.len > 0) {
                Str joined, name = str_split(&line, '/');

                if (!take_pod(name, ret->uid, &joined))
                        continue;
                if (joined.len == 0)
                        joined = str_split(&line, '/');
                take_container(joined, ret->container);
                return true;
        }
        return false;
}

Str process_owner_container_path(Str path) {
        ProcessOwner owner = {0};
        Str rest = path, head = {0};

        while (rest.len > 0 && owner.container[0] == '\0') {
                (void) str_split(&rest, '/');
                head = (Str){path.data, path.len - rest.len};
                (void) take_line(head, &owner);
        }
        if (owner.container[0] == '\0')
                return STR("");
        head.len -= head.data[head.len - 1] == '/';
        return head;
}

bool process_owner_parse(Str text, ProcessOwner *ret) {
        ProcessOwner found = {0}, line;

        /* Version 1 has a line for each controller, and some may lack the container. */
        while (text.len > 0) {
                if (!take_line(str_split(&text, '\n'), &line))
                        continue;
                if (found.uid[0] != '\0' && strcmp(found.uid, line.uid) != 0)
                        continue;
                found = line;
                if (found.container[0] != '\0')
                        break;
        }
        if (found.uid[0] == '\0')
                return false;
        *ret = found;
        return true;
}

bool process_owner_of(const char *proc, uint32_t pid, ProcessOwner *ret) {
        _cleanup_buf_ Buf path = BUF_NULL, text = BUF_NULL;

        buf_appendf(&path, "%s/%u/cgroup", proc, pid);
        return buf_result(&path) == 0 && file_read(path.data, CGROUP_FILE_MAX, &text) == 0 &&
               process_owner_parse(buf_str(&text), ret);
}
