/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The files of web/, compiled in: scripts/embed.py writes them into page_files.c at build time. */

#include "base/str.h"

typedef struct PageFile {
        const char *path, *content_type;
        Str bytes;
} PageFile;

/* Finds a file by its path ("/", "/page.js"); NULL: there is none. */
const PageFile *page_files_find(const char *path);
