#!/bin/bash
# The library as its users have it: installed into a folder, found through pkg-config and CMake,
# with nothing visible but its interface. Arguments: the build folder, the source folder.
set -euo pipefail
build=$1 source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$build" --prefix "$folder/usr" --component library > "$folder/log"

library=$(find "$folder/usr" -name 'libtailtrace.so')
strangers=$(nm -D --defined-only "$library" | awk '{print $3}' | grep -v '^tt_\|^TAILTRACE_0' || true)
[ -z "$strangers" ] || { echo "visible beside the interface: $strangers"; exit 1; }
declared=$(grep -o 'tt_[a-z_]*(' "$folder"/usr/include/tailtrace/tailtrace.h | tr -d '(' | sort -u)
for name in $declared; do
  nm -D --defined-only "$library" | grep -q " T $name@" || { echo "$name is missing"; exit 1; }
done

export PKG_CONFIG_PATH=$(dirname "$(find "$folder/usr" -name tailtrace.pc)")
flags="${CFLAGS:-} $(pkg-config --cflags --libs tailtrace)"
export LD_LIBRARY_PATH=$(dirname "$library")
for program in example recordings choices hits; do
  # shellcheck disable=SC2086
  cc -std=gnu11 -Wall -Wextra -Werror -o "$folder/$program" "$source/$program.c" $flags
done
cmake -S "$source" -B "$folder/build" -DCMAKE_PREFIX_PATH="$folder/usr" > "$folder/log"
cmake --build "$folder/build" > "$folder/log" || { cat "$folder/log"; exit 1; }

# Without the hardware they say so, with the reason; with it the C one shows instructions.
status=0
"$folder/example" > "$folder/out" 2> "$folder/err" || status=$?
case $status in
  0) grep -q 'instructions, the last of them' "$folder/out" ;;
  3 | 4) grep -q 'why:  .' "$folder/err" ;;
  *) echo "example: status $status"; cat "$folder/err"; exit 1 ;;
esac
for program in recordings choices; do
  status=0
  "$folder/$program" "$folder/trace" > "$folder/out" 2> "$folder/err" || status=$?
  case $status in
    0) grep -q 'without loss: \|kernel: ' "$folder/out" ;;
    3 | 4) grep -q 'why:  .' "$folder/err" ;;
    *) echo "$program: status $status"; cat "$folder/err"; exit 1 ;;
  esac
done
# Debug registers are there on every machine; others may hold them, or not let us have them.
# Some virtual machines forget now and then which one was hit (plugin/engines/perf/breakpoints.h).
for hits in "$folder/hits" "$folder/build/hits_cpp"; do
  for attempt in 1 2 3; do
    status=0
    "$hits" > "$folder/out" 2> "$folder/err" || status=$?
    case $status in 1 | 133) echo "$hits: attempt $attempt: status $status" ;; *) break ;; esac
  done
  case $status in
    0) grep -q 'writes' "$folder/out" ;;
    3 | 4 | 7) grep -q 'why:  .' "$folder/err" ;;
    *) echo "$hits: status $status"; cat "$folder/out" "$folder/err"; exit 1 ;;
  esac
done
status=0
"$folder/build/example_cpp" > "$folder/out" 2> "$folder/err" || status=$?
[ $status = 8 ] && grep -q 'there is no such process' "$folder/err" ||
  { echo "example_cpp: status $status"; cat "$folder/err"; exit 1; }
