package main

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/internal/redistest"
)

func TestBeat(t *testing.T) {
	secret := []byte("a key of a test, of 32 bytes or more")
	store := redistest.StartServer(t)
	h, err := way.Handler("redis://"+store.Addr+"/0", "k1="+base64.StdEncoding.EncodeToString(secret))
	if err != nil {
		t.Fatal(err)
	}
	tok := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": "lubdub", "aud": "lubdub", "exp": time.Now().Add(time.Hour).Unix(), "knd": "task",
		"ten": "acme", "wsp": "prod", "tsk": "report-1", "att": 1, "fen": "aB3d", "hbt": 90000, "hbi": 30000,
	})
	tok.Header["kid"] = "k1"
	text, err := tok.SignedString(secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		action, token, body string
		want                int
	}{
		{"heartbeat", text, `{"attempt":1}`, 409},
		{"started", text, `{"attempt":1}`, 200},
		{"heartbeat", text, `{"attempt":1,"progressPct":45}`, 200},
		{"heartbeat", text, `{"attempt":2}`, 403},
		{"heartbeat", text + "A", `{"attempt":1}`, 401},
	} {
		var ctx fasthttp.RequestCtx
		ctx.Request.Header.SetMethod("POST")
		ctx.Request.SetRequestURI("/v1/tasks/report-1/" + c.action)
		ctx.Request.Header.Set("Authorization", "Bearer "+c.token)
		ctx.Request.SetBodyString(c.body)
		if h(&ctx); ctx.Response.StatusCode() != c.want {
			t.Errorf("%+v: %d %s", c, ctx.Response.StatusCode(), ctx.Response.Body())
		}
	}
	client := store.Client()
	defer func() { _ = client.Close() }()
	if report := client.HGet(t.Context(), "baseline:progress", "acme/prod/report-1#1.aB3d").Val(); report != "\t\t45\t" {
		t.Errorf("%q", report)
	}
}

func TestMain(m *testing.M) { redistest.Main(m) }
