package main

import (
	"fmt"

	"github.com/lubdub-io/lubdub/api"
)

const (
	// ownFiles are kept for Redis, log, certificates and what else the process opens.
	ownFiles = 192
	// leastConnections are too few to start with.
	leastConnections = 16
)

// fitConnections lowers max-connections to what the limit of open files leaves room for. (The limit is the hard one: the Go
// runtime raises the soft one when the process starts.) Where that is next to nothing it refuses to start, since connections
// beyond it would be taken from Redis.
func (p *process) fitConnections() (int, error) {
	limit, known := openFiles()
	most := p.cfg.MaxConnections
	room := limit - ownFiles - api.SpareConnections
	switch {
	case !known || most <= room:
		return most, nil
	case room < leastConnections:
		return 0, fmt.Errorf("the process may open %d files, and %d are needed at least: raise the limit (ulimit -n, LimitNOFILE, or the "+
			"container's nofile)",
			limit, ownFiles+api.SpareConnections+leastConnections)
	}
	p.log.Warn("max-connections is lowered to what the limit of open files leaves room for: raise that (ulimit -n, LimitNOFILE, or the "+
		"container's nofile), or lower the setting",
		"maxConnections", room, "asked", most, "openFiles", limit)
	return room, nil
}
