package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"github.com/lubdub-io/lubdub/tracker"
)

// A page token is the id after which the page begins, behind eight bytes of a hash of the filter. So it holds
// while tasks come and go, and is refused with another filter, where it would silently skip.

const filterHashBytes = 8

// filterHash takes a filter of plain values and maps, whose keys are sorted, without its page.
func filterHash(filter any) []byte {
	b, _ := json.Marshal(filter)
	sum := sha256.Sum256(b)
	return sum[:filterHashBytes]
}

func pageToken(f tracker.TaskFilter, after string) string {
	f.PageSize, f.After = 0, ""
	return pageTokenOf(f, after)
}

func pageTokenOf(filter any, after string) string {
	return base64.RawURLEncoding.EncodeToString(append(filterHash(filter), after...))
}

// afterOf reads a page token for a filter.
func afterOf(f tracker.TaskFilter, token string) (string, error) {
	f.PageSize, f.After = 0, ""
	return afterIn(f, token)
}

func afterIn(filter any, token string) (string, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) <= filterHashBytes || !tracker.ValidID(b[filterHashBytes:]) {
		return "", invalidField("pageToken", "pageToken is not one of ours; use the nextPageToken of the page before, unchanged")
	}
	if string(b[:filterHashBytes]) != string(filterHash(filter)) {
		return "", invalidField("pageToken", "pageToken belongs to another filter; begin again without it when a filter or the scope changes")
	}
	return string(b[filterHashBytes:]), nil
}
