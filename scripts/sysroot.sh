#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/sysroot.sh ARCHITECTURE FOLDER: unpacks the libraries and headers of Debian 12 for another
# processor, beside a list of packages that dpkg-query reads and FOLDER/cross.ini for meson. Nothing
# of it runs, and this machine's own packages stay as they are.
set -euo pipefail

architecture=$1 folder=$2
here=$(cd "$(dirname "$0")" && pwd)
case $architecture in
amd64) triplet=x86_64-linux-gnu cpu=x86_64 ;;
arm64) triplet=aarch64-linux-gnu cpu=aarch64 ;;
*) echo "sysroot: \"$architecture\" must be amd64 or arm64" >&2; exit 2 ;;
esac
for program in mmdebstrap "$triplet-gcc" "qemu-$cpu"; do
        command -v "$program" >/dev/null || { echo "sysroot: no $program; scripts/deps.sh release aarch64 installs it" >&2; exit 1; }
done
wanted=libc6-dev
while IFS= read -r package; do wanted+=,$package; done < <(sed -n 's/^build \(.*-dev\)$/\1/p' "$here/packages.txt")

# Made anew where the list of packages is another one.
if [ "$(cat "$folder/complete" 2>/dev/null)" = "$architecture $wanted" ]; then exit 0; fi
rm -rf "$folder"
mkdir -p "$(dirname "$folder")"
mmdebstrap --quiet --variant=extract --skip=cleanup/apt --architectures="$architecture" --include="$wanted" bookworm "$folder"
folder=$(cd "$folder" && pwd)

# Unpacked packages are in no list of dpkg: make it from the archives.
database=$folder/var/lib/dpkg
mkdir -p "$database/info"
echo "$architecture" >"$database/arch"
for archive in "$folder"/var/cache/apt/archives/*.deb; do
        name=$(dpkg-deb -f "$archive" Package)
        if [ "$(dpkg-deb -f "$archive" Multi-Arch)" = same ]; then name+=:$architecture; fi
        { dpkg-deb -f "$archive" | sed '1a Status: install ok installed'; echo; } >>"$database/status"
        dpkg-deb --fsys-tarfile "$archive" | tar -t | sed 's|^\.||; s|/$||; s|^$|/.|' >"$database/info/$name.list"
        dpkg-deb --ctrl-tarfile "$archive" | tar -xO ./shlibs >"$database/info/$name.shlibs" 2>/dev/null ||
                rm "$database/info/$name.shlibs"
        rm "$archive"
done
echo 1 >"$database/info/format"

cat >"$folder/cross.ini" <<INI
[binaries]
c = '$triplet-gcc'
ar = '$triplet-gcc-ar'
strip = '$triplet-strip'
pkgconfig = 'pkg-config'
exe_wrapper = ['qemu-$cpu', '-L', '$folder']
[host_machine]
system = 'linux'
cpu_family = '$cpu'
cpu = '$cpu'
endian = 'little'
[properties]
sys_root = '$folder'
pkg_config_libdir = ['$folder/usr/lib/$triplet/pkgconfig', '$folder/usr/share/pkgconfig']
[built-in options]
c_link_args = ['--sysroot=$folder']
INI
echo "$architecture $wanted" >"$folder/complete"
