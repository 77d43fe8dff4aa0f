package worker

import (
	"math/rand/v2"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	"github.com/lubdub-io/lubdub/sdk/go/internal/clock"
)

// pace determines when the next beat is due. The worker's mutex guards it.
type pace struct {
	due      time.Time
	until    time.Time // nothing is sent before this time: the server did not answer
	failures int       // since the last answer
}

// answered schedules the next beat after a beat or registration that was sent at this time. The interval is shortened by up to 10 % at
// random, so that a fleet that started together does not beat in step.
func (p *pace) answered(sent time.Time, interval time.Duration) {
	*p = pace{due: sent.Add(time.Duration(float64(interval) * (0.9 + rand.Float64()/10)))}
}

// failed schedules the next beat after one that was not accepted.
func (p *pace) failed(now time.Time, err error, interval time.Duration) {
	p.due, p.until = now, now.Add(client.RetryAfter(err)+clock.Backoff(p.failures, interval/4))
	p.failures++
}
