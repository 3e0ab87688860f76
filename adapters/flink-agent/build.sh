#!/bin/sh
# Builds credit-agent.jar: ./build.sh FLINK_HOME/lib/flink-dist-VERSION.jar [FOLDER]. Needs javac 11 or later, nothing else.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dist=${1:?give the path of flink-dist-VERSION.jar, whose shaded ASM is used}
target=${2:-$here/build}
classes=$(mktemp -d)
trap 'rm -rf "$classes"' EXIT
mkdir -p "$target"
javac --release 11 -Xlint:all -Werror -cp "$dist" -d "$classes" "$here"/src/streamproof/flink/*.java
printf 'Premain-Class: streamproof.flink.CreditAgent\n' > "$classes/manifest"
jar cfm "$target/credit-agent.jar" "$classes/manifest" -C "$classes" streamproof
echo "$target/credit-agent.jar"
