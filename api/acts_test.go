package api

import (
	"cmp"
	"reflect"
	"strings"
	"testing"
)

// An act on many leaves a line with how many it was about; a dry run, which does nothing, leaves none, whichever act it would have been.
func TestADryRunIsNoActInTheLog(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	tried := 0
	counts := map[string]string{opCancelTasks: "matched=3 done=2", opRetryTasks: "matched=3 done=2"} // of the fake
	for _, r := range routes {
		if of := r.Body; of == nil || !hasField(of, "DryRun") {
			continue
		}
		tried++
		for _, dry := range []string{"false", "true"} {
			before := strings.Count(e.log.String(), "msg=act op="+r.Op)
			want := cmp.Or(counts[r.Op], "matched=1 done=1")
			e.do(r.Method, r.Pattern, e.control(roleAdmin), `{"selector":{"queue":"q"},"dryRun":`+dry+`}`).want(200)
			if lines := strings.Count(e.log.String(), "msg=act op="+r.Op) - before; (lines == 1) != (dry == "false") {
				t.Errorf("%s with dryRun %s: %d lines", r, dry, lines)
			}
			if log := e.log.String(); !strings.Contains(log[strings.LastIndex(log, "op="+r.Op):], want) {
				t.Errorf("%s with dryRun %s: no %q in %s", r, dry, want, log)
			}
		}
	}
	if tried < 7 {
		t.Errorf("%d routes have a dry run", tried)
	}
}

func hasField(of any, name string) bool {
	_, has := reflect.TypeOf(of).FieldByName(name)
	return has
}
