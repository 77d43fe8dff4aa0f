package events

// AwaitNoReader returns when no loop reads the shards for listeners.
func (s *Service) AwaitNoReader() { s.hub.running.Wait() }
