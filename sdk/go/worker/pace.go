package worker

import (
	"math/rand/v2"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	"github.com/lubdub-io/lubdub/sdk/go/internal/clock"
)

// pace is when the next beat is due. The worker's mutex guards it.
type pace struct {
	due      time.Time
	until    time.Time // nothing is sent before: the server does not answer
	failures int       // since the last answer
}

// answered is about a beat, or a registration, that was sent then. The interval becomes a little shorter, at random, so that a fleet that
// was started together does not beat as one.
func (p *pace) answered(sent time.Time, interval time.Duration) {
	*p = pace{due: sent.Add(time.Duration(float64(interval) * (0.9 + rand.Float64()/10)))}
}

// failed is about a beat that was not accepted.
func (p *pace) failed(now time.Time, err error, interval time.Duration) {
	p.due, p.until = now, now.Add(client.RetryAfter(err)+clock.Backoff(p.failures, interval/4))
	p.failures++
}
