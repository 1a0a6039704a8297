#!/bin/sh
set -eu
root=$1

mkdir "$root/bin"
musl-gcc -std=c17 -Os -Wall -Wextra -static -s -o "$root/bin/show" show.c
