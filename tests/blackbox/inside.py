# SPDX-License-Identifier: Apache-2.0
"""Runs one of the programs under test: inside.py MODULE NAME. As a module its file is compiled once, not by each process."""
import importlib
import os
import sys

if __name__ == "__main__":
    importlib.import_module(sys.argv[1])
    import rm_client
    rm_client.INSIDE[sys.argv[2]]()
    os._exit(0)  # without the interpreter's clean-up, which frees nothing of the driver's
