package events

import "time"

// AwaitNoReader returns when no loop reads the shards for listeners.
func (s *Service) AwaitNoReader() { s.hub.running.Wait() }

// SetPace has each tenant read so many entries a second, and at once so many as are read in `ahead`.
func (s *Service) SetPace(perSecond int, ahead time.Duration) {
	s.pace.rate, s.pace.ahead = perSecond, ahead
}
