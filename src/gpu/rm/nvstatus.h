/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The statuses of the driver that matter here: nvstatuscodes.h. */

enum {
        RM_OK = 0x0,
        RM_ERR_ILLEGAL_ACTION = 0x16,
        RM_ERR_INSERT_DUPLICATE_NAME = 0x19,
        RM_ERR_INSUFFICIENT_RESOURCES = 0x1A,
        RM_ERR_INSUFFICIENT_PERMISSIONS = 0x1B,
        RM_ERR_INVALID_ADDRESS = 0x1E,
        RM_ERR_INVALID_ARGUMENT = 0x1F,
        RM_ERR_INVALID_CHANNEL = 0x21,
        RM_ERR_INVALID_CLASS = 0x22,
        RM_ERR_INVALID_CLIENT = 0x23,
        RM_ERR_INVALID_DEVICE = 0x26,
        RM_ERR_INVALID_FLAGS = 0x29,
        RM_ERR_INVALID_OBJECT = 0x31,
        RM_ERR_INVALID_OBJECT_HANDLE = 0x33,
        RM_ERR_INVALID_OBJECT_PARENT = 0x36,
        RM_ERR_INVALID_OWNER = 0x39,
        RM_ERR_INVALID_PARAMETER = 0x3B,
        RM_ERR_INVALID_STATE = 0x40,
        RM_ERR_NO_MEMORY = 0x51,
        RM_ERR_NOT_READY = 0x55,
        RM_ERR_NOT_SUPPORTED = 0x56,
        RM_ERR_OBJECT_NOT_FOUND = 0x57,
};
