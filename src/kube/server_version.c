/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/server_version.h"

#include "wire/json_field.h"

typedef struct Version {
        Str text, major, minor;
} Version;

int server_version_ask(KubeClient *c, KubeDone done, void *userdata) {
        return kube_call(c, &(KubeRequest){.method = "GET", .path = "/version"}, done, userdata, NULL);
}

static bool decode(Str json, Arena *arena, Version *ret) {
        static const JsonField fields[] = {
                JSON_FIELD(Version, text, "gitVersion", json_field_str),
                JSON_FIELD(Version, major, "major", json_field_str),
                JSON_FIELD(Version, minor, "minor", json_field_str),
        };

        return json_field_read(json, arena, fields, ELEMENTSOF(fields), ret, NULL) == 0;
}

/* Parses the minor, behind which some vendors write a plus: "31+". */
static bool parse_minor(const Version *v, uint32_t *ret) {
        Str digits = v->minor;

        if (digits.len > 0 && digits.data[digits.len - 1] == '+')
                digits.len--;
        return str_eq(v->major, STR("1")) && str_to_u32(digits, ret);
}

static bool was_run(uint32_t minor) {
        static const uint32_t run[] = SERVER_MINORS_RUN;

        for (size_t i = 0; i < ELEMENTSOF(run); i++)
                if (run[i] == minor)
                        return true;
        return false;
}

bool server_version_judge(const KubeReply *reply, Fault *line) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Version v = {0};
        uint32_t minor;

        if (reply->outcome != KUBE_DONE || reply->status != 200)
                return fault_set(line, 0, "the API server's version is not known: %s", reply->fault.text);
        if (!decode(reply->body, &arena, &v) || !parse_minor(&v, &minor))
                return fault_set(line, 0, "the API server's version is not known: no minor of 1");
        if (minor < SERVER_MINOR_FLOOR)
                return fault_set(line, 1,
                                 "the API server is Kubernetes " STR_FMT ", older than 1.%d, the floor",
                                 STR_ARG(v.text), SERVER_MINOR_FLOOR);
        if (!was_run(minor))
                return fault_set(line, 1,
                                 "the API server is Kubernetes " STR_FMT
                                 "; aliquot was never run on 1.%u (docs/operate/install.md names the minors)",
                                 STR_ARG(v.text), minor);
        return fault_set(line, 0, "the API server is Kubernetes " STR_FMT, STR_ARG(v.text));
}

uint32_t server_version_minor(const KubeReply *reply) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Version v = {0};
        uint32_t minor;

        if (reply->outcome != KUBE_DONE || reply->status != 200 || !decode(reply->body, &arena, &v) ||
            !parse_minor(&v, &minor))
                return 0;
        return minor;
}
