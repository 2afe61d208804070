/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The verb `aliquot local`: a cluster in this process. Returns the exit code: 0 every pod was
 * placed, 1 some were not, 2 wrong usage or a manifest that cannot be applied, 3 we are broken. */
int local_main(int argc, char **argv);
