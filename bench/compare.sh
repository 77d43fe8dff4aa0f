#!/bin/sh
# compare.sh <commit>: runs the micro-benchmarks of this tree and of a commit in turns, and compares them with benchstat.
# BENCH chooses benchmarks (a pattern, default all), PKGS packages (default all that have any), COUNT the rounds (6),
# BENCHTIME the length of each (0.5s), WITH files of this tree that the commit gets too: benchmarks that it did not have yet.
set -eu
commit=${1:?usage: make bench-compare COMMIT=<rev>}
here=$(git rev-parse --show-toplevel)
rev=$(git -C "$here" rev-parse --verify --quiet "$commit^{commit}") || { echo "compare.sh: there is no commit $commit" >&2; exit 2; }
tmp=$(mktemp -d)
trap 'git -C "$here" worktree remove --force "$tmp/then" 2>/dev/null || true; rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
git -C "$here" worktree add --quiet --detach "$tmp/then" "$rev"
for file in ${WITH:-}; do
  cp "$here/$file" "$tmp/then/$file"
done

# Test binaries are built once, so that the rounds hold nothing but benchmarks.
build() { # build <tree> <name>
  (
    cd "$1"
    for pkg in ${PKGS:-$(grep -rl --include='*_test.go' '^func Benchmark' . | xargs -n1 dirname | sort -u)}; do
      [ -d "$pkg" ] || continue
      go list "$pkg" >/dev/null 2>&1 || continue # of another module
      mkdir -p "$tmp/bin/$2/$pkg"
      go test -c -o "$tmp/bin/$2/$pkg/run" "$pkg"
    done
  )
}
build "$tmp/then" then
build "$here" now

round() { # round <tree> <name>
  find "$tmp/bin/$2" -name run | sort | while read -r run; do
    pkg=${run#"$tmp/bin/$2/"}
    (
      cd "$1/${pkg%/run}"
      "$run" -test.run '^$' -test.bench "${BENCH:-.}" -test.benchmem -test.benchtime "${BENCHTIME:-0.5s}"
    ) >>"$tmp/$2.txt" || { tail -n 20 "$tmp/$2.txt" >&2; exit 1; }
  done
}
i=0
while [ $i -lt "${COUNT:-6}" ]; do
  i=$((i + 1))
  echo "round $i of ${COUNT:-6}" >&2
  round "$tmp/then" then
  round "$here" now
done
cd "$tmp" # so that the columns have short names
go run golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da then.txt now.txt
