package api

import (
	"encoding/json"
	"strconv"
)

// withRetryable gives an error object, valid and compact, that says whether a retry may help where its worker left that
// to the category: whoever reads the error then need not know the categories. All else stays as it was sent.
func withRetryable(object json.RawMessage, retryable bool) json.RawMessage {
	said := make(json.RawMessage, 0, len(object)+len(`,"retryable":false`))
	said = append(said, '{')
	s := scanner{b: object}
	for more := s.open('{', '}'); more; more = s.more('}') {
		from := s.i
		key, escaped, _ := s.str()
		name := unquoted(key)
		if escaped {
			name = unescape(key)
		}
		s.next(':')
		s.skip()
		if string(name) != "retryable" { // null, which says nothing
			said = append(append(said, object[from:s.i]...), ',')
		}
	}
	said = append(said, `"retryable":`...)
	return append(strconv.AppendBool(said, retryable), '}')
}
