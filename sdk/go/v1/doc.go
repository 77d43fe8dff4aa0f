// Package v1 is the API of Lubdub as Go types: the bodies of every request and answer under /v1 and the error codes. It imports the
// standard library only, so that programs that use the protocol link nothing else.
//
// Field names on the wire are camelCase. Times are RFC 3339 in UTC with milliseconds (Time), durations are integers in milliseconds and end
// in Ms, except tokenTtlSeconds. In requests an absent field and a JSON null mean the same. In answers a field that may be null is always
// present; a field marked omitempty or omitzero is present only if it is not empty.
package v1
