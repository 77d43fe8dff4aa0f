//go:build !linux

package redistest

import "syscall"

// diesWithParent has no equivalent here: Cleanup and Main stop servers, which outlive a test binary that is killed.
func diesWithParent() *syscall.SysProcAttr { return nil }
