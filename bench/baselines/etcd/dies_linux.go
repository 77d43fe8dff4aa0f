package main

import "syscall"

// diesWithParent lets the kernel kill a child when the thread that started it ends.
func diesWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
