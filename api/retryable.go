package api

import (
	"encoding/json"
	"strconv"

	"github.com/lubdub-io/lubdub/api/internal/jsonscan"
)

// withRetryable returns an error object, valid and compact, that says whether a retry may help where its worker left that
// to the category: whoever reads the error then need not know the categories. All else stays as it was sent.
func withRetryable(object json.RawMessage, retryable bool) json.RawMessage {
	said := make(json.RawMessage, 0, len(object)+len(`,"retryable":false`))
	said = append(said, '{')
	s := jsonscan.Scanner{Text: object}
	for more := s.Open('{', '}'); more; more = s.More('}') {
		from := s.Pos
		key, escaped, _ := s.Str()
		name := jsonscan.Unquote(key, escaped)
		s.Next(':')
		s.Skip()
		if string(name) != "retryable" { // null, which says nothing
			said = append(append(said, object[from:s.Pos]...), ',')
		}
	}
	said = append(said, `"retryable":`...)
	return append(strconv.AppendBool(said, retryable), '}')
}
