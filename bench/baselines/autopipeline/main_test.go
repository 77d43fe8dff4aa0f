package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/bench/baselines/internal/frontend"
	"github.com/lubdub-io/lubdub/internal/redistest"
)

var secret = []byte("a key of a test, of 32 bytes or more")

func call(h fasthttp.RequestHandler, action, token, body string) int {
	var ctx fasthttp.RequestCtx
	ctx.Request.Header.SetMethod("POST")
	ctx.Request.SetRequestURI("/v1/tasks/" + action)
	ctx.Request.Header.Set("Authorization", "Bearer "+token)
	ctx.Request.SetBodyString(body)
	h(&ctx)
	return ctx.Response.StatusCode()
}

// Beats of many tasks at once, each by its own token: each lands under its own name, and a wrong token or attempt
// finds no open door however warm the cache is.
func TestConcurrentBeatsAreStored(t *testing.T) {
	store := redistest.StartServer(t)
	h, err := way.Handler("redis://"+store.Addr+"/0", "k1="+base64.StdEncoding.EncodeToString(secret))
	if err != nil {
		t.Fatal(err)
	}
	const tasks, beats = 40, 20
	var all sync.WaitGroup
	for i := range tasks {
		all.Go(func() {
			id := fmt.Sprintf("report-%d", i)
			tok := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
				"iss": "lubdub", "aud": "lubdub", "exp": time.Now().Add(time.Hour).Unix(), "knd": "task",
				"ten": "acme", "wsp": "prod", "tsk": id, "att": 1, "fen": "aB3d", "hbt": 90000, "hbi": 30000,
			})
			tok.Header["kid"] = "k1"
			text, err := tok.SignedString(secret)
			if err != nil {
				t.Error(err)
				return
			}
			if status := call(h, id+"/heartbeat", text, `{"attempt":1}`); status != 409 {
				t.Errorf("before the start: %d", status)
			}
			if status := call(h, id+"/started", text, `{"attempt":1}`); status != 200 {
				t.Errorf("started: %d", status)
			}
			for n := range beats {
				if status := call(h, id+"/heartbeat", text, fmt.Sprintf(`{"attempt":1,"progressPct":%d}`, n)); status != 200 {
					t.Errorf("beat %d: %d", n, status)
				}
			}
			for want, wrong := range map[int]func() int{
				401: func() int { return call(h, id+"/heartbeat", text[:len(text)-6]+"AAAAAA", `{"attempt":1}`) },
				403: func() int { return call(h, id+"/heartbeat", text, `{"attempt":2}`) },
			} {
				if status := wrong(); status != want {
					t.Errorf("%d instead of %d", status, want)
				}
			}
			if status := call(h, "other/heartbeat", text, `{"attempt":1}`); status != 403 {
				t.Errorf("another task: %d", status)
			}
		})
	}
	all.Wait()
	client := store.Client()
	defer func() { _ = client.Close() }()
	if n := client.ZCard(t.Context(), "baseline:beats:90000").Val(); n != tasks {
		t.Errorf("%d of %d attempts", n, tasks)
	}
	for i := range tasks {
		if report := client.HGet(t.Context(), "baseline:progress",
			fmt.Sprintf("acme/prod/report-%d#1.aB3d", i)).Val(); report != fmt.Sprintf("\t\t%d\t", beats-1) {
			t.Errorf("report-%d: %q", i, report)
		}
	}
}

func TestTokensAreRememberedUntilTheyExpire(t *testing.T) {
	for life, want := range map[time.Duration]int{time.Hour: 1, -time.Hour: 3} {
		calls := 0
		verify := remember(func([]byte) (*frontend.Claims, error) {
			calls++
			return &frontend.Claims{RegisteredClaims: jwt.RegisteredClaims{ExpiresAt: jwt.NewNumericDate(time.Now().Add(life))}}, nil
		})
		for range 3 {
			if _, err := verify([]byte("token")); err != nil {
				t.Fatal(err)
			}
		}
		if calls != want {
			t.Errorf("life %v: verified %d times instead of %d", life, calls, want)
		}
	}
}

func TestRefusalsAreNotRemembered(t *testing.T) {
	calls := 0
	verify := remember(func([]byte) (*frontend.Claims, error) { calls++; return nil, errors.New("wrong") })
	for range 2 {
		if _, err := verify([]byte("token")); err == nil {
			t.Error("a refused token was let through")
		}
	}
	if calls != 2 {
		t.Errorf("verified %d times", calls)
	}
}

func TestOptionsAreValid(t *testing.T) {
	if err := options().Validate(); err != nil {
		t.Error(err)
	}
	if _, err := redis.NewClient(&redis.Options{}).AutoPipelineWithOptions(options()); err != nil {
		t.Error(err)
	}
}

func TestMain(m *testing.M) { redistest.Main(m) }
