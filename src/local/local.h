/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The verb `aliquot local`: a cluster in this process. Returns the exit code: 0 every pod was
 * placed, 1 some were not, 2 wrong usage or an invalid manifest, 3 an internal error. */
int local_main(int argc, char **argv);
