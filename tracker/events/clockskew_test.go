package events_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
)

// aheadSource is a library that sets a process's wall clock ahead of the machine's by LUBDUB_TEST_AHEAD_MS milliseconds; its
// monotonic clock is unchanged.
const aheadSource = `
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long ahead(void) {
  static long ms = -1;
  if (ms < 0) { const char *v = getenv("LUBDUB_TEST_AHEAD_MS"); ms = v ? atol(v) : 0; }
  return ms;
}

int clock_gettime(clockid_t id, struct timespec *ts) {
  int r = syscall(SYS_clock_gettime, id, ts);
  if (r == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
    ts->tv_sec += ahead() / 1000;
    ts->tv_nsec += (ahead() % 1000) * 1000000;
    if (ts->tv_nsec >= 1000000000) { ts->tv_sec++; ts->tv_nsec -= 1000000000; }
  }
  return r;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz) {
  struct timespec ts;
  if (clock_gettime(CLOCK_REALTIME, &ts) != 0) return -1;
  tv->tv_sec = ts.tv_sec;
  tv->tv_usec = ts.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *t) {
  struct timespec ts;
  clock_gettime(CLOCK_REALTIME, &ts);
  if (t) *t = ts.tv_sec;
  return ts.tv_sec;
}
`

// aheadLibrary compiles that library into a directory of the test.
func aheadLibrary(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	source, library := filepath.Join(dir, "ahead.c"), filepath.Join(dir, "ahead.so")
	if err := os.WriteFile(source, []byte(aheadSource), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-O1", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("no C compiler that works, which `make deps` finds or installs: %v\n%s", err, out)
	}
	return library
}

// startClusterWithClockSkew starts a Cluster with a replica of each primary, whose servers' clocks differ: that of the last primary is the
// machine's, each before it is ahead of the next by the given time, and replicas are behind their primaries by as much, so that a
// failover sets the clock back.
func startClusterWithClockSkew(t testing.TB, primaries int, nodeTimeout, skew time.Duration) *redistest.Cluster {
	t.Helper()
	library := aheadLibrary(t)
	return redistest.StartClusterIn(t, primaries, 1, nodeTimeout, func(i int) []string {
		ahead := time.Duration(primaries-1-i%primaries) * skew
		if i < primaries {
			ahead += skew
		}
		return []string{"LD_PRELOAD=" + library, fmt.Sprintf("LUBDUB_TEST_AHEAD_MS=%d", ahead.Milliseconds())}
	})
}
