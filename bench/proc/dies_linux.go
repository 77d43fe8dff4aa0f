package proc

import "syscall"

// ofOurs makes the kernel kill a child when the thread that started it ends. A separate process group keeps a Ctrl-C on the terminal away
// from it: the benchmark stops its children in order.
func ofOurs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
