package redistest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// keepsFolder stays open for as long as this test binary lives.
//
//lint:ignore U1000 it is kept so that it is not closed
var keepsFolder io.WriteCloser

// folder is the parent directory of all servers of this test binary. Cleanup functions do not run when a test panics, exceeds its time
// limit or is killed, so a shell waits for the end of its input, which comes whenever the test binary ends, and removes the
// directory.
var folder = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "lubdub-redis-")
	if err != nil {
		return "", err
	}
	guard := exec.Command("/bin/sh", "-c", `read -r end; rm -rf "$1"`, "sh", dir)
	guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the tests, not for it
	if keepsFolder, err = guard.StdinPipe(); err == nil {
		err = guard.Start()
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", fmt.Errorf("the shell that removes %s: %w", dir, err)
	}
	return dir, nil
})
