#!/bin/sh
# The adapter as a command: FLINK_DIST=flink-dist-VERSION.jar ./run.sh [FAULT]. First build it: ./build.sh "$FLINK_DIST".
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dist=${FLINK_DIST:?set FLINK_DIST to the path of flink-dist-VERSION.jar}
classes=$here/build/$(basename "$dist" .jar)
if [ ! -e "$classes/streamproof/flinkclasses/Main.class" ]; then
  echo "the adapter is not built for $dist; run $here/build.sh $dist" >&2
  exit 2
fi
exec java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$classes:$dist" streamproof.flinkclasses.Main "$@"
