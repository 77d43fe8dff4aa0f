package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
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
		"ten": "acme", "wsp": "prod", "run": "run_1", "tsk": "task_1", "att": 1, "fen": "f3nc", "hbt": 90000, "hbi": 30000, "ttl": 3600000, "rnw": true,
	}
}

func TestTokensThatDoNotHoldAre401(t *testing.T) {
	e := newEnv(t)
	secret := []byte(strings.Repeat("1", MinKeyBytes))
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
		"alg none":            strings.Join(append(strings.Split(forge(t, with(header, map[string]any{"alg": "none"}), claims, nil), ".")[:2], ""), "."),
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
		"wrong key":           forge(t, header, claims, []byte(strings.Repeat("2", MinKeyBytes))),
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
		"oversize":            good + strings.Repeat("A", maxTokenBytes),
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
				t.Errorf("%s: the 401 tells more than the others: %s", name, a.body)
			}
		}
	}
}

func TestAuthorizationHeaderIsReadStrictly(t *testing.T) {
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
		got := e.raw("POST /v1/tasks/task_1/heartbeat HTTP/1.1\nHost: x\nConnection: close\n" + c.headers + "Content-Length: 13\n\n{\"attempt\":1}")
		if !strings.HasPrefix(got, "HTTP/1.1 "+c.status) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestATaskTokenOpensItsAttemptOnly(t *testing.T) {
	e := newEnv(t)
	e.fake.beat = func(b *tracker.Beat) { t.Errorf("a foreign token reached the domain: %+v", b.Attempt) }
	for _, op := range []string{"heartbeat", "started", "completed"} {
		body := `{"attempt":1,"outcome":"SUCCEEDED"}`
		e.do("POST", "/v1/tasks/task_2/"+op, e.task(), body).refused(403, "forbidden")
		e.do("POST", "/v1/tasks/task_11/"+op, e.task(), body).refused(403, "forbidden")
		e.do("POST", "/v1/tasks/-task/"+op, e.task(), body).refused(400, "invalid_id")
		e.do("POST", "/v1/tasks/task_1/"+op, e.task(), `{"attempt":2,"outcome":"SUCCEEDED"}`).refused(403, "forbidden")
		e.do("POST", "/v1/tasks/task_1/"+op, e.control(RoleAdmin), body).refused(403, "forbidden")
	}
	e.do("GET", "/v1/tasks/task_1", e.task(), "").refused(403, "forbidden")
	e.do("POST", "/v1/tasks", e.task(), "{}").refused(403, "forbidden")
}

func TestRotatedKeysAllVerifyAndTheFirstSigns(t *testing.T) {
	old := Key{ID: "old", Secret: []byte(strings.Repeat("o", 32))}
	young := Key{ID: "young", Secret: []byte(strings.Repeat("y", 40))}
	before, err := NewKeyring(old)
	if err != nil {
		t.Fatal(err)
	}
	during, err := NewKeyring(young, old)
	if err != nil {
		t.Fatal(err)
	}
	after, err := NewKeyring(young)
	if err != nil {
		t.Fatal(err)
	}
	a := testAttempt()
	oldToken, _, _ := before.mintTask(a, time.Hour, true)
	newToken, _, _ := during.mintTask(a, time.Hour, true)
	for name, c := range map[string]struct {
		ring  *Keyring
		token string
		holds bool
	}{
		"old token, both keys": {during, oldToken, true}, "new token, both keys": {during, newToken, true},
		"old token, new key": {after, oldToken, false}, "new token, new key": {after, newToken, true}, "new token, old key": {before, newToken, false},
	} {
		if _, err := c.ring.verify(c.token, fakeTime); (err == nil) != c.holds {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKeysAreRefusedWithAReason(t *testing.T) {
	long := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 32)))
	for text, part := range map[string]string{
		"":                           "no signing key",
		"k1":                         "no kid",
		"k1=!!!":                     "not base64",
		"k1=" + long[:40]:            "at least 32",
		"k1=":                        "at least 32",
		"=" + long:                   "kid",
		"k1=" + long + ",k1=" + long: "two signing keys",
	} {
		keys, err := ParseKeys(text)
		if err == nil {
			_, err = NewKeyring(keys...)
		}
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: got %v, want %q", text, err, part)
		}
	}
	k := NewKey("fresh")
	for _, text := range []string{"k1=" + long + "," + k.String(), "k1=" + long + "\n" + k.String() + "\n", "k1=" + strings.TrimRight(long, "=") + " , " + k.String()} {
		keys, err := ParseKeys(text)
		if err != nil || len(keys) != 2 || string(keys[1].Secret) != string(k.Secret) || keys[1].ID != "fresh" {
			t.Errorf("%q: %v %v", text, keys, err)
		}
	}
}

func TestMintingATaskTokenIsDeterministic(t *testing.T) {
	k := testKeys(t)
	a := testAttempt()
	a.IssuedAt = fakeTime.Add(400 * time.Millisecond)
	one, exp, err := k.mintTask(a, time.Hour, true)
	two, _, _ := k.mintTask(a, time.Hour, true)
	if err != nil || one != two {
		t.Fatalf("two tokens for one attempt: %v", err)
	}
	if want := fakeTime.Add(time.Hour + time.Second); !exp.Equal(want) {
		t.Errorf("expires %v, want %v: never early, in whole seconds", exp, want)
	}
	c, err := k.verify(one, fakeTime)
	if err != nil {
		t.Fatal(err)
	}
	if got := attemptOf(c); got != *a {
		t.Errorf("got %+v, want %+v", got, *a)
	}
	if c.ExpiresAt.Sub(c.IssuedAt.Time) != time.Hour {
		t.Errorf("life %v", c.ExpiresAt.Sub(c.IssuedAt.Time))
	}
}

func TestTheLongestTokenLifeIsNeverExceeded(t *testing.T) {
	for _, fraction := range []time.Duration{0, 1, time.Millisecond, 999 * time.Millisecond} {
		from := fakeTime.Add(fraction)
		for _, life := range []time.Duration{tracker.MaxTokenTTL, tracker.MaxTokenTTL - 300*time.Millisecond, time.Hour, time.Second} {
			iat, exp := lifetime(from, life)
			if exp.Sub(from) > tracker.MaxTokenTTL || exp.Sub(iat) > tracker.MaxTokenTTL || exp.Nanosecond() != 0 {
				t.Errorf("from +%v for %v: ends %v after", fraction, life, exp.Sub(from))
			}
			if life < tracker.MaxTokenTTL-time.Second && exp.Before(from.Add(life)) {
				t.Errorf("from +%v for %v: ends early", fraction, life)
			}
		}
	}
}

func TestBeatsRenewTheTokenInItsLastThird(t *testing.T) {
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
	e := newEnv(t)
	token, _, err := e.keys.mintTask(testAttempt(), time.Hour, false)
	if err != nil {
		t.Fatal(err)
	}
	e.advance(59 * time.Minute)
	if a := e.do("POST", "/v1/tasks/task_1/heartbeat", token, `{"attempt":1}`).want(200); strings.Contains(a.body, "taskToken") {
		t.Errorf("renewed: %s", a.body)
	}
}

func TestMintControlRefusesNonsense(t *testing.T) {
	k := testKeys(t)
	good := ControlToken{Role: RoleEnroll, Tenant: "acme", Workspace: Wildcard, Queue: "default", TTL: time.Hour}
	if _, exp, err := k.MintControl(good, fakeTime); err != nil || !exp.Equal(fakeTime.Add(time.Hour)) {
		t.Fatal(err, exp)
	}
	for name, change := range map[string]func(*ControlToken){
		"role": func(c *ControlToken) { c.Role = "root" }, "tenant": func(c *ControlToken) { c.Tenant = "" },
		"workspace": func(c *ControlToken) { c.Workspace = "a/b" }, "queue": func(c *ControlToken) { c.Role = RoleAdmin },
		"life": func(c *ControlToken) { c.TTL = 0 },
	} {
		c := good
		change(&c)
		if _, _, err := k.MintControl(c, fakeTime); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
