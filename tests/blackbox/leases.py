#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which files of its page a container can lease: leases.py FOLDER"""

import fcntl
import os
import sys

if __name__ == "__main__":
    for name in "limits", "counters":
        fd = os.open(os.path.join(sys.argv[1], name), os.O_RDONLY)
        for kind in fcntl.F_RDLCK, fcntl.F_WRLCK:
            try:
                fcntl.fcntl(fd, fcntl.F_SETLEASE, kind)
                print(name, kind, "leased")
            except BlockingIOError:
                print(name, kind, "refused")
