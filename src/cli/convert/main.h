/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The verb `aliquot convert`. Returns the exit status: man/aliquot-convert.1. */
int convert_main(int argc, char **argv);
