# SPDX-License-Identifier: Apache-2.0
"""Reads a kustomization without kubectl. Ours list files, patch whole ConfigMaps, and replace single values."""

import copy
import os

import yaml


def load(path):
    with open(path, encoding="utf-8") as f:
        return [document for document in yaml.safe_load_all(f) if document]


def identity(o):
    return o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]


def kustomization(folder):
    """the objects by identity; refuses what this reader does not understand, and the same object twice"""
    (listed,) = load(os.path.join(folder, "kustomization.yaml"))
    unknown = set(listed) - {"apiVersion", "kind", "resources", "patches"}
    if unknown:
        raise ValueError(f"{folder}: {unknown}")
    objects = {}
    for resource in listed["resources"]:
        path = os.path.join(folder, resource)
        found = kustomization(path) if os.path.isdir(path) else {identity(o): o for o in load(path)}
        if objects.keys() & found.keys():
            raise ValueError(f"{path}: twice: {objects.keys() & found.keys()}")
        objects.update(found)
    for patch in listed.get("patches", []):
        if "target" in patch:
            replace(objects, patch["target"], yaml.safe_load(patch["patch"]))
            continue
        for p in load(os.path.join(folder, patch["path"])):
            if p["kind"] != "ConfigMap" or set(p) != {"apiVersion", "kind", "metadata", "data"}:
                raise ValueError(f"{folder}: not a patch of a ConfigMap: {identity(p)}")
            o = objects[identity(p)]
            objects[identity(p)] = {**o, "data": {**o["data"], **p["data"]}}
    return objects


def replace(objects, target, operations):
    """a JSON patch of `test`, `replace` and `remove` on one object"""
    ((key, o),) = [(k, o) for k, o in objects.items() if (k[0], k[2]) == (target["kind"], target["name"])]
    objects[key] = o = copy.deepcopy(o)
    for operation in operations:
        *path, last = [int(name) if name.isdigit() else name for name in operation["path"].split("/")[1:]]
        at = o
        for name in path:
            at = at[name]
        if operation["op"] == "replace":
            at[last] = operation["value"]
        elif operation["op"] == "remove":
            del at[last]
        elif operation["op"] != "test" or at[last] != operation["value"]:
            raise ValueError(f"{target}: {operation}")
