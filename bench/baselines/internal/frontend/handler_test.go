package frontend

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/golang-jwt/jwt/v5"
	"github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/internal/redistest"
)

var secret = []byte("a key of a test, of 32 bytes or more")

const member = "acme/prod/report-1#2.aB3d"

func token(t *testing.T, key []byte, change func(jwt.MapClaims)) string {
	t.Helper()
	claims := jwt.MapClaims{
		"iss": "lubdub", "aud": []string{"lubdub"}, "exp": time.Now().Add(time.Hour).Unix(), "knd": "task",
		"ten": "acme", "wsp": "prod", "tsk": "report-1", "att": 2, "fen": "aB3d", "hbt": 90000, "hbi": 30000,
	}
	if change != nil {
		change(claims)
	}
	tok := jwt.NewWithClaims(jwt.SigningMethodHS256, claims)
	tok.Header["kid"] = "k1"
	text, err := tok.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func newHandler(t *testing.T, addr string) (fasthttp.RequestHandler, *redis.Client) {
	t.Helper()
	verify, err := Verifier("k1=" + base64.StdEncoding.EncodeToString(secret))
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = client.Close() })
	return Handler(verify, client), client
}

func post(h fasthttp.RequestHandler, path, token, body string) (int, map[string]any) {
	var ctx fasthttp.RequestCtx
	ctx.Request.Header.SetMethod("POST")
	ctx.Request.SetRequestURI(path)
	if token != "" {
		ctx.Request.Header.Set("Authorization", "Bearer "+token)
	}
	ctx.Request.SetBodyString(body)
	h(&ctx)
	var answer map[string]any
	_ = json.Unmarshal(ctx.Response.Body(), &answer)
	return ctx.Response.StatusCode(), answer
}

func TestRefusals(t *testing.T) {
	h, client := newHandler(t, miniredis.RunT(t).Addr())
	good := token(t, secret, nil)
	if status, answer := post(h, "/v1/tasks/report-1/started", good, `{"attempt":2}`); status != 200 {
		t.Fatal(status, answer)
	}
	before := client.ZScore(t.Context(), "baseline:beats:90000", member).Val()
	for _, c := range []struct {
		name, path, token, body string
		want                    int
	}{
		{"no token", "/v1/tasks/report-1/heartbeat", "", `{"attempt":2}`, 401},
		{"another key", "/v1/tasks/report-1/heartbeat", token(t, []byte(strings.Repeat("x", 32)), nil), `{"attempt":2}`, 401},
		{"expired", "/v1/tasks/report-1/heartbeat", token(t, secret, func(c jwt.MapClaims) { c["exp"] = time.Now().Unix() - 5 }), `{"attempt":2}`,
			401},
		{"no expiry", "/v1/tasks/report-1/heartbeat", token(t, secret, func(c jwt.MapClaims) { delete(c, "exp") }), `{"attempt":2}`, 401},
		{"another audience", "/v1/tasks/report-1/heartbeat", token(t, secret, func(c jwt.MapClaims) { c["aud"] = "x" }), `{"attempt":2}`, 401},
		{"another kind", "/v1/tasks/report-1/heartbeat", token(t, secret, func(c jwt.MapClaims) { c["knd"] = "control" }), `{"attempt":2}`, 401},
		{"another task", "/v1/tasks/report-2/heartbeat", good, `{"attempt":2}`, 403},
		{"another attempt in the body", "/v1/tasks/report-1/heartbeat", good, `{"attempt":1}`, 403},
		{"an attempt that does not run", "/v1/tasks/report-1/heartbeat", token(t, secret, func(c jwt.MapClaims) { c["att"] = 1 }),
			`{"attempt":1}`, 409},
		{"an attempt with another fence", "/v1/tasks/report-1/heartbeat", token(t, secret, func(c jwt.MapClaims) { c["fen"] = "xxxx" }),
			`{"attempt":2}`, 409},
		{"no JSON", "/v1/tasks/report-1/heartbeat", good, `{"attempt":`, 400},
		{"progress over 100", "/v1/tasks/report-1/heartbeat", good, `{"attempt":2,"progressPct":101}`, 400},
		{"another path", "/v1/tasks/report-1/completed", good, `{"attempt":2}`, 404},
	} {
		if status, answer := post(h, c.path, c.token, c.body); status != c.want || answer["error"] == nil {
			t.Errorf("%s: %d %v, want %d", c.name, status, answer, c.want)
		}
	}
	if n := client.ZCard(t.Context(), "baseline:beats:90000").Val(); n != 1 {
		t.Errorf("%d members after refusals", n)
	}
	if after := client.ZScore(t.Context(), "baseline:beats:90000", member).Val(); after != before {
		t.Error("a refused beat moved the score")
	}
	if n := client.HLen(t.Context(), "baseline:progress").Val(); n != 0 {
		t.Errorf("%d reports after refusals", n)
	}
}

func TestBeatIsStored(t *testing.T) {
	h, client := newHandler(t, redistest.StartServer(t).Addr)
	good := token(t, secret, nil)
	if status, answer := post(h, "/v1/tasks/report-1/started", good, `{"attempt":2}`); status != 200 {
		t.Fatal(status, answer)
	}
	client.ZAdd(t.Context(), "baseline:beats:90000", redis.Z{Score: 1, Member: member})
	status, answer := post(h, "/v1/tasks/report-1/heartbeat", good,
		`{"attempt":2,"workerId":"worker-1","heartbeatAt":"2026-01-15T10:05:00Z","progressPct":45.5,"message":"partition 5"}`)
	at, err := time.Parse(time.RFC3339, answer["serverTime"].(string))
	if status != 200 || err != nil || answer["acknowledged"] != true || answer["shouldCancel"] != false ||
		answer["nextHeartbeatMs"] != 30000.0 {
		t.Fatal(status, answer, err)
	}
	if score := client.ZScore(t.Context(), "baseline:beats:90000", member).Val(); int64(score) != at.UnixMilli() {
		t.Errorf("score %.0f, answered %d", score, at.UnixMilli())
	}
	if report := client.HGet(t.Context(), "baseline:progress", member).Val(); report != "1768471500000\tworker-1\t45.5\t\"partition 5\"" {
		t.Errorf("%q", report)
	}
}

func TestStoreIsUnavailable(t *testing.T) {
	m := miniredis.RunT(t)
	h, _ := newHandler(t, m.Addr())
	m.SetError("LOADING")
	if status, answer := post(h, "/v1/tasks/report-1/heartbeat", token(t, secret, nil), `{"attempt":2}`); status != 503 {
		t.Error(status, answer)
	}
}

func TestKeysThatAreNone(t *testing.T) {
	for _, keys := range []string{"", "k1", "k1=", "k1=" + base64.StdEncoding.EncodeToString([]byte("short")),
		"=" + base64.StdEncoding.EncodeToString(secret)} {
		if _, err := Verifier(keys); err == nil || !strings.Contains(err.Error(), "openssl rand") {
			t.Errorf("%q: %v", keys, err)
		}
	}
}

func TestMain(m *testing.M) { redistest.Main(m) }
