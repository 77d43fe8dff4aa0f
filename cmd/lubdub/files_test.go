//go:build linux

package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/internal/testenv"
)

// limited starts a server whose limit of open files was lowered for good.
func limited(t *testing.T, soft, hard int, args ...string) *running {
	t.Helper()
	path := testenv.Program(t, "lubdub")
	lower := fmt.Sprintf(`ulimit -Sn %d && ulimit -Hn %d && exec "$0" "$@"`, soft, hard)
	return launchBy(t, withKey, "sh", append([]string{"-c", lower, path, "serve", "--redis", "embedded", "--listen", "127.0.0.1:0",
		"--admin-listen", "127.0.0.1:0"}, args...)...)
}

// The limit of open files is raised as far as it may be, and max-connections is held against it when the server starts.
func TestConnectionsFitTheLimitOfOpenFiles(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	r := limited(t, 128, 700)
	api, _ := r.urls()
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", r.cmd.Process.Pid))
	if err != nil || !regexp.MustCompile(`Max open files +(699|700) +700 `).Match(limits) { // the runtime leaves one out
		t.Errorf("%v\n%s", err, limits)
	}
	until(t, "the warning", func() bool { return strings.Contains(r.errs.String(), "max-connections is lowered") })
	for range 1000 { // more strangers than there are files
		c, err := net.Dial("tcp", strings.TrimPrefix(api, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	e := createRunning(t, api, `{"taskId":"t1"}`)
	if status, body := request("POST", api+"/v1/tasks/t1/heartbeat", e.TaskToken, `{"attempt":1}`); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
	if strings.Contains(r.errs.String(), "no new connections can be taken") {
		t.Error("it ran out of files")
	}

	r = limited(t, 64, 128)
	if code := r.wait(); code != exitFailed || !strings.Contains(r.errs.String(), "the process may open 12") ||
		!strings.Contains(r.errs.String(), "ulimit -n") {
		t.Errorf("%d: %s", code, r.errs)
	}
}

// A process that has no file descriptor left takes no connection for a while, and lives.
func TestALackOfFilesEndsNoServer(t *testing.T) {
	t.Parallel()
	r := limited(t, 4096, 4096)
	api, admin := r.urls()
	setLimit := func(n int) {
		t.Helper()
		if out, err := exec.Command("prlimit", "--pid", fmt.Sprint(r.cmd.Process.Pid),
			fmt.Sprintf("--nofile=%d:4096", n)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	e := createRunning(t, api, `{"taskId":"t1"}`)
	setLimit(5) // less than are open
	for _, url := range []string{api, admin} {
		for range 10 {
			c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
	}
	until(t, "the lack", func() bool { return strings.Count(r.errs.String(), "no new connections can be taken") > 1 })
	setLimit(4096)
	until(t, "an answer", func() bool {
		status, _ := request("POST", api+"/v1/tasks/t1/heartbeat", e.TaskToken, `{"attempt":1}`)
		page, _ := request("GET", admin+"/readyz", "", "")
		return status == http.StatusOK && page == http.StatusOK
	})
	select {
	case <-r.exited:
		t.Errorf("it ended with %d: %s", r.code, r.errs)
	default:
	}
}
