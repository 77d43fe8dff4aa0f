package revocations

import (
	"strconv"
	"time"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// scripts are the scripts of lua/revocations. They do not change after New.
type scripts struct{ revoke, revocations *lua.Script }

func newScripts(set *lua.Set) scripts {
	return scripts{revoke: set.Get("revoke"), revocations: set.Get("revocations")}
}

// home is the shard of the list, which every deployment has.
const home = 0

// revokeCall stores revocations; `data` is that of the event as JSON, "" if there was an event already.
func (s *Service) revokeCall(data string, list []Revocation) *store.Call {
	args := []any{MaxRevocations, data}
	for _, r := range list {
		args = append(args, r.expiresAt().UnixMilli(), r.key())
	}
	return store.NewCall(home, s.scripts.revoke, []string{schema.RevocationsKey, s.store.Keys[home].Events}, args...)
}

// readRevoke reports whether there would be too many revocations.
func readRevoke(re store.Reply) (tooMany bool) { return re.Int(0) == schema.CodeRefused }

// revocationsCall returns a page of the list behind the first `skip` entries, or nothing if the version is the known one.
func (s *Service) revocationsCall(known string, skip int) *store.Call {
	return store.NewCall(home, s.scripts.revocations, []string{schema.RevocationsKey}, known, skip, pageSize)
}

// page is the reply of revocations.lua.
type page struct {
	now     time.Time
	version string
	entries int // includes entries that this version does not know
	list    []Revocation
}

func readPage(re store.Reply) page {
	entries := re.List(2).Strings()
	p := page{now: re.Time(0), version: re.Str(1), entries: len(entries) / 2}
	for i := 0; i+1 < len(entries); i += 2 {
		ms, err := strconv.ParseFloat(entries[i+1], 64)
		if r, ok := parse(entries[i], time.UnixMilli(int64(ms)).UTC()); ok && err == nil {
			p.list = append(p.list, r)
		}
	}
	return p
}

// revokedData returns the data of the event.
func revokedData(r *Revocation) map[string]any {
	data := map[string]any{"issuedBeforeMs": r.IssuedBefore.UnixMilli()}
	switch r.Kind {
	case OfSubject:
		data["subject"] = r.Name
	case OfWorker:
		data["workerId"] = r.Name
	}
	if r.Tenant != Wildcard {
		data["tenantId"] = r.Tenant
	}
	if r.Workspace != Wildcard {
		data["workspaceId"] = r.Workspace
	}
	return data
}
