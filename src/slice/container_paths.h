/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where a process of an isolated container finds what keeps it to its slices. All of it is mounted,
 * so that no environment variable has to be believed.
 *
 * SLICE_MOUNT_DIR is a read-only mount directly below the container's root. The kernel refuses to
 * rename or remove a mount point (EBUSY), and anything below a read-only mount (EROFS). A directory
 * deeper down could be moved away together with its parent. */

#define SLICE_MOUNT_DIR "/.aliquot"
#define SLICE_PAGES                                                                                          \
        SLICE_MOUNT_DIR "/slice" /* N/limits, read-only, N/counters and N/bell: one per card, from 0 */
#define SLICE_GATE    SLICE_MOUNT_DIR "/libaliquot.so"
#define SLICE_PRELOAD "/etc/ld.so.preload" /* it has one line, the path of the gate */

/* The second place, looked at where the first one does not exist. It serves `aliquot local`, whose
 * containers have the machine's root, in which no mount point can be made; there SLICE_RUN is a
 * read-only mount below a /run of the container's own. It serves pods that an agent admitted which
 * knew only this place, too: the kubelet gives their containers the same mounts until the pod is
 * deleted. */
#define SLICE_RUN       "/run/aliquot"
#define SLICE_RUN_PAGES SLICE_RUN "/slice"
#define SLICE_RUN_GATE  SLICE_RUN "/libaliquot.so"

/* The one of the two directories of pages that exists for this process; NULL: neither does. Not for
 * the gate: it uses libc. */
const char *slice_container_pages(void);
