/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which file of the driver a descriptor is open on. */

typedef enum FilesKind { FILES_OTHER, FILES_CTL, FILES_CARD, FILES_UVM } FilesKind;

FilesKind files_kind(int fd);
