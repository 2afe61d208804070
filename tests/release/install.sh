#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/release/install.sh DIST SCRATCH: installs the files of a release into empty Debian roots
# below SCRATCH and runs a program in a slice of a simulated card there. Debian 12 gets the package,
# whose removal leaves nothing; Debian 13 gets the archive, unpacked in a folder of its own.
# 77, with the reason: root, mmdebstrap or Debian's mirrors are missing.
set -euo pipefail

dist=$(realpath "$1") scratch=$(realpath -m "$2")
arch=$(dpkg --print-architecture)
# shellcheck source=tests/release/roots.sh
. "$(dirname "$0")/roots.sh"
(cd "$dist" && sha256sum --quiet -c SHA256SUMS)
[ -c /dev/fuse ] || { echo "skipped: there is no /dev/fuse for the simulated driver"; exit 77; }

files() { # ROOT: every file but logs, package lists, and what ldconfig and apt write for each package
        (cd "$1" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./var/cache -o -path ./var/log \
                -o -path ./var/lib/apt -o -path ./var/lib/dpkg \) -prune -o -print | sort)
}

slice() { # ROOT ALIQUOT: nvidia-smi in a slice of 2 GiB, which shows the slice and not the card
        enter "$1" "$2" run --simulate 1xTesla-V100-SXM2-16GB:16160MiB --gpu-mem 2 -- nvidia-smi | tee "$scratch/said"
        grep -q ' 0MiB / *2154MiB' "$scratch/said"
}

make_root bookworm
root=$scratch/bookworm
enter "$root" apt-get update -qq
# What it depends on, first: these packages stay.
depends=$(dpkg-deb -f "$dist"/aliquot_*_"$arch".deb Depends Recommends | sed 's/^[A-Za-z]*: //; s/([^)]*)//g; s/,/ /g')
# shellcheck disable=SC2086 # names of packages
enter "$root" apt-get install -yqq --no-install-recommends $depends >"$scratch/apt.log"
files "$root" >"$scratch/before"
cp "$dist"/aliquot_*_"$arch".deb "$root/tmp/aliquot.deb"
enter "$root" dpkg -i /tmp/aliquot.deb
enter "$root" dpkg --verify aliquot
enter "$root" aliquot --version
slice "$root" aliquot
enter "$root" dpkg --purge aliquot
files "$root" | diff "$scratch/before" -
echo "Debian 12: installed, run and removed"

make_root trixie
root=$scratch/trixie
tar -C "$root/opt" -xf "$dist"/aliquot-*-linux-"$arch".tar.gz
folder=$(basename "$root"/opt/aliquot-*)
for program in "$root/opt/$folder/bin/"*; do
        enter "$root" "/opt/$folder/bin/$(basename "$program")" --help >/dev/null
done
slice "$root" "/opt/$folder/bin/aliquot"
echo "Debian 13: the archive runs where no package was installed"
