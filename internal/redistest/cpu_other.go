//go:build !linux

package redistest

import (
	"testing"
	"time"
)

var began = time.Now()

// CPU is the time that passes: what else the machine does counts too.
func (s *Server) CPU(testing.TB) time.Duration { return time.Since(began) }
