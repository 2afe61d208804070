# SPDX-License-Identifier: Apache-2.0
"""The classes of a file of tests, one a line, so that meson.build makes a test of each: classes.py FILE

A class that inherits all its tests from one in the same file counts, too."""
import ast
import sys


def test_classes(text):
    having = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            own = any(isinstance(n, ast.FunctionDef) and n.name.startswith("test") for n in node.body)
            if own or any(isinstance(base, ast.Name) and base.id in having for base in node.bases):
                having.append(node.name)
    return having


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        found = test_classes(file.read())
    if not found:
        sys.exit(f"{sys.argv[1]}: no class has a test")
    print("\n".join(found))
