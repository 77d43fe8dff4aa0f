package queues

import (
	"strconv"
	"strings"

	"github.com/lubdub-io/lubdub/tracker/schema"
)

// recheck makes all waiting claims look again: messages may have been missed.
func (s *Service) recheck() {
	s.waitlists.wakeAll()
	s.nudges.all()
}

// receive handles <shard>/<class>, and <shard>/<scope>/<queue> when everything of a queue may be ready; w/<scope>/<worker> is for the
// claims of one worker.
func (s *Service) receive(message string) {
	number, name, _ := strings.Cut(message, "/")
	if number == "w" {
		s.nudges.nudge(name)
		return
	}
	shard, err := strconv.Atoi(number)
	if err != nil || shard < 0 || shard >= s.store.Shards() {
		return
	}
	p := strings.SplitN(name, "/", 4)
	if len(p) < 3 {
		return
	}
	list := s.waitlists.find(strings.Join(p[:3], "/"))
	if list == nil {
		return
	}
	if c, ok := schema.ParseClass(name); ok {
		list.woken(shard, c.Group())
	} else {
		list.matchAll()
	}
}
