package proc

import (
	"os"
	"runtime"
	"strings"

	"github.com/lubdub-io/lubdub/bench/report"
)

// leastOwnCores is the minimum for this process if children get separate cores, so that it is not the bottleneck.
const leastOwnCores = 2

// Machine describes this host, as far as the system reports it.
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
