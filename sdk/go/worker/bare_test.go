//go:build go1.25

package worker_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// asker makes a call and returns the answer's body, which holds until the next one.
type asker func(path, token, in string) ([]byte, error)

// bareNoOps does the same with as little as it takes, on as many connections as it has places, 4 at most.
func bareNoOps(dial func(addr string) (post asker, done func(), err error)) noOps {
	return func(b *testing.B, addr string, places, n int) time.Duration {
		var left atomic.Int64
		left.Store(int64(n))
		before := used(b)
		var all sync.WaitGroup
		for range min(places, 4) {
			all.Add(1)
			go func() {
				defer all.Done()
				post, done, err := dial(addr)
				if err == nil {
					err = bareLoop(post, places, &left)
					done()
				}
				if err != nil {
					b.Error(err)
				}
			}()
		}
		all.Wait()
		return used(b) - before
	}
}

func bareConn(addr string) (asker, func(), error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, nil, err
	}
	r := bufio.NewReader(c)
	var body []byte
	return func(path, token, in string) ([]byte, error) {
		_, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
			"Content-Length: %d\r\n\r\n%s", path, addr, token, len(in), in)
		if err == nil {
			body, err = readBare(r, body)
		}
		return body, err
	}, func() { _ = c.Close() }, nil
}

func bareHTTP(addr string) (asker, func(), error) {
	c := &http.Client{Transport: &http.Transport{}}
	return func(path, token, in string) ([]byte, error) {
		req, err := http.NewRequest(http.MethodPost, "http://"+addr+path, strings.NewReader(in))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		res, err := c.Do(req)
		if err != nil {
			return nil, err
		}
		defer func() { _ = res.Body.Close() }()
		return io.ReadAll(res.Body)
	}, c.CloseIdleConnections, nil
}

func bareLoop(post asker, places int, left *atomic.Int64) error {
	token := strings.Repeat("x", 400)
	for left.Load() > 0 {
		body, err := post("/v1/queues/default/claim", token, fmt.Sprintf(`{"types":["job"],"max":%d,"waitMs":30000}`, places))
		if err != nil {
			return err
		}
		var claimed struct {
			Tasks []struct{ TaskID, TaskToken string }
		}
		if err := json.Unmarshal(body, &claimed); err != nil {
			return err
		}
		for _, t := range claimed.Tasks {
			if _, err := post("/v1/tasks/"+t.TaskID+"/started", t.TaskToken, `{"attempt":1}`); err != nil {
				return err
			}
			if _, err := post("/v1/tasks/"+t.TaskID+"/completed", t.TaskToken, `{"attempt":1,"outcome":"SUCCEEDED","output":null}`); err != nil {
				return err
			}
			if left.Add(-1) <= 0 {
				return nil
			}
		}
	}
	return nil
}

// readBare reads a response with a Content-Length.
func readBare(r *bufio.Reader, body []byte) ([]byte, error) {
	length := -1
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			break
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			length, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
		}
	}
	if length < 0 {
		return nil, io.ErrUnexpectedEOF
	}
	if cap(body) < length {
		body = make([]byte, length)
	}
	body = body[:length]
	_, err := io.ReadFull(r, body)
	return body, err
}
