#!/bin/sh
# meson test --wrapper: have cmocka write what each test function did to $MUSTER_XML/PROGRAM.xml,
# so that tests are counted one by one, and show that file where something failed.
xml=$MUSTER_XML/$(basename "$1").xml
rm -f "$xml"
CMOCKA_MESSAGE_OUTPUT=XML CMOCKA_XML_FILE=$xml "$@"
rc=$?
[ "$rc" -eq 0 ] || [ ! -f "$xml" ] || cat "$xml" >&2
exit "$rc"
