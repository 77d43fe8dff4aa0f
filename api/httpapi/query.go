package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// parseQuery parses the query and refuses parameters that the route does not have.
func (req *Request) parseQuery(raw string) error {
	if raw == "" {
		return nil
	}
	q, err := url.ParseQuery(raw)
	if err != nil {
		return InvalidField("query", "The query string is not well formed; percent-encode its values")
	}
	names := make([]string, 0, len(q))
	for name := range q {
		names = append(names, name)
	}
	slices.Sort(names)
	params := req.Route.params()
	for _, name := range names {
		at := slices.IndexFunc(params, func(p Param) bool { return p.Name == name })
		switch {
		case name == "":
			return InvalidField("query", "The query has a value without a name; write name=value")
		case at < 0:
			return InvalidField(Clip(name), fmt.Sprintf("%q is not a parameter of this path, which takes %s", Clip(name), usable(params)))
		case len(q[name]) > 1 && !params[at].Repeats:
			return InvalidField(name, name+" is given twice; give it once")
		}
	}
	req.Query = q
	return nil
}

// usable lists parameters in a refusal.
func usable(params []Param) string {
	if len(params) == 0 {
		return "none"
	}
	names := make([]string, len(params))
	for i, p := range params {
		names[i] = p.Name
	}
	return "only " + strings.Join(names, ", ")
}

// Clip shortens a part of a request for a refusal, to whole characters.
func Clip(s string) string {
	const most = 64 // bytes
	if len(s) <= most {
		return s
	}
	end := most
	for end > most-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// Parameters reads a query and keeps the first refusal.
type Parameters struct {
	url.Values
	Err error
}

// Refuse keeps a refusal unless there already is one.
func (p *Parameters) Refuse(r *Refusal) {
	if p.Err == nil {
		p.Err = r
	}
}

// ID returns an id, empty if absent.
func (p *Parameters) ID(name string) string {
	id := p.Get(name)
	if p.Has(name) && !model.ValidID(id) {
		p.Refuse(InvalidID(name))
	}
	return id
}

// Text returns a parameter that may be any text, empty if absent.
func (p *Parameters) Text(name string) string {
	text := p.Get(name)
	if p.Has(name) && text == "" {
		p.Refuse(emptyField(name))
	}
	return text
}

// WordOf returns a parameter that must be one of the words, empty if absent.
func WordOf[T ~string](p *Parameters, name string, words ...T) T {
	word := T(p.Get(name))
	if p.Has(name) && !slices.Contains(words, word) {
		list := make([]string, len(words))
		for i, w := range words {
			list[i] = string(w)
		}
		p.Refuse(InvalidField(name, fmt.Sprintf("%s is %q; use one of %s", name, Clip(string(word)), strings.Join(list, ", "))))
	}
	return word
}

// Bool returns a parameter that is true or false, nil if absent.
func (p *Parameters) Bool(name string) *bool {
	word := WordOf(p, name, "true", "false")
	if word == "" {
		return nil
	}
	is := word == "true"
	return &is
}

// WordsOf returns a parameter that is a comma-separated list of some of the words; none if absent.
func WordsOf[T ~string](p *Parameters, name string, words ...T) (found []T) {
	if !p.Has(name) {
		return nil
	}
	whole := p.Values
	for _, word := range strings.Split(whole.Get(name), ",") {
		one := Parameters{Values: url.Values{name: {word}}}
		w := WordOf(&one, name, words...)
		switch {
		case one.Err != nil:
			p.Refuse(one.Err.(*Refusal))
		case slices.Contains(found, w):
			p.Refuse(InvalidField(name, fmt.Sprintf("%s names %s twice; name it once", name, w)))
		}
		found = append(found, w)
	}
	return found
}

// Time returns a parameter that is an RFC 3339 time, zero if absent.
func (p *Parameters) Time(name string) time.Time {
	var t v1.Time
	text, _ := json.Marshal(p.Get(name))
	if p.Has(name) && t.UnmarshalJSON(text) != nil {
		p.Refuse(InvalidField(name, fmt.Sprintf("%s is %q; use a time as 2025-01-15T10:00:00.000Z, with a + percent-encoded as %%2B",
			name, Clip(p.Get(name)))))
	}
	return t.Time
}

// Wait returns waitMs, 0 if absent.
func (p *Parameters) Wait(most time.Duration) time.Duration {
	ms, err := strconv.ParseInt(p.Get("waitMs"), 10, 64)
	if p.Has("waitMs") && (err != nil || ms < 0 || ms > most.Milliseconds()) {
		p.Refuse(InvalidField("waitMs", fmt.Sprintf("waitMs is %q; use 0 to %d", Clip(p.Get("waitMs")), most.Milliseconds())))
	}
	return time.Duration(ms) * time.Millisecond
}

// Descending reports whether the list is to be in descending order.
func (p *Parameters) Descending() bool { return WordOf(p, "order", "asc", "desc") == "desc" }

// Labels returns the label parameters, each key=value; nil if there are none.
func (p *Parameters) Labels() map[string]string {
	var labels map[string]string
	for _, l := range p.Values["label"] {
		key, value, found := strings.Cut(l, "=")
		if !found || key == "" {
			p.Refuse(InvalidField("label", "label must be key=value, with the value percent-encoded where needed"))
		}
		if _, twice := labels[key]; twice {
			p.Refuse(InvalidField("label", "label names "+Clip(key)+" twice; nothing has two values for one label"))
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
	}
	if len(labels) > model.MaxLabels {
		p.Refuse(InvalidField("label", "label is given too often; nothing has so many labels"))
	}
	return labels
}

// Page returns the requested page of a filtered list.
func (p *Parameters) Page(filter any) (size int, after string) {
	size = p.PageSize()
	if p.Has("pageToken") {
		var r *Refusal
		if after, r = AfterOf(filter, p.Get("pageToken")); r != nil {
			p.Refuse(r)
		}
	}
	return size, after
}

const (
	defaultPageSize = 100
	maxPageSize     = 100
)

// PageSize returns the page size, clamped to 1 to 100; a value that is not an integer is refused.
func (p *Parameters) PageSize() int {
	if !p.Has("pageSize") {
		return defaultPageSize
	}
	v := p.Get("pageSize")
	n, err := strconv.Atoi(v)
	if err != nil {
		digits := strings.TrimPrefix(v, "-")
		if digits == "" || strings.Trim(digits, "0123456789") != "" {
			p.Refuse(InvalidField("pageSize", "pageSize is not an integer; use 1 to 100"))
		}
		n = maxPageSize // an integer that does not fit
		if digits != v {
			n = 1
		}
	}
	return min(max(n, 1), maxPageSize)
}

// A page token is a hash of the filter, in eight bytes, followed by the name after which the page begins. So it stays valid while tasks
// come and go, and is refused with another filter, with which it would skip entries. A name is an id or, in a list that is ordered by
// time, <wall ms in 13 digits>/<id>.

const filterHashBytes = 8

// filterHash hashes a filter of plain values and maps, whose keys are sorted, without its page.
func filterHash(filter any) []byte {
	b, _ := json.Marshal(filter)
	sum := sha256.Sum256(b)
	return sum[:filterHashBytes]
}

// PageToken returns the token of the page of a filtered list that begins after an id, or "" for no further page.
func PageToken(filter any, after string) string {
	if after == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(append(filterHash(filter), after...))
}

// AfterOf returns the id after which the page of a token begins.
func AfterOf(filter any, token string) (string, *Refusal) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || strings.ContainsAny(token, "\r\n") || len(b) <= filterHashBytes || !isName(b[filterHashBytes:]) {
		return "", InvalidField("pageToken", "pageToken is not one of ours; use the nextPageToken of the page before, unchanged")
	}
	if string(b[:filterHashBytes]) != string(filterHash(filter)) {
		return "", InvalidField("pageToken", "pageToken belongs to another filter; begin again without it when a filter or the scope changes")
	}
	return string(b[filterHashBytes:]), nil
}

// isName reports whether a list may be ordered by a name. The list of scopes uses <tenant>/<workspace>.
func isName(name []byte) bool {
	if tenant, workspace, cut := bytes.Cut(name, []byte("/")); cut && model.ValidID(tenant) && model.ValidID(workspace) {
		return true
	}
	const digits = 13
	if len(name) > digits && name[digits] == '/' && len(bytes.Trim(name[:digits], "0123456789")) == 0 {
		name = name[digits+1:]
	}
	return model.ValidID(name)
}
