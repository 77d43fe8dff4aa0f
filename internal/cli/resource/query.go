package resource

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
)

// Query creates a query from pairs; empty values are omitted.
func Query(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

// ParseLabels parses k=v, several separated by commas.
func ParseLabels(selectors []string) (map[string]string, error) {
	all := map[string]string{}
	for _, s := range selectors {
		for pair := range strings.SplitSeq(s, ",") {
			key, value, ok := strings.Cut(pair, "=")
			if !ok || key == "" {
				return nil, exit.Misusef("the selector %q is not like key=value", pair)
			}
			all[key] = value
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	return all, nil
}

// AddLabels adds labels to a query, in the API's format.
func AddLabels(q url.Values, selectors []string) error {
	all, err := ParseLabels(selectors)
	for key, value := range all {
		q.Add("label", key+"="+url.QueryEscape(value))
	}
	return err
}

// Order returns the order parameter for the newest or the oldest first.
func Order(newest bool) string {
	if newest {
		return "desc"
	}
	return ""
}

// ListFlags are the flags of every list.
type ListFlags struct {
	Limit int  `default:"100" help:"Maximum number to show; 0 for all."`
	Watch bool `short:"w" help:"Show additions, changes and removals until Ctrl-C."`
}

// FormatSelector writes a selector as the API reads it.
func FormatSelector(sel any) string {
	text, _ := json.Marshal(sel)
	return strings.ReplaceAll(string(text), `"`, "")
}
