package proc

import (
	"os"
	"runtime"
	"strings"

	"github.com/lubdub-io/lubdub/bench/report"
)

// leastOwnCores are left to this process where children get cores of their own, so that it is not what limits them.
const leastOwnCores = 2

// Machine describes this machine, as far as the system says.
func Machine() report.Machine {
	m := report.Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU()}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(text))
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		m.MemoryBytes, _ = kilobytes(string(text), "MemTotal:")
	}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				m.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	return m
}
