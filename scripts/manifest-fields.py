#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints src/local/manifest_fields.c from a Kubernetes release's api/openapi-spec/swagger.json:
scripts/manifest-fields.py SWAGGER_JSON VERSION > src/local/manifest_fields.c"""

import json
import sys
import textwrap

ROOTS = {"core.v1": "Pod Node Namespace ConfigMap Secret Service ServiceAccount PersistentVolumeClaim ResourceQuota Event ReplicationController",
         "apps.v1": "Deployment StatefulSet ReplicaSet DaemonSet", "batch.v1": "Job", "coordination.v1": "Lease", "policy.v1": "PodDisruptionBudget"}
# Other programs write these parts; they change with each release.
CLOSED = ("status", "managedFields")

HEAD = """/* SPDX-License-Identifier: Apache-2.0 */
#include "local/manifest_fields.h"

#include "base/cleanup.h"

/* Of Kubernetes {}, api/openapi-spec/swagger.json; written by scripts/manifest-fields.py. */
const ManifestType manifest_types[] = {{"""
TAIL = """};

const size_t manifest_n_types = ELEMENTSOF(manifest_types);"""


def type_of(schema):
    if "$ref" in schema:
        return schema["$ref"].split("/")[-1]
    return type_of(schema["items"]) if schema.get("type") == "array" else None


def visit(definitions, name, found):
    if name in found or "properties" not in definitions[name]:
        return name in found
    found[name] = fields = []
    for field, schema in definitions[name]["properties"].items():
        member = None if field in CLOSED else type_of(schema)
        known = member and visit(definitions, member, found)
        fields.append(field + (":" + member.split(".")[-1] if known else ""))
    return True


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        definitions = json.load(file)["definitions"]
    found = {}
    for group, kinds in ROOTS.items():
        for kind in kinds.split():
            visit(definitions, f"io.k8s.api.{group}.{kind}", found)
    print(HEAD.format(sys.argv[2]))
    for name in sorted(found, key=lambda name: name.split(".")[-1]):
        lines = textwrap.wrap(" ".join(found[name]), 90)
        text = "\n".join(f'         "{line}{" " if i + 1 < len(lines) else ""}"' for i, line in enumerate(lines))
        print(f'        {{"{name.split(".")[-1]}",\n{text or chr(34) * 2}}},')
    print(TAIL)


if __name__ == "__main__":
    main()
