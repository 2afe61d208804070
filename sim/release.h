/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The version of the driver whose answers are given: what differs between releases. */

#include <stdbool.h>

#include "base/fault.h"
#include "gpu/cards/card_list.h"
#include "gpu/rm/release.h"
#include "gpu/rm/rm.h"

/* The versions unless another one is asked for. 580 is the last branch for cards of Volta, Pascal
 * and Maxwell, which therefore have ACK's default ("NVIDIA driver versions supported by ACK"). 470
 * is the last one for Kepler, older than any here: such cards have the oldest of the two. */
#define SIM_VERSION           "595.45.04"
#define SIM_VERSION_OLD_CARDS "535.161.07"

enum { SIM_BRANCH_OLD_CARDS = 580 }; /* the last one for cards before Turing */

typedef struct SimRelease {
        char version[64]; /* as CHECK_VERSION tells it */
        const RmRelease *facts;
        /* The status of a control whose parameters have another size than the driver's. In older
         * releases only the object refuses them, with INVALID_PARAM_STRUCT (rs_resource.c,
         * resControlLookup_IMPL()). Since 535.161.07, 550.40.53 and 555 the call is refused before
         * that, with INVALID_ARGUMENT (control.c, _rmapiRmControl()). */
        uint32_t wrong_size;
        /* FB_GET_INFO becomes FB_GET_INFO_V2 before it is looked at, since 550
         * (rmapi_deprecated_control.c). Then its size does not matter, and an unknown index is no
         * error. */
        bool converts_fb_info;
} SimRelease;

/* Returns 0, or SIM_RELEASE_E_WRONG with a fault: not a version such as 550.163.01 or 565.77, or
 * older than 535. fault may be NULL. */
enum { SIM_RELEASE_E_WRONG = 1 };
int sim_release_parse(const char *version, SimRelease *ret, Fault *fault);

/* A version that serves all these cards, by their models: one of the two above. */
const char *sim_release_version_of(const CardList *cards);

/* Returns the model of a card that no driver of that branch serves; NULL: none. */
const char *sim_release_cannot_drive(const SimRelease *release, const CardList *cards);

/* Does the driver's resource_list.h have the class? */
bool sim_release_has_class(const SimRelease *release, uint32_t class_);
