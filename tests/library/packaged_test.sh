#!/bin/bash
# The Debian package, unpacked into a folder: all that belongs in it is there, and what can be
# started without being installed works. Argument: the build folder.
#
# To try the package on a clean system, see chroot_smoke in this folder.
set -euo pipefail
build=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Packing takes longer than compiling little: it is only looked at here.
cpack --config "$build/CPackConfig.cmake" -B "$folder" -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip \
  -D CPACK_PACKAGING_INSTALL_PREFIX=/usr > "$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
package=("$folder"/tailtrace_*_amd64.deb)
dpkg-deb -x "${package[0]}" "$folder/root"
"$(dirname "$0")/smoke" "$folder/root"

depends=$(dpkg-deb -f "${package[0]}" Depends)
for name in libc6 libdeflate0 libdw1 libzydis4.0 libipt2 libfmt9; do
  [[ $depends == *"$name"* ]] || { echo "depends on $depends, not on $name"; exit 1; }
done
[ -s "$folder/root/usr/share/doc/tailtrace/copyright" ] || { echo "no licence in it"; exit 1; }
dpkg-deb -e "${package[0]}" "$folder/control"
grep -q ldconfig "$folder/control/triggers" || { echo "ldconfig is not run"; exit 1; }
