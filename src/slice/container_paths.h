/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where a process of an isolated container finds its slice pages and the library. All of it is
 * mounted, so that no environment variable has to be trusted.
 *
 * SLICE_MOUNT_DIR is a read-only mount directly below the container's root. The kernel refuses to
 * rename or remove a mount point (EBUSY), and anything below a read-only mount (EROFS). A directory
 * further down could be moved away together with its parent. */

#define SLICE_MOUNT_DIR "/.aliquot"

/* One directory per card, numbered from 0: SLICE_PAGES/N has limits (read-only), counters and
 * doorbell. */
#define SLICE_PAGES SLICE_MOUNT_DIR "/slice"
#define SLICE_GATE  SLICE_MOUNT_DIR "/libaliquot.so"

/* The dynamic linker's file, mounted into the container. Its only line is the path of the
 * library. */
#define SLICE_PRELOAD "/etc/ld.so.preload"

/* A second location, used where the first one does not exist. Containers of `aliquot local` have
 * the machine's root, in which no mount point can be made; there SLICE_RUN is a read-only mount
 * below a /run of the container's own. */
#define SLICE_RUN       "/run/aliquot"
#define SLICE_RUN_PAGES SLICE_RUN "/slice"
#define SLICE_RUN_GATE  SLICE_RUN "/libaliquot.so"

/* The directory of pages that exists for this process, or NULL. Not for the preloaded library: uses
 * libc. */
const char *slice_container_pages(void);
