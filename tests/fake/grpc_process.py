# SPDX-License-Identifier: Apache-2.0
"""What a process with gRPC in it must not do.

It must not fork: the fork handlers of grpcio wait until its threads are idle, in some versions for ever. A test that forks is ended.
subprocess is allowed: without preexec_fn it uses vfork() or posix_spawn(), which run no fork handler. What preexec_fn would do, a program
can do that executes the next one: unshare(1), prlimit(1).

It must not end as Python does: threads of grpcio run on while the interpreter is taken down. A test ended so by SIGSEGV after all its cases
had passed, on a loaded machine. run_tests() ends without that."""

import os
import sys
import traceback
import unittest


def refuse():
    traceback.print_stack()
    print("grpc_process: this process has gRPC in it and must not fork", file=sys.stderr, flush=True)
    os._exit(1)  # an exception would be ignored here


def run_tests(**options):
    """unittest.main(), with its options. Functions of atexit are not called."""
    result = unittest.main(exit=False, **options).result
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0 if result.wasSuccessful() else 1)


os.register_at_fork(before=refuse)
