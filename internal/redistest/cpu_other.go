//go:build !linux

package redistest

import (
	"testing"
	"time"
)

var began = time.Now()

// CPU returns the elapsed time, which includes other load on the machine.
func (s *Server) CPU(testing.TB) time.Duration { return time.Since(began) }
