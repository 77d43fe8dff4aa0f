package cli

import (
	"net/url"
	"strings"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// query makes a query of pairs; what is empty is left out.
func query(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

// labels reads k=v, several with commas.
func labels(selectors []string) (map[string]string, error) {
	all := map[string]string{}
	for _, s := range selectors {
		for pair := range strings.SplitSeq(s, ",") {
			key, value, ok := strings.Cut(pair, "=")
			if !ok || key == "" {
				return nil, misusef("the selector %q is not like key=value", pair)
			}
			all[key] = value
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	return all, nil
}

// addLabels asks for labels in a query, in the form that the API takes.
func addLabels(q url.Values, selectors []string) error {
	all, err := labels(selectors)
	for key, value := range all {
		q.Add("label", key+"="+url.QueryEscape(value))
	}
	return err
}

// moment reads a time: one in RFC 3339, or how long ago it was.
func (s *session) moment(flag, text string) (v1.Time, error) {
	if text == "" {
		return v1.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return v1.At(s.now().Add(-ago)), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return v1.Time{}, misusef("--%s %q is neither how long ago, such as 15m, nor a time such as 2026-01-31T12:00:00Z", flag, text)
	}
	return v1.At(at), nil
}

func timeText(t v1.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(v1.TimeLayout)
}

func order(newest bool) string {
	if newest {
		return "desc"
	}
	return ""
}
