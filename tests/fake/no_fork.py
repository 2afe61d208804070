# SPDX-License-Identifier: Apache-2.0
"""Ends a test that forks while gRPC is in its process. The fork handlers of grpcio wait until its threads are idle, in some versions
for ever. subprocess is allowed: without preexec_fn it uses vfork() or posix_spawn(), which run no fork handler. What preexec_fn would
do, a program can do that executes the next one: unshare(1), prlimit(1)."""

import os
import sys
import traceback


def refuse():
    traceback.print_stack()
    print("no_fork: this process has gRPC in it and must not fork", file=sys.stderr, flush=True)
    os._exit(1)  # an exception would be ignored here


os.register_at_fork(before=refuse)
