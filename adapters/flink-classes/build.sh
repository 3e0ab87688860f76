#!/bin/sh
# Builds the adapter for one version of Flink, in build/: ./build.sh flink-dist-VERSION.jar. Needs a JDK, 11 or later, nothing else.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dist=${1:?give the path of flink-dist-VERSION.jar}
target=$here/build/$(basename "$dist" .jar)
mkdir -p "$target"
if javap -cp "$dist" org.apache.flink.runtime.io.network.partition.consumer.RemoteInputChannel | grep -q ArrayDeque; then
  version=since-2.3
else
  version=before-2.3
fi
javac --release 11 -parameters -proc:none -Xlint:all,-classfile,-processing -Werror -cp "$dist" -d "$target" \
  "$here"/src/streamproof/flinkclasses/*.java "$here"/src/$version/streamproof/flinkclasses/*.java
