//go:build !linux

package main

import "syscall"

// diesWithParent is Linux's; elsewhere a child outlives a parent that is killed.
func diesWithParent() *syscall.SysProcAttr { return nil }
