package httpapi

import (
	"encoding/json"
	"strings"
	"testing"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// The cost of reading a body, compared with encoding/json.
func BenchmarkDecode(b *testing.B) {
	for _, c := range []struct {
		name, body string
		to         func() any
		decode     func([]byte, any) error
	}{
		{"completed", `{"attempt":2,"outcome":"FAILED","error":{"category":"INFRASTRUCTURE","message":"disk full","retryable":true}}`,
			func() any { return new(v1.CompletedRequest) }, decodeLenient},
		{"create", `{"queue":"q","type":"mail","payload":{"to":["a","b"],"n":1},"labels":{"team":"x"},"retry":{"maxAttempts":2}}`,
			func() any { return new(v1.CreateTaskRequest) }, decodeStrict},
		{"output", `{"attempt":1,"outcome":"SUCCEEDED","output":[` + strings.Repeat(`{"id":12345,"name":"abc"},`, 999) + `{}]}`,
			func() any { return new(v1.CompletedRequest) }, decodeLenient},
	} {
		body := []byte(c.body)
		b.Run(c.name+"/ours", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.decode(body, c.to()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/encoding-json", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := json.Unmarshal(body, c.to()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
