package beatparse

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

const maxBody = 1 << 20

// lines joins the lines of a head, and what follows it.
func lines(body string, head ...string) string {
	return strings.Join(head, "\r\n") + "\r\n\r\n" + body
}

const (
	first  = "POST /v1/tasks/task_1/heartbeat HTTP/1.1"
	auth   = "Authorization: Bearer eyJh.bGci.OiJI"
	length = "Content-Length: 13"
	json   = "Content-Type: application/json"
	body   = `{"attempt":1}`
)

var recognised = map[string]struct {
	text string
	want Request
}{
	"wrk": {lines(body, first, "Host: 127.0.0.1:8080", auth, "Content-Type: application/json", length),
		Request{Kind: Task, ID: []byte("task_1"), Token: []byte("eyJh.bGci.OiJI"), Body: []byte(body)}},
	"curl": {lines(body, first, "Host: lubdub:8080", "User-Agent: curl/7.88.1", "Accept: */*", auth, "Content-Type: application/json",
		length), Request{Kind: Task, ID: []byte("task_1"), Token: []byte("eyJh.bGci.OiJI"), Body: []byte(body)}},
	"Go": {lines(body, "POST /v1/workers/wrk_01HGW-5.x/heartbeat HTTP/1.1", "Host: lubdub", "User-Agent: Go-http-client/1.1", length, auth,
		"Content-Type: application/json", "X-Request-Id: r1", "Accept-Encoding: gzip"),
		Request{Kind: Worker, ID: []byte("wrk_01HGW-5.x"), Token: []byte("eyJh.bGci.OiJI"), RequestID: []byte("r1"), Body: []byte(body)}},
	"node": {lines(body, first, "host: lubdub:8080", "connection: keep-alive", "authorization: Bearer eyJh.bGci.OiJI",
		"content-type: application/json", "accept: */*", "accept-language: *", "sec-fetch-mode: cors", "user-agent: node",
		"accept-encoding: gzip, deflate", "content-length: 13"),
		Request{Kind: Task, ID: []byte("task_1"), Token: []byte("eyJh.bGci.OiJI"), Body: []byte(body)}},
	"a batch behind a proxy, and the next request": {lines("{}POST", "POST /v1/heartbeats HTTP/1.1", "Host: lubdub",
		"X-Forwarded-For: 10.0.0.1",
		"X-Forwarded-For: 10.0.0.2", "Content-Type: application/json; charset=utf-8", "traceparent: 00-4bf92f35-00f067aa-01",
		"Connection: Keep-Alive", "Content-Length: 2"),
		Request{Kind: Batch, Body: []byte("{}")}},
	"neither token nor type nor body": {lines("", first, "Host: x", "Content-Length: 0"),
		Request{Kind: Task, ID: []byte("task_1"), Body: []byte{}}},
}

func TestHeartbeatsAreRecognised(t *testing.T) {
	for name, c := range recognised {
		var r Request
		if v := Parse([]byte(c.text), maxBody, &r); v != Whole {
			t.Errorf("%s: %v", name, v)
			continue
		}
		w := c.want
		if r.Kind != w.Kind || string(r.ID) != string(w.ID) || string(r.Token) != string(w.Token) || string(r.RequestID) != string(w.RequestID) ||
			string(r.Body) != string(w.Body) || r.Total != strings.Index(c.text, "\r\n\r\n")+4+len(w.Body) {
			t.Errorf("%s: %+v", name, r)
		}
		for n := range r.Total {
			var p Request
			if v := Parse([]byte(c.text[:n]), maxBody, &p); v != Partial || p.Total != 0 && p.Total != r.Total {
				t.Errorf("%s: the first %d bytes: %v of %d", name, n, v, p.Total)
			}
		}
	}
}

// Each of these differs from what is recognised by one thing.
var doubts = map[string]string{
	"another method":                    lines(body, "PUT /v1/tasks/task_1/heartbeat HTTP/1.1", "Host: x", length),
	"another path":                      lines(body, "POST /v1/tasks/task_1/started HTTP/1.1", "Host: x", length),
	"another collection":                lines(body, "POST /v1/queues/task_1/heartbeat HTTP/1.1", "Host: x", length),
	"no id":                             lines(body, "POST /v1/tasks//heartbeat HTTP/1.1", "Host: x", length),
	"an id in two segments":             lines(body, "POST /v1/tasks/a/b/heartbeat HTTP/1.1", "Host: x", length),
	"an encoded id":                     lines(body, "POST /v1/tasks/task%5f1/heartbeat HTTP/1.1", "Host: x", length),
	"a query":                           lines(body, "POST /v1/tasks/task_1/heartbeat?a=b HTTP/1.1", "Host: x", length),
	"a query of a batch":                lines(body, "POST /v1/heartbeats?a=b HTTP/1.1", "Host: x", length),
	"a query within the path":           lines(body, "POST /v1/tasks/a?/heartbeat HTTP/1.1", "Host: x", length),
	"an absolute target":                lines(body, "POST http://x/v1/tasks/task_1/heartbeat HTTP/1.1", "Host: x", length),
	"HTTP/1.0":                          lines(body, "POST /v1/tasks/task_1/heartbeat HTTP/1.0", "Host: x", length),
	"no version":                        lines(body, "POST /v1/tasks/task_1/heartbeat", "Host: x", length),
	"two spaces":                        lines(body, "POST  /v1/tasks/task_1/heartbeat HTTP/1.1", "Host: x", length),
	"an empty line first":               "\r\n" + lines(body, first, "Host: x", length),
	"no host":                           lines(body, first, length),
	"an empty host":                     lines(body, first, "Host: ", length),
	"a host with odd characters":        lines(body, first, "Host: a\\b", length),
	"a host of a port alone":            lines(body, first, "Host: :80", length),
	"a host with an odd port":           lines(body, first, "Host: x:8o", length),
	"two hosts":                         lines(body, first, "Host: x", "Host: x", length),
	"no length":                         lines(body, first, "Host: x"),
	"two lengths":                       lines(body, first, "Host: x", length, length),
	"a length with a sign":              lines(body, first, "Host: x", "Content-Length: +13"),
	"a length in hex":                   lines(body, first, "Host: x", "Content-Length: 0x0"),
	"a length in two parts":             lines(body, first, "Host: x", "Content-Length: 13, 13"),
	"a length of many digits":           lines(body, first, "Host: x", "Content-Length: 18446744073709551629"),
	"a larger body":                     lines(body, first, "Host: x", fmt.Sprintf("Content-Length: %d", maxBody+1)),
	"chunks":                            lines("d\r\n"+body+"\r\n0\r\n\r\n", first, "Host: x", "Transfer-Encoding: chunked"),
	"chunks and a length":               lines(body, first, "Host: x", length, "Transfer-Encoding: chunked"),
	"an expectation":                    lines(body, first, "Host: x", length, "Expect: 100-continue"),
	"an upgrade":                        lines(body, first, "Host: x", length, "Upgrade: h2c"),
	"the connection's end":              lines(body, first, "Host: x", length, "Connection: close"),
	"a connection with an upgrade":      lines(body, first, "Host: x", length, "Connection: keep-alive, Upgrade"),
	"two connections":                   lines(body, first, "Host: x", length, "Connection: keep-alive", "Connection: keep-alive"),
	"two tokens":                        lines(body, first, "Host: x", length, auth, auth),
	"another scheme":                    lines(body, first, "Host: x", length, "Authorization: Basic abc"),
	"no token after the scheme":         lines(body, first, "Host: x", length, "Authorization: Bearer"),
	"two spaces before the token":       lines(body, first, "Host: x", length, "Authorization: Bearer  abc"),
	"another type":                      lines(body, first, "Host: x", length, "Content-Type: text/plain"),
	"another charset":                   lines(body, first, "Host: x", length, "Content-Type: application/json; charset=latin1"),
	"two types":                         lines(body, first, "Host: x", length, json, json),
	"an encoding":                       lines(body, first, "Host: x", length, "Content-Encoding: gzip"),
	"two request ids":                   lines(body, first, "Host: x", length, "X-Request-ID: a", "X-Request-ID: b"),
	"a header that is not known":        lines(body, first, "Host: x", length, "X-Other: a"),
	"a name in odd letters":             lines(body, first, "Host: x", "CONTENT-LENGTH: 13"),
	"a space before the colon":          lines(body, first, "Host: x", length, "Accept : a"),
	"no space after the colon":          lines(body, first, "Host: x", length, "Accept:aa"),
	"two spaces after the colon":        lines(body, first, "Host: x", length, "Accept:  a"),
	"a space at the end":                lines(body, first, "Host: x", length, "Accept: a "),
	"a tab before a value":              lines(body, first, "Host: x", length, "Accept: \ta"),
	"a line without a colon":            lines(body, first, "Host: x", length, "Accept"),
	"a folded line":                     lines(body, first, "Host: x", length, "Accept: a", " b"),
	"a line that ends with LF":          strings.Replace(lines(body, first, "Host: x", length), "x\r\n", "x\n", 1),
	"a CR without LF":                   lines(body, first, "Host: x\r Accept: a", length),
	"a zero byte":                       lines(body, first, "Host: x\x00", length),
	"a control byte":                    lines(body, first, "Host: x", length, "Accept: a\x7f"),
	"a byte beyond ASCII":               lines(body, first, "Host: x", length, "User-Agent: wörker"),
	"a byte beyond ASCII near an end":   lines(body, first, "Host: x", length, "User-Agent: worker-of-mine-\xff"),
	"the head of a full parser's limit": lines(body, first, "Host: x", length, "Accept: "+strings.Repeat("a", MaxHead)),
	"many lines":                        lines(body, first, "Host: x", length, strings.Repeat("Accept: a\r\n", 1000)+"Accept: a"),
	"something else":                    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	"HTTP/2":                            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}

func TestWhatIsUnusualIsDoubted(t *testing.T) {
	for name, text := range doubts {
		var r Request
		if v := Parse([]byte(text), maxBody, &r); v != Doubt {
			t.Errorf("%s: %v %+v", name, v, r)
		}
		for n := range len(text) { // and no part of it is anything else
			if v := Parse([]byte(text[:n]), maxBody, &r); v == Whole {
				t.Errorf("%s: the first %d bytes are a heartbeat", name, n)
			}
		}
	}
}

// A first line that becomes nothing known is doubted before it ends: a client that waits for an answer need not send more.
func TestADoubtIsSeenEarly(t *testing.T) {
	for _, text := range []string{"G", "GET /livez", "POST /v2", "POST /x", "\r", "post"} {
		var r Request
		if v := Parse([]byte(text), maxBody, &r); v != Doubt {
			t.Errorf("%q: %v", text, v)
		}
	}
}

// FuzzParse: a recognised beat has the same fields as the full parser finds in the same bytes, whatever follows them.
func FuzzParse(f *testing.F) {
	for _, c := range recognised {
		f.Add([]byte(c.text), uint(len(c.text)/2))
	}
	for _, text := range doubts {
		f.Add([]byte(text), uint(7))
	}
	f.Fuzz(func(t *testing.T, b []byte, cut uint) {
		var r, part Request
		v := Parse(b, maxBody, &r)
		if v != Whole {
			return
		}
		if v := Parse(b[:cut%uint(r.Total)], maxBody, &part); v != Partial {
			t.Errorf("a part of it: %v", v)
		}
		full := fasthttp.AcquireRequest()
		defer fasthttp.ReleaseRequest(full)
		in := bufio.NewReaderSize(bytes.NewReader(b), MaxHead)
		if err := full.Read(in); err != nil {
			t.Fatalf("the full parser returns %v", err)
		}
		if err := new(fasthttp.URI).Parse(full.Header.Host(), full.Header.RequestURI()); err != nil {
			t.Errorf("the full parser returns %v", err)
		}
		rest := len(b) - r.Total
		h := &full.Header
		switch {
		case !h.IsPost(), !h.IsHTTP11(), len(h.Host()) == 0, h.ConnectionClose(), full.MayContinue(), h.ContentLength() != len(r.Body):
			t.Errorf("the full parser reads %s", h)
		case !bytes.Equal(full.Body(), r.Body):
			t.Errorf("the bodies are %q and %q", r.Body, full.Body())
		case string(h.RequestURI()) != r.targetText():
			t.Errorf("the targets are %q and %q", r.targetText(), h.RequestURI())
		case string(h.Peek("X-Request-ID")) != string(r.RequestID), len(h.ContentEncoding()) > 0,
			r.Token != nil && string(h.Peek("Authorization")) != "Bearer "+string(r.Token), r.Token == nil && len(h.Peek("Authorization")) > 0:
			t.Errorf("%+v, the full parser reads %s", r, h)
		}
		if left, _ := in.Peek(rest); len(left) != rest && rest < MaxHead {
			t.Errorf("%d bytes follow, the full parser leaves %d", rest, len(left))
		}
	})
}

func (r *Request) targetText() string {
	return map[Kind]string{Task: "/v1/tasks/" + string(r.ID) + "/heartbeat", Worker: "/v1/workers/" + string(r.ID) + "/heartbeat",
		Batch: "/v1/heartbeats"}[r.Kind]
}

// loaded is a request as a load generator sends it, with a token as long as ours are.
var loaded = []byte(lines(`{"attempt":1,"progressPct":42,"message":"working"}`, first, "Host: 127.0.0.1:8080",
	"Authorization: Bearer "+strings.Repeat("a", 450), "Content-Type: application/json", "Content-Length: 50"))

func TestParsingAllocatesNothing(t *testing.T) {
	var r Request
	if n := testing.AllocsPerRun(100, func() {
		if Parse(loaded, maxBody, &r) != Whole {
			t.Fatal("not recognised")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkParse(b *testing.B) {
	var r Request
	b.SetBytes(int64(len(loaded)))
	for b.Loop() {
		Parse(loaded, maxBody, &r)
	}
}

// BenchmarkFullParser is what the same request costs there.
func BenchmarkFullParser(b *testing.B) {
	var req fasthttp.Request
	in := bytes.NewReader(loaded)
	r := bufio.NewReaderSize(in, MaxHead)
	for b.Loop() {
		in.Reset(loaded)
		r.Reset(in)
		req.Reset()
		if err := req.Read(r); err != nil {
			b.Fatal(err)
		}
		req.Header.RawHeaders()
	}
}
