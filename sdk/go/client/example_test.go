package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"testing"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/workertest"
)

// A client of a real deployment: what has failed there is looked at.
func Example() {
	c, err := client.New("https://lubdub.example", client.TokenFile("/run/secrets/lubdub"))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for task, err := range c.Tasks(context.Background(), client.TaskQuery{State: []v1.State{v1.Failed}, Queue: "default"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(task.TaskID, string(task.Error))
	}
}

// example is a testing.TB for examples, which have none.
type example struct{ testing.TB }

// One task that was handed to this process is done and reported. In a test, pass t where this example has example{}.
func ExampleClient_Run() {
	s := workertest.New(example{}, workertest.MachineTime())
	c, err := client.New(s.URL(), s.Options()...)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	envelope := s.Push(v1.CreateTaskRequest{TaskID: "load-1"})
	answer, err := c.Run(context.Background(), envelope, func(ctx context.Context, a *client.Attempt) (any, error) {
		_ = a.Progress(50, "half of the rows")
		return map[string]int{"rows": 42}, ctx.Err()
	})
	fmt.Println(answer.FinalState, err)
	fmt.Println(string(s.Task("load-1").Output), s.Task("load-1").ProgressPct)
	// Output:
	// SUCCEEDED <nil>
	// {"rows":42} 50
}

// The context of a tracked attempt ends with a cause.
func ExampleClient_Track() {
	s := workertest.New(example{}, workertest.MachineTime())
	c, err := client.New(s.URL(), s.Options()...)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	envelope := s.Push(v1.CreateTaskRequest{TaskID: "load-2"})
	s.Cancel("load-2", "user_requested")
	ctx, attempt, err := c.Track(context.Background(), envelope)
	if err != nil {
		log.Fatal(err)
	}
	<-ctx.Done()
	if why := new(client.Cancelled); errors.As(context.Cause(ctx), why) {
		fmt.Println("cancelled:", why.Reason)
	}
	answer, err := attempt.Stopped("before the first row", nil)
	fmt.Println(answer.FinalState, err)
	// Output:
	// cancelled: user_requested
	// CANCELLED <nil>
}

// A webhook's messages are verified before anything is done.
func ExampleVerifier() {
	v, err := client.NewVerifier("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3")
	if err != nil {
		log.Fatal(err)
	}
	_, err = v.Verify(http.Header{}, []byte(`{}`))
	fmt.Println(errors.Is(err, client.ErrWebhookHeaders))
	// Output: true
}
