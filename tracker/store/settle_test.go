package store

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// A request that has changed something, or may have, does not get the error "not begun" when a later part of it comes too late.
func TestAPossibleChangeIsNotReportedAsNotBegun(t *testing.T) {
	t.Parallel()
	s := &Store{deadlines: deadlines{time.Second}}
	call := func(changes bool, err error) *Call { return &Call{Script: &lua.Script{Events: changes}, Err: err} }
	for name, test := range map[string]struct {
		before *Call
		want   model.Code
	}{
		"nothing":                 {nil, model.Overloaded},
		"a read":                  {call(false, nil), model.Overloaded},
		"a read that was cut off": {call(false, io.EOF), model.Overloaded},
		"a change not begun":      {call(true, s.TooLateError()), model.Overloaded},
		"a change":                {call(true, nil), model.Unavailable},
		"a change that was lost":  {call(true, io.EOF), model.Unavailable},
	} {
		ctx := s.Within(ArrivedAt(context.Background(), time.Now()), 0)
		if test.before != nil {
			settle(ctx, "act", []*Call{test.before})
		}
		late := call(false, s.TooLateError())
		settle(s.Within(ctx, 0), "act", []*Call{late})
		if code := model.CodeOf(late.Err); code != test.want {
			t.Errorf("behind %s: %v, want %s", name, late.Err, test.want)
		}
	}
}
