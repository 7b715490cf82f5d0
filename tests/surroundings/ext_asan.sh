#!/bin/sh
# ext_asan.sh PYTHON BUILD CC [TARGET ...] - builds the extension module with the address sanitizer
# into BUILD/ext-asan, beside a copy of the package, and runs reentrant.py there, for all targets or
# those given.
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
    # shellcheck disable=SC2046
    set -- $(LD_PRELOAD="$library" "$python" "$here/reentrant.py" --targets)
fi
for name in "$@"; do
    printf 'ext-asan: %s: ' "$name"
    REENTRANT_LOG="$build/ext-asan.call" LD_PRELOAD="$library" \
        "$python" "$here/reentrant.py" "$name" 1800 || {
        printf 'ext-asan: failed in %s\n' "$(cat "$build/ext-asan.call")"
        exit 1
    }
done
