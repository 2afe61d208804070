#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The order of the rooms: a room includes only itself and what is listed for it here. This list is
# the architecture. A room is a folder below src that is listed, or sim: src/node/kubelet is a room
# of its own, src/wire/proto belongs to wire. verbs, bind and view name no feature that has hooks.
set -euo pipefail

"$(dirname "$0")/sources.sh" c h | { grep -E '^(src/.*|sim)/' || true; } | xargs -r -d '\n' awk '
BEGIN {
        may["base"] = ""
        may["gpu/rm"] = ""
        may["slice"] = "base"
        may["slicedir"] = "base slice"
        may["arbiter"] = "base slice slicedir"
        may["preload/inject"] = "base slice"
        may["preload/memory"] = "base gpu/rm slice preload/inject"
        may["preload/launch"] = "base slice preload/inject preload/memory"
        may["wire"] = "base"
        may["share"] = "base wire slice" # slice: the policies of compute, one enum from annotation to page
        may["net/http"] = "base"
        may["local/apiserver"] = "base wire net/http"
        may["kube"] = "base wire"
        may["net/grpc"] = "base"
        may["gpu/cards"] = "base wire share"
        may["node/kubelet"] = "base wire net/grpc"
        may["scheduler/webhook"] = "base wire share net/http kube"
        may["scheduler/gang"] = "base wire share"
        may["scheduler/policy"] = "base wire share scheduler/webhook"
        may["scheduler/view"] = "base wire share kube scheduler/webhook scheduler/policy"
        may["scheduler/question"] = "base wire share kube scheduler/gang scheduler/policy scheduler/view"
        may["scheduler/verbs"] = "base wire share scheduler/view scheduler/question"
        may["scheduler/bind"] = "base share kube scheduler/view scheduler/question"
        may["scheduler/page"] = "base wire share net/http kube scheduler/gang scheduler/view scheduler/verbs"
        may["scheduler/controllers"] = "base wire share kube scheduler/webhook scheduler/gang scheduler/policy scheduler/view scheduler/question scheduler/bind"
        may["scheduler"] = "base wire share net/http kube scheduler/webhook scheduler/gang scheduler/view scheduler/question scheduler/verbs scheduler/bind scheduler/page scheduler/controllers"
        may["node/records"] = "base wire share kube gpu/cards node/kubelet"
        may["node/isolation"] = "base share slice slicedir node/kubelet node/records"
        may["node/limits"] = "base share gpu/cards node/kubelet node/records node/isolation"
        may["node/publish"] = "base wire share kube gpu/cards gpu/rm node/records"
        may["node/allocate"] = "base wire share kube gpu/cards node/kubelet node/records node/isolation node/limits"
        may["node/audit"] = "base gpu/cards node/kubelet slice slicedir arbiter node/records node/isolation"
        may["node"] = "base wire share net/http kube net/grpc gpu/cards node/kubelet slice slicedir arbiter node/records node/isolation node/limits node/publish node/allocate node/audit"
        may["sim"] = "base wire share gpu/cards gpu/rm"
        may["cli/run"] = "base gpu/rm slice slicedir arbiter gpu/cards"
        may["cli/sample"] = "base"
        may["cli/convert"] = "base wire share"
        # It judges what the other programs write, by their own readers.
        may["cli/doctor"] = "base wire share kube gpu/cards slicedir node/kubelet node/records node/publish scheduler/webhook scheduler/controllers scheduler cli/run"
        may["cli/inspect"] = "base wire share"
        may["local"] = "base wire share local/apiserver kube gpu/cards scheduler scheduler/webhook scheduler/policy scheduler/page cli/inspect slice slicedir arbiter"
}
# The longest folder of a path that is listed, else its first one.
function room_of(path, first) {
        first = path
        sub(/\/.*/, "", first)
        while (sub(/\/[^\/]*$/, "", path))
                if (path in may)
                        return path
        return first
}
match($0, /^[ \t]*#[ \t]*include[ \t]*"[a-z_]+\//) {
        room = FILENAME
        sub(/^src\//, "", room)
        room = room_of(room)
        target = $0
        sub(/^[^"]*"/, "", target)
        sub(/".*/, "", target)
        target = room_of(target)
        if (!(room in may)) {
                printf "%s:%d: room %s is not listed in scripts/check-rooms.sh\n", FILENAME, FNR, room
                bad = 1
        } else if (room != target && index(" " may[room] " ", " " target " ") == 0) {
                printf "%s:%d: %s includes %s; it may include: %s\n", FILENAME, FNR, room, target, may[room]
                bad = 1
        }
}
# What is optional or off by default is known there by its hooks (question/feature_hooks.h). The
# view follows ResourcePolicies as it follows nodes (docs/internals/decisions.md).
FILENAME ~ /^src\/scheduler\/(verbs|bind|view)\// && !/^[ \t]*(\/\*|\*)/ {
        code = $0
        sub(/\/\*.*/, "", code)
        if (code !~ /^[ \t]*#/)
                gsub(/"[^"]*"/, "", code)
        if (code ~ /[gG]ang|[gG]rowth|[gG]rower|[eE]victor/ || (FILENAME !~ /\/view\// && code ~ /[pP]olicy/)) {
                printf "%s:%d: verbs, bind and view name no feature that has hooks\n", FILENAME, FNR
                bad = 1
        }
}
END { exit bad }'
