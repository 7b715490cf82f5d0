#!/bin/sh
# ext_asan.sh PYTHON BUILD CC [TARGET ...] - builds the extension module with the address sanitizer
# into BUILD/ext-asan, beside a copy of the package, and runs reentrant.py there, for all targets or
# those given. PART=2/3 in the environment: for the second, fifth, eighth, ... of all.
set -eu

python=$1
build=$(mkdir -p "$2" && cd "$2" && pwd)
cc=$3
shift 3
here=$(dirname "$0")
target="$build/ext-asan"

CFLAGS="-fsanitize=address -fno-omit-frame-pointer" LDFLAGS="-fsanitize=address" CC="$cc" \
    PENSTOCK_DEBUG=1 "$python" setup.py -q build_ext --build-lib "$target" \
    --build-temp "$target-objects"
(cd python && find penstock -name '*.py' | tar -cf - -T -) | tar -xf - -C "$target"

# The leaks that it would report are the interpreter's.
export ASAN_OPTIONS="detect_leaks=0,abort_on_error=1,allocator_may_return_null=1"
export PYTHONMALLOC=malloc PYTHONPATH="$target"
library=$($cc -print-file-name=libasan.so)
if [ $# -eq 0 ]; then
    part=${PART:-1/1}
    # shellcheck disable=SC2046
    set -- $(LD_PRELOAD="$library" "$python" "$here/reentrant.py" --targets |
        awk -v first="${part%/*}" -v parts="${part#*/}" 'NR % parts == first % parts')
fi
export here python build library
# two targets at a time; xargs fails when one has failed
printf '%s\n' "$@" | xargs -P 2 -I NAME sh -c '
    log="$build/ext-asan.call.$1"
    if said=$(REENTRANT_LOG="$log" LD_PRELOAD="$library" \
              "$python" "$here/reentrant.py" "$1" 1800 2>&1); then
        printf "ext-asan: %s: %s\n" "$1" "$said"
    else
        printf "%s\next-asan: %s: failed in %s\n" "$said" "$1" "$(cat "$log")"
        exit 1
    fi' sh NAME
