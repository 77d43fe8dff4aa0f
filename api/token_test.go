package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// forge makes a token of any header and claims, signed with any key.
func forge(t *testing.T, header, claims any, secret []byte) string {
	t.Helper()
	enc := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	text := enc(header) + "." + enc(claims)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func goodClaims(now time.Time) map[string]any {
	return map[string]any{
		"iss": "lubdub", "aud": []string{"lubdub"}, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "knd": "task",
		"ten": "acme", "wsp": "prod", "run": "run_1", "tsk": "task_1", "att": 1, "fen": "f3nc", "hbt": 90000, "hbi": 30000, "ttl": 3600000,
		"rnw": true,
	}
}

func TestTokensThatDoNotHoldAre401(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	secret := []byte(strings.Repeat("1", token.MinKeyBytes))
	header := map[string]any{"alg": "HS256", "typ": "JWT", "kid": "k1"}
	with := func(m map[string]any, change map[string]any) map[string]any {
		c := map[string]any{}
		for k, v := range m {
			c[k] = v
		}
		for k, v := range change {
			if v == nil {
				delete(c, k)
			} else {
				c[k] = v
			}
		}
		return c
	}
	claims := goodClaims(fakeTime)
	good := forge(t, header, claims, secret)
	e.do("POST", "/v1/tasks/task_1/heartbeat", good, `{"attempt":1}`).want(200) // the forge forges well

	tokens := map[string]string{
		"alg none": strings.Join(append(strings.Split(forge(t, with(header, map[string]any{"alg": "none"}), claims, nil), ".")[:2],
			""), "."),
		"alg none, signed":    forge(t, with(header, map[string]any{"alg": "none"}), claims, secret),
		"alg missing":         forge(t, with(header, map[string]any{"alg": nil}), claims, secret),
		"alg HS512":           forge(t, with(header, map[string]any{"alg": "HS512"}), claims, secret),
		"alg RS256":           forge(t, with(header, map[string]any{"alg": "RS256"}), claims, secret),
		"empty key":           forge(t, header, claims, nil),
		"empty kid and key":   forge(t, with(header, map[string]any{"kid": ""}), claims, nil),
		"unknown kid":         forge(t, with(header, map[string]any{"kid": "k9"}), claims, secret),
		"unknown kid, no key": forge(t, with(header, map[string]any{"kid": "k9"}), claims, nil),
		"no kid":              forge(t, with(header, map[string]any{"kid": nil}), claims, secret),
		"kid is a number":     forge(t, with(header, map[string]any{"kid": 1}), claims, secret),
		"wrong key":           forge(t, header, claims, []byte(strings.Repeat("2", token.MinKeyBytes))),
		"crit":                forge(t, with(header, map[string]any{"crit": []string{"exp"}}), claims, secret),
		"expired":             forge(t, header, with(claims, map[string]any{"exp": fakeTime.Unix()}), secret),
		"no exp":              forge(t, header, with(claims, map[string]any{"exp": nil}), secret),
		"exp as text":         forge(t, header, with(claims, map[string]any{"exp": "never"}), secret),
		"not yet":             forge(t, header, with(claims, map[string]any{"nbf": fakeTime.Unix() + 60}), secret),
		"wrong issuer":        forge(t, header, with(claims, map[string]any{"iss": "other"}), secret),
		"no issuer":           forge(t, header, with(claims, map[string]any{"iss": nil}), secret),
		"wrong audience":      forge(t, header, with(claims, map[string]any{"aud": "other"}), secret),
		"no audience":         forge(t, header, with(claims, map[string]any{"aud": nil}), secret),
		"payload altered":     strings.Replace(good, ".ey", ".eY", 1),
		"cut":                 good[:len(good)-1],
		"padded":              good + "=",
		"four parts":          good + ".x",
		"empty":               "",
		"dots":                "..",
		"junk":                "x",
		"oversize":            good + strings.Repeat("A", token.MaxBytes),
		"two tokens":          good + " " + good,
	}
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
		if last := string(c); last != good[len(good)-1:] { // the last character has two bits that decoders ignore
			tokens["last character "+last] = good[:len(good)-1] + last
		}
	}
	var body string
	for name, token := range tokens {
		for _, path := range []string{"/v1/tasks/task_1/heartbeat", "/v1/tasks/task_1/started", "/v1/tasks/task_1/completed", "/v1/tasks"} {
			a := e.do("POST", path, token, `{"attempt":1}`)
			if a.status != 401 {
				t.Errorf("%s at %s: %d %s", name, path, a.status, a.body)
				continue
			}
			if body == "" {
				body = a.body
			}
			if a.body != body || a.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s: the 401 reveals more than the others: %s", name, a.body)
			}
		}
	}
}

func TestAuthorizationHeaderIsReadStrictly(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	token := e.task()
	for name, c := range map[string]struct {
		headers string
		status  string
	}{
		"plain":           {"Authorization: Bearer " + token + "\n", "200"},
		"lower case":      {"authorization: bearer " + token + "\n", "200"},
		"trailing spaces": {"Authorization: Bearer " + token + "  \n", "200"},
		"none":            {"", "401"},
		"no scheme":       {"Authorization: " + token + "\n", "401"},
		"basic":           {"Authorization: Basic " + token + "\n", "401"},
		"twice the same":  {"Authorization: Bearer " + token + "\nAuthorization: Bearer " + token + "\n", "401"},
		"twice, one bad":  {"Authorization: Bearer x\nauthorization: Bearer " + token + "\n", "401"},
	} {
		got := e.raw("POST /v1/tasks/task_1/heartbeat HTTP/1.1\nHost: x\nConnection: close\n" + c.headers +
			"Content-Length: 13\n\n{\"attempt\":1}")
		if !strings.HasPrefix(got, "HTTP/1.1 "+c.status) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestATaskTokenOpensItsAttemptOnly(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.fake.beat = func(b *beats.Beat) { t.Errorf("a foreign token reached the domain: %+v", b.Attempt) }
	for _, op := range []string{"heartbeat", "started", "completed"} {
		body := `{"attempt":1,"outcome":"SUCCEEDED"}`
		e.do("POST", "/v1/tasks/task_2/"+op, e.task(), body).refused(403, "forbidden")
		e.do("POST", "/v1/tasks/task_11/"+op, e.task(), body).refused(403, "forbidden")
		e.do("POST", "/v1/tasks/-task/"+op, e.task(), body).refused(400, "invalid_id")
		e.do("POST", "/v1/tasks/task_1/"+op, e.task(), `{"attempt":2,"outcome":"SUCCEEDED"}`).refused(403, "forbidden")
		e.do("POST", "/v1/tasks/task_1/"+op, e.control(roleAdmin), body).refused(403, "forbidden")
	}
	e.do("GET", "/v1/tasks/task_1", e.task(), "").refused(403, "forbidden")
	e.do("POST", "/v1/tasks", e.task(), "{}").refused(403, "forbidden")
}

func TestBeatsRenewTheTokenInItsLastThird(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	token := e.task()
	beat := func(token string) (string, string) {
		var r struct{ TaskToken, TokenExpiresAt string }
		e.do("POST", "/v1/tasks/task_1/heartbeat", token, `{"attempt":1}`).want(200).into(&r)
		return r.TaskToken, r.TokenExpiresAt
	}
	if fresh, _ := beat(token); fresh != "" {
		t.Error("renewed at once")
	}
	e.advance(40*time.Minute - time.Millisecond)
	if fresh, _ := beat(token); fresh != "" {
		t.Error("renewed before the last third")
	}
	e.advance(time.Millisecond)
	fresh, expires := beat(token)
	if want := "2025-01-15T11:45:00.000Z"; fresh == "" || expires != want {
		t.Fatalf("got %q until %s, want a token until %s", fresh, expires, want)
	}
	if again, _ := beat(token); again != fresh {
		t.Error("a second beat got another token")
	}
	if next, _ := beat(fresh); next != "" {
		t.Error("the fresh token was renewed at once")
	}
	e.advance(30 * time.Minute) // past the first one's end
	e.do("POST", "/v1/tasks/task_1/heartbeat", token, `{"attempt":1}`).refused(401, "unauthorized")
	e.advance(10 * time.Minute) // into the last third of the second one
	if third, _ := beat(fresh); third == "" || third == fresh {
		t.Error("the fresh token was not renewed in its own last third")
	}
}

func TestTokensThatMustNotBeRenewedAreNot(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	token, _, err := httpapi.MintTask(e.keys, testAttempt(), time.Hour, false)
	if err != nil {
		t.Fatal(err)
	}
	e.advance(59 * time.Minute)
	if a := e.do("POST", "/v1/tasks/task_1/heartbeat", token, `{"attempt":1}`).want(200); strings.Contains(a.body, "taskToken") {
		t.Errorf("renewed: %s", a.body)
	}
}

// The cache must not keep what belongs to a request: fasthttp writes the next one over it.
func TestTokenCacheHoldsItsOwnCopies(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	mine, other := e.task(), e.task(func(a *model.Attempt) { a.TaskID = "task_2" })
	for range 3 {
		e.do("POST", "/v1/tasks/task_1/heartbeat", mine, `{"attempt":1}`).want(200)
		e.do("POST", "/v1/tasks/task_2/heartbeat", other, `{"attempt":1}`).want(200)
		e.do("POST", "/v1/tasks/task_1/heartbeat", other, `{"attempt":1}`).refused(403, "forbidden")
	}
	if e.fake.named != 2 {
		t.Errorf("%d attempts were named, want one for each token", e.fake.named)
	}
}

// Only HS256 opens anything: a token that is signed in good order by another algorithm, with the right key, does not.
func TestOnlyHS256Opens(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for alg, want := range map[*jwt.SigningMethodHMAC]int{jwt.SigningMethodHS256: 200, jwt.SigningMethodHS384: 401,
		jwt.SigningMethodHS512: 401} {
		beats := jwt.NewWithClaims(alg, jwt.MapClaims(goodClaims(fakeTime)))
		beats.Header["kid"] = "k1"
		text, err := beats.SignedString(goodSecret)
		if err != nil {
			t.Fatal(err)
		}
		e.do("POST", "/v1/tasks/task_1/heartbeat", text, `{"attempt":1}`).want(want)
	}
}
