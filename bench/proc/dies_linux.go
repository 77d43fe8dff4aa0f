package proc

import "syscall"

// ofOurs lets the kernel kill a child when the thread that started it ends. Its own process group keeps a Ctrl-C on
// the terminal away from it: the benchmark ends its children in order.
func ofOurs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
