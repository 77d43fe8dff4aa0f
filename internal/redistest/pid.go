package redistest

// Pid returns the id of the server's current process.
func (s *Server) Pid() int { return s.proc.Pid }
