package store

import (
	"context"
	"errors"
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
	unanswered := &model.Error{Code: model.Unavailable, Message: "nothing was changed", Cause: errSilent{"127.0.0.1:1"}}
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
		late, silent := call(false, s.TooLateError()), call(false, unanswered)
		settle(s.Within(ctx, 0), "act", []*Call{late, silent})
		if claims := errors.Is(silent.Err, unanswered); claims != (test.want == model.Overloaded) {
			t.Errorf("behind %s: %v", name, silent.Err)
		}
		if code := model.CodeOf(late.Err); code != test.want {
			t.Errorf("behind %s: %v, want %s", name, late.Err, test.want)
		}
	}
}
