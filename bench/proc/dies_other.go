//go:build !linux

package proc

import "syscall"

func ofOurs() *syscall.SysProcAttr { return nil }
