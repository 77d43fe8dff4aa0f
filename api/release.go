package api

import (
	"time"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/api/v1"
)

// release answers POST /v1/system:release.
func (c *call) release() (int, any, error) {
	var req v1.ReleaseRequest
	scope, err := c.optional(&req)
	if err != nil {
		return 0, nil, err
	}
	var d durations
	lasts := d.positive("durationMs", req.DurationMs, time.Millisecond)
	if d.err != nil {
		return 0, nil, d.err
	}
	r, err := c.s.tracker.Release(c.context(), scope, lasts)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, &v1.ReleaseResponse{TasksReleased: r.Tasks, WorkersReleased: r.Workers, ReleasedUntil: v1.At(r.Until)}, nil
}
