// Command media resizes clips with Lubdub. As a worker it runs the three steps of the pipeline; submit sends clips through it and awaits
// the results:
//
//	media worker
//	media submit http://127.0.0.1:8099 clip-1 clip-2
//
// LUBDUB_URL and LUBDUB_TOKEN name the deployment. A worker's token needs the role enroll, that of submit needs submitter.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
)

const queue = "media"

// Clip is the payload of all three tasks.
type Clip struct {
	Source string `json:"source"` // URL of the clip: frames in PPM, one after the other
	Folder string `json:"folder"` // URL of the folder for its frames
	Target string `json:"target"` // URL where the result is published
	Frames int    `json:"frames"` // how many frames it has; 0 before it is fetched
}

// Published is the output of publish.
type Published struct {
	Frames int    `json:"frames"`
	SHA256 string `json:"sha256"`
}

func main() {
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "worker":
		err = work()
	case len(os.Args) > 3 && os.Args[1] == "submit":
		err = submit(os.Args[2], os.Args[3:])
	default:
		err = errors.New("usage: media worker | media submit STUDIO CLIP [CLIP ...]")
	}
	if err != nil {
		log.Fatal(err)
	}
}

// work runs tasks until SIGTERM or Ctrl-C.
func work() error {
	w, err := worker.New(nil, queue, worker.Concurrency(8))
	if err != nil {
		return err
	}
	worker.HandleJSON(w, "fetch", fetch)
	worker.HandleJSON(w, "resize", resize)
	worker.HandleJSON(w, "publish", publish)
	return w.RunUntilSignal()
}

// fetch stores the frames of a clip in its folder and returns how many there are.
func fetch(ctx context.Context, clip Clip) (frames int, err error) {
	rest, err := request(ctx, http.MethodGet, clip.Source, nil, "")
	for err == nil && len(rest) > 0 {
		var size int
		if _, _, size, err = header(rest); err != nil {
			return 0, worker.Permanent(fmt.Errorf("%s: %w", clip.Source, err))
		}
		_, err = request(ctx, http.MethodPut, frameURL(clip, "full", frames), rest[:size], "")
		rest = rest[size:]
		frames++
	}
	return frames, err
}

// resize halves each frame. A checkpoint after each one lets the next attempt continue with the next frame.
func resize(ctx context.Context, clip Clip) (frames int, err error) {
	task, first := worker.TaskOf(ctx), 0
	if resumed, err := task.LastCheckpoint(&first); err != nil {
		return 0, err
	} else if resumed {
		log.Printf("task %s of %s: resumed at frame %d", task.ID(), clip.Source, first)
	}
	for i := first; i < clip.Frames; i++ {
		frame, err := request(ctx, http.MethodGet, frameURL(clip, "full", i), nil, "")
		if err != nil {
			return 0, err
		}
		small, err := halve(frame)
		if err != nil {
			return 0, worker.Permanent(err)
		}
		if _, err := request(ctx, http.MethodPut, frameURL(clip, "small", i), small, ""); err != nil {
			return 0, err
		}
		_ = task.Progress(100*float64(i+1)/float64(clip.Frames), fmt.Sprintf("frame %d of %d", i+1, clip.Frames))
		if err := task.Checkpoint(i + 1); err != nil {
			return 0, err
		}
	}
	return clip.Frames, nil
}

// publish sends the resized clip to its target. All attempts of a task use the same key, so that the target publishes the clip once.
func publish(ctx context.Context, clip Clip) (Published, error) {
	var all []byte
	for i := range clip.Frames {
		frame, err := request(ctx, http.MethodGet, frameURL(clip, "small", i), nil, "")
		if err != nil {
			return Published{}, err
		}
		all = append(all, frame...)
	}
	_, err := request(ctx, http.MethodPut, clip.Target, all, worker.TaskOf(ctx).ID())
	sum := sha256.Sum256(all)
	return Published{clip.Frames, hex.EncodeToString(sum[:])}, err
}

func frameURL(clip Clip, size string, number int) string {
	return fmt.Sprintf("%s/%s/%04d.ppm", clip.Folder, size, number)
}

// request makes an HTTP request and returns the body of the answer. Its errors state whether and when another attempt can help.
func request(ctx context.Context, method, url string, body []byte, key string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, worker.Permanent(err)
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err // it is retried by the policy of the task
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	switch status := answer.StatusCode; {
	case status == http.StatusServiceUnavailable:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		return nil, worker.RetryAfter(time.Duration(max(seconds, 1))*time.Second, fmt.Errorf("%s %s: %s", method, url, answer.Status))
	case status == http.StatusNotFound:
		return nil, worker.Permanent(fmt.Errorf("%s %s: %s", method, url, answer.Status))
	case status >= 300:
		return nil, fmt.Errorf("%s %s: %s", method, url, answer.Status)
	}
	return content, err
}

// submit sends clips through the pipeline, all at once, and prints the results as one line of JSON.
func submit(studio string, names []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c, err := client.New("")
	if err != nil {
		return err
	}
	defer c.Close()
	var mu sync.Mutex
	var all sync.WaitGroup
	results, failed := map[string]any{}, 0
	for _, name := range names {
		all.Go(func() {
			clip := Clip{Source: studio + "/clips/" + name, Folder: studio + "/files/" + name, Target: studio + "/published/" + name}
			published, err := process(ctx, c, clip)
			mu.Lock()
			defer mu.Unlock()
			results[name] = published
			if err != nil {
				results[name] = map[string]string{"error": err.Error()}
				failed++
			}
		})
	}
	all.Wait()
	if err := json.NewEncoder(os.Stdout).Encode(results); err != nil || failed == 0 {
		return err
	}
	return fmt.Errorf("%d of %d clips failed", failed, len(names))
}

// process runs the steps of one clip, each when the one before has succeeded.
func process(ctx context.Context, c *client.Client, clip Clip) (result Published, err error) {
	if err := run(ctx, c, "fetch", clip, &clip.Frames); err != nil {
		return Published{}, err
	}
	if err := run(ctx, c, "resize", clip, nil); err != nil {
		return Published{}, err
	}
	err = run(ctx, c, "publish", clip, &result, client.Delay(time.Second))
	return result, err
}

// run creates a task and awaits its output.
func run(ctx context.Context, c *client.Client, taskType string, clip Clip, output any, options ...client.CreateOption) error {
	task, err := c.Enqueue(ctx, queue, taskType, clip, options...)
	if err != nil {
		return err
	}
	return c.Result(ctx, task.TaskID, output)
}
