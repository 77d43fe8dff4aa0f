package events

import "time"

// AwaitNoReader waits until no loop reads the shards for listeners.
func (s *Service) AwaitNoReader() { s.hub.running.Wait() }

// SetPace sets each tenant's rate of entries per second, and the burst as the entries of `ahead`.
func (s *Service) SetPace(perSecond int, ahead time.Duration) {
	s.pace.rate, s.pace.ahead = perSecond, ahead
}
