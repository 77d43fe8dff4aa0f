package api

import (
	"time"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/api/v1"
)

// release answers POST /v1/system:release.
func (req *request) release() (int, any, error) {
	var body v1.ReleaseRequest
	scope, err := req.optional(&body)
	if err != nil {
		return 0, nil, err
	}
	var d durations
	lasts := d.positive("durationMs", body.DurationMs, time.Millisecond)
	if d.err != nil {
		return 0, nil, d.err
	}
	r, err := req.s.tracker.Release(req.context(), scope, lasts)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, &v1.ReleaseResponse{TasksReleased: r.Tasks, WorkersReleased: r.Workers, ReleasedUntil: v1.At(r.Until)}, nil
}
