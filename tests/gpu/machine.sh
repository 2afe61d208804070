#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/gpu/machine.sh: what machine this is. Whatever is missing is said in its place.

uname -a
cat /proc/driver/nvidia/version
echo "card $(nvidia-smi --query-gpu=name,driver_version,memory.total,uuid --format=csv,noheader | head -n 1)"
python3 -c '
import ctypes
ctypes.CDLL("libcuda.so.1")
print("libcuda", [line.split()[-1] for line in open("/proc/self/maps") if "libcuda.so" in line][0])'
echo "uvm_disable_hmm $(cat /sys/module/nvidia_uvm/parameters/uvm_disable_hmm)"
echo "ptrace_scope $(cat /proc/sys/kernel/yama/ptrace_scope)"
python3 -c 'import torch; print("torch", torch.__version__, torch.version.cuda)'
python3 --version
id
nvidia-smi
nvidia-smi -q
ls -l /dev/nvidia* /dev/nvidia-caps "${ALIQUOT_SIM_DIR:-/dev}/nvidiactl"
ldconfig -p | grep -E 'libcuda|nvidia-ml'
env | grep -E 'LD_|NVIDIA|CUDA'
"${NVCC:-nvcc}" --version || /usr/local/cuda/bin/nvcc --version
exit 0
