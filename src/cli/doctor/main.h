/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

int doctor_main(int argc, char **argv);
