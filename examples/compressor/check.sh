#!/bin/sh
# check.sh FILE COMPRESSED: is the compressed file small enough? What `xz -3` makes of the file is the measure; it is
# found once for each file and kept beside it. 0: yes, 1: no.
test -s "$2" || exit 1
if ! test -s "$1.limit"; then
    xz -3 -c "$1" | wc -c > "$1.limit.$$" && mv "$1.limit.$$" "$1.limit"
fi
test "$(wc -c < "$2")" -le "$(cat "$1.limit")"
