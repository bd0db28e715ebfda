#!/usr/bin/env bash
# Tests of the cache of compiled code with a Redis server, which is started for them and ends in the middle of the last one.
#
#     $ tests/cache_redis.sh
#
# Without `redis-server` (Debian: `apt install redis-server`) nothing is tested, and the reason is printed.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v redis-server > /dev/null; then
    echo 'skipped: there is no redis-server'
    exit 0
fi
folder=$(mktemp -d)
server=
finish() {
    # The last test has ended it already.
    [ -z "$server" ] || kill "$server" 2> /dev/null || true
    rm -rf "$folder"
}
trap finish EXIT

redis-server --port 0 --unixsocket "$folder/redis.sock" --save '' --appendonly no --dir "$folder" \
    --maxmemory 64mb --maxmemory-policy allkeys-lru > "$folder/log" 2>&1 &
server=$!
for _ in $(seq 100); do
    [ -S "$folder/redis.sock" ] && break
    sleep 0.1
done
[ -S "$folder/redis.sock" ] || { echo 'redis-server does not start:' >&2; cat "$folder/log" >&2; exit 1; }

export BROLGA_TEST_REDIS="redis+unix://$folder/redis.sock" BROLGA_TEST_REDIS_PID="$server"
cargo test -p brolga-cache --features redis -- --ignored
cargo test -p brolga --features redis --test cache -- --ignored
