#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The order of the rooms: a room includes only itself and what is listed for it here. This list is the architecture.
set -euo pipefail

"$(dirname "$0")/sources.sh" c h | { grep '^src/.*/' || true; } | xargs -r -d '\n' awk '
BEGIN {
        may["base"] = ""
        may["beside"] = "base"
        may["rm"] = ""
        may["slice"] = "base"
        may["arbiter"] = "base slice"
        may["guest"] = "base slice"
        may["gate"] = "base rm slice guest"
        may["turnstile"] = "base slice guest gate"
        may["wire"] = "base"
        may["share"] = "base wire"
        may["http"] = "base"
        may["store"] = "base wire http"
        may["kube"] = "base wire"
        may["rpc"] = "base"
        may["cards"] = "base wire share"
        may["kubelet"] = "base wire rpc"
        may["admission"] = "base wire share http kube"
        may["scheduler"] = "base wire share http kube admission"
        may["books"] = "base wire share kube cards kubelet"
        may["isolation"] = "base share slice kubelet books beside"
        may["identity"] = "base wire share kube cards kubelet books isolation"
        may["audit"] = "base cards kubelet slice arbiter books isolation"
        may["node"] = "base wire share http kube rpc cards kubelet slice arbiter books isolation identity audit"
        may["sim"] = "base wire share cards rm"
        may["run"] = "base rm slice arbiter cards beside"
        may["sample"] = "base"
        may["inspect"] = "base wire share"
        may["local"] = "base wire share store kube cards scheduler inspect slice arbiter beside"
}
match($0, /^[ \t]*#[ \t]*include[ \t]*"[a-z_]+\//) {
        split(FILENAME, path, "/")
        room = path[2]
        target = $0
        sub(/^[^"]*"/, "", target)
        sub(/\/.*/, "", target)
        if (!(room in may)) {
                printf "%s:%d: room %s is not listed in scripts/check-rooms.sh\n", FILENAME, FNR, room
                bad = 1
        } else if (room != target && index(" " may[room] " ", " " target " ") == 0) {
                printf "%s:%d: %s includes %s; it may include: %s\n", FILENAME, FNR, room, target, may[room]
                bad = 1
        }
}
END { exit bad }'
