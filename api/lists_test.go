package api

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker"
)

// lists are those of a scope in which each has more than one thing.
type lists struct {
	*live
	t     *testing.T
	began time.Time
}

// withLists runs a test on lists that are filled.
func withLists(t *testing.T, test func(t *testing.T, l *lists)) {
	t.Helper()
	out := &outside{status: 200}
	inMemory(t, func(t *testing.T, l *live) { test(t, newLists(t, l)) }, func(o *tracker.Options) { o.WebhookPoster = out })
}

func newLists(t *testing.T, l *live) *lists {
	began := l.now()
	operator := l.control(roleOperator)
	for _, id := range []string{"a", "b"} {
		e := l.create(`{"taskId":"` + id + `"}`)
		l.call(e, "completed", `{"attempt":1,"outcome":"SUCCEEDED"}`).want(200)
		l.register(`{"queue":"default","types":["x"],"machineId":"` + id + `"}`)
		l.do("POST", "/v1/schedules", operator,
			`{"scheduleId":"`+id+`","cron":"0 0 0 1 1 * 2099","task":{"queue":"default","type":"x"}}`).want(201)
		l.do("POST", "/v1/webhooks", operator, `{"webhookId":"`+id+`","url":"https://example.com/x","events":["task.zombie"]}`).want(201)
		l.do("POST", "/v1/webhooks/"+id+"/test", operator, "").want(202)
		l.do("POST", "/v1/webhooks/"+id+"/test", operator, "").want(202)
		l.do("POST", "/v1/tasks", l.controlFor(roleDispatcher, "acme", "prod-"+id), `{}`).want(201)
		l.pass(time.Second)
	}
	l.badItems = true // the validator does not know what is refused by its bytes
	return &lists{live: l, t: t, began: began}
}

// reader is a token that may read a list.
func (l *lists) reader(path string) string {
	if strings.HasPrefix(path, "/v1/scopes") {
		return l.controlFor(roleViewer, "acme", token.Wildcard)
	}
	return l.control(roleViewer)
}

// refusedFor expects that a list refuses a query because of a field, in a message that can be read.
func (l *lists) refusedFor(path, field string) string {
	l.t.Helper()
	var e v1.Error
	a := l.do("GET", path, l.reader(path), "")
	if a.status != 400 {
		l.t.Errorf("%s: %d %.200s, want a refusal for %q", path, a.status, a.body, field)
		return ""
	}
	a.into(&e)
	if e.Field != field || e.Message == "" || !utf8.ValidString(e.Message) || strings.ContainsRune(e.Message, utf8.RuneError) {
		l.t.Errorf("%.300s: the field is %q, want %q: %q", path, e.Field, field, e.Message)
	}
	return e.Message
}

// queryRoutes are the lists, as the routes have them, with an id where their path takes one.
func queryRoutes() map[string][]string {
	found := map[string][]string{}
	for i := range routes {
		if r := routes[i]; r.Method == "GET" && slices.ContainsFunc(r.Query, func(p httpapi.Param) bool { return p.Name == "order" }) {
			names := []string{"tenantId", "workspaceId"}
			for _, p := range r.Query {
				names = append(names, p.Name)
			}
			found[strings.ReplaceAll(r.Pattern, "{webhookId}", "a")] = names
		}
	}
	return found
}

// A list refuses, by the parameter's name, every value that it does not understand: a parameter is never ignored.
func TestContractListsRefuseWhatTheyCannotMean(t *testing.T) {
	t.Parallel()
	withLists(t, func(t *testing.T, l *lists) {
		found := queryRoutes()
		if len(found) < 9 {
			t.Fatalf("only %d lists were found: %v", len(found), found)
		}
		anyText := []string{"name", "version"} // of workers
		for path, query := range found {
			l.do("GET", path, l.reader(path), "").want(200)
			for _, name := range query {
				l.refusedFor(path+"?"+name+"=", name)
				if name != "label" && (name != "type" || path != "/v1/events") {
					l.refusedFor(path+"?"+name+"=x&"+name+"=x", name)
				}
				for _, bad := range []string{"\x00", "é", "\xff", "a\nb", strings.Repeat("é", 200), strings.Repeat("x", 2000) + "!"} {
					target := path + "?" + name + "=" + url.QueryEscape(bad)
					if slices.Contains(anyText, name) {
						l.do("GET", target, l.reader(path), "").want(200)
					} else if message := l.refusedFor(target, name); len(message) > 2000 || strings.Contains(message, `\xc3`) {
						t.Errorf("%.100s: %.200s", target, message)
					}
				}
				other := strings.ToUpper(name[:1]) + name[1:]
				l.refusedFor(path+"?"+other+"=x", other)
			}
			l.refusedFor(path+"?=x", "query")
			l.refusedFor(path+"?%zz", "query")
			l.refusedFor(path+"?limit=5", "limit")
			l.refusedFor(path+"?"+strings.Repeat("x", 300)+"=1", strings.Repeat("x", 64))
			l.refusedFor(path+"?"+url.QueryEscape(strings.Repeat("é", 300))+"=1", strings.Repeat("é", 32))
			l.refusedFor(path+"?"+url.QueryEscape("x"+strings.Repeat("é", 300))+"=1", "x"+strings.Repeat("é", 31))
		}
		for _, path := range []string{"/v1/tasks", "/v1/workers"} {
			for _, label := range []string{"\x00=\x00", "é=\xff", "a=" + strings.Repeat("é", 500), "a==="} { // nothing has them
				a := l.do("GET", path+"?label="+url.QueryEscape(label), l.reader(path), "").want(200)
				if strings.Contains(a.body, `"a"`) {
					t.Errorf("%s with the label %q: %s", path, label, a.body)
				}
			}
		}
	})
}

// A page has 1 to 100 items, whatever the request asks for.
func TestContractPagesAreBounded(t *testing.T) {
	t.Parallel()
	withLists(t, func(t *testing.T, l *lists) {
		for path, query := range queryRoutes() {
			if !slices.Contains(query, "pageSize") {
				l.refusedFor(path+"?pageSize=1", "pageSize")
				continue
			}
			for _, size := range []string{"-99999999999999999999", "-1", "0", "1", "100", "101", "99999999999999999999"} {
				l.do("GET", path+"?pageSize="+size, l.reader(path), "").want(200)
			}
			for _, size := range []string{"ten", "1.5", "-", "1e2", "0x10", "1%2C2", "%D9%A3", "1%00", "+1"} {
				l.refusedFor(path+"?pageSize="+size, "pageSize")
			}
		}
	})
}

// pagedLists are all lists that have page tokens, in every order.
func (l *lists) pagedLists() []string {
	ended := "finishedAfter=" + url.QueryEscape(v1.At(l.began.Add(-time.Second)).Format(v1.TimeLayout)) + "&"
	all := []string{"/v1/tasks?" + ended, "/v1/tasks?" + ended + "order=desc&", "/v1/tasks?state=SUCCEEDED&",
		"/v1/workers?sort=lastHeartbeat&", "/v1/workers?sort=lastHeartbeat&order=desc&", "/v1/workers?queue=default&",
		"/v1/webhooks/b/deliveries?order=asc&",
		"/v1/webhooks/b/deliveries?", "/v1/webhooks/a/deliveries?order=asc&", "/v1/webhooks/a/deliveries?"}
	for _, path := range []string{"tasks", "workers", "machines", "schedules", "webhooks", "scopes"} {
		all = append(all, "/v1/"+path+"?", "/v1/"+path+"?order=desc&")
	}
	return all
}

// A page token belongs to the list, the filter, the order and the scope that it came from. It is refused with anything else, which would
// skip some items and return others twice.
func TestContractPageTokensStayWithTheirList(t *testing.T) {
	t.Parallel()
	withLists(t, func(t *testing.T, l *lists) {
		tokens := map[string]string{}
		for _, list := range l.pagedLists() {
			var page struct{ NextPageToken string }
			if l.do("GET", list+"pageSize=1", l.reader(list), "").want(200).into(&page); page.NextPageToken == "" {
				t.Fatalf("%s has one page only", list)
			}
			tokens[list] = page.NextPageToken
		}
		for list, own := range tokens {
			l.do("GET", list+"pageSize=1&pageToken="+own, l.reader(list), "").want(200)
			for of, other := range tokens {
				if message := ""; of != list {
					if message = l.refusedFor(list+"pageToken="+other, "pageToken"); !strings.Contains(message, "another filter") {
						t.Errorf("%s with the token of %s: %s", list, of, message)
					}
				}
			}
			elsewhere := l.controlFor(roleViewer, "else", "where")
			if strings.HasPrefix(list, "/v1/scopes") {
				elsewhere = l.controlFor(roleViewer, "else", token.Wildcard)
			}
			if e := l.do("GET", list+"pageToken="+own, elsewhere, "").refused(400, v1.CodeInvalidRequest); e.Field != "pageToken" {
				t.Errorf("%s in another scope: %+v", list, e)
			}
			l.forged(list, own)
		}
	})
}

// forged sends a list page tokens that the server did not issue for it.
func (l *lists) forged(list, own string) {
	l.t.Helper()
	for _, bad := range []string{"\x00", "é", "a b", "=", own + "=", own + "A", own[1:], own + own, own + "\n", strings.Repeat("A", 4000)} {
		l.refusedFor(list+"pageToken="+url.QueryEscape(bad), "pageToken")
	}
	whole, err := base64.RawURLEncoding.DecodeString(own)
	if err != nil {
		l.t.Fatal(err)
	}
	forge := func(name string) string {
		return list + "pageToken=" + base64.RawURLEncoding.EncodeToString(append(slices.Clone(whole[:8]), name...))
	}
	for _, name := range []string{"", "\x00", "\xff", "é", "-", "a/", "/a", "a/b/c", "a b", "1234567890123/", "1234567890123/a/b", "+",
		strings.Repeat("x", 129)} {
		l.refusedFor(forge(name), "pageToken")
	}
	for _, name := range []string{"a", "zz", "a/b", "1234567890123/a", "9999999999999/a", "0000000000000/a", "1234567890123"} {
		if strings.Contains(list, "/deliveries") { // they have numbers
			l.refusedFor(forge(name), "pageToken")
		} else {
			l.do("GET", forge(name), l.reader(list), "").want(200) // the page begins at its position in the order
		}
	}
}
