#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes files of the page as C, with what src/scheduler/page/page_files.h declares.

    embed.py OUTPUT FILE...
"""
import os
import sys

TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


def main():
    output, files = sys.argv[1], sys.argv[2:]
    text = ["/* SPDX-License-Identifier: Apache-2.0 */", '#include "scheduler/page/page_files.h"', ""]
    rows = []
    for i, path in enumerate(files):
        name = os.path.basename(path)
        with open(path, "rb") as f:
            data = f.read()
        text.append(f"static const unsigned char file{i}[] = {{")
        text += ["        " + ", ".join(map(str, data[at:at + 20])) + "," for at in range(0, len(data), 20)]
        text += ["};", ""]
        url = "/" if name == "index.html" else "/" + name
        rows.append(f'        {{"{url}", "{TYPES[os.path.splitext(name)[1]]}", {{(const char *) file{i}, sizeof file{i}}}}},')
    text += ["static const PageFile files[] = {", *rows, "};", "",
             "const PageFile *page_files_find(const char *path) {",
             "        for (size_t i = 0; i < sizeof files / sizeof *files; i++)",
             "                if (strcmp(files[i].path, path) == 0)",
             "                        return &files[i];",
             "        return NULL;",
             "}"]
    with open(output, "w", encoding="utf-8") as f:
        f.write("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
