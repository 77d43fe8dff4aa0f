package main

import (
	"fmt"

	"github.com/lubdub-io/lubdub/api"
)

const (
	// ownFiles is reserved for Redis, log, certificates and other files of the process.
	ownFiles = 192
	// leastConnections is the number below which the server does not start.
	leastConnections = 16
)

// fitConnections lowers max-connections to what the limit of open files allows. (The hard limit counts: the Go runtime raises the soft
// one when the process starts.) If almost none are left it refuses to start, since further connections would use up the descriptors that
// Redis needs.
func (p *process) fitConnections() (int, error) {
	limit, known := openFiles()
	most := p.cfg.MaxConnections
	available := limit - ownFiles - api.SpareConnections
	switch {
	case !known || most <= available:
		return most, nil
	case available < leastConnections:
		return 0, fmt.Errorf("the process may open %d files, and %d are needed at least: raise the limit (ulimit -n, LimitNOFILE, or the "+
			"container's nofile)",
			limit, ownFiles+api.SpareConnections+leastConnections)
	}
	p.log.Warn("max-connections is lowered to what the limit of open files leaves room for: raise that (ulimit -n, LimitNOFILE, or the "+
		"container's nofile), or lower the setting",
		"maxConnections", available, "asked", most, "openFiles", limit)
	return available, nil
}
