package api

import (
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

// Only HS256 opens anything: a token that is signed in good order by another algorithm, with the right key, does not.
func TestOnlyHS256Opens(t *testing.T) {
	e := newEnv(t)
	for alg, want := range map[*jwt.SigningMethodHMAC]int{jwt.SigningMethodHS256: 200, jwt.SigningMethodHS384: 401, jwt.SigningMethodHS512: 401} {
		beats := jwt.NewWithClaims(alg, jwt.MapClaims(goodClaims(fakeTime)))
		beats.Header["kid"] = "k1"
		text, err := beats.SignedString(goodSecret)
		if err != nil {
			t.Fatal(err)
		}
		e.do("POST", "/v1/tasks/task_1/heartbeat", text, `{"attempt":1}`).want(want)
	}
}
