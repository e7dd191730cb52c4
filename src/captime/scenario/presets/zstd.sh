#!/bin/sh
# zstd.sh FILE COMPRESSED
# Exit code 0 if the compressed file is small enough and holds the file, 1 if not.
share=50    # per cent of the size of the file
size=$(wc -c < "$1")
compressed=$(wc -c < "$2")
[ $((compressed * 100)) -le $((size * share)) ] || exit 1
zstd -q -d -c --long=27 "$2" | cmp -s - "$1" || exit 1
