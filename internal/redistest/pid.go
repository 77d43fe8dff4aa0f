package redistest

// Pid is that of the server's process now.
func (s *Server) Pid() int { return s.proc.Pid }
