//go:build !linux

package redistest

import "syscall"

// diesWithParent has no equivalent here: servers are stopped by Cleanup and Main, and outlive a test binary that
// is killed.
func diesWithParent() *syscall.SysProcAttr { return nil }
