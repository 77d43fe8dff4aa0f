package fleet

import (
	"context"
	"errors"
	"net/http"

	"github.com/lubdub-io/lubdub/sdk/go/client"
)

// connect creates a client that makes each call once: the fleet repeats calls itself, and counts that.
func (o *Options) connect(token string) (*client.Client, error) {
	opts := []client.Option{
		client.Token(token), client.Scope(o.Tenant, o.Workspace), client.Tries(1), client.UserAgent("lubdub-fleet"),
		client.AllowHTTP(), // a show's tokens are valid only in a show's deployment
	}
	if o.Client.Transport != nil {
		opts = append(opts, client.Transport(o.Client.Transport))
	}
	if o.Client.Timeout > 0 {
		opts = append(opts, client.Timeout(o.Client.Timeout))
	}
	return client.New(o.BaseURL, opts...)
}

// again reports whether the same call may succeed later: it got no response, or one that requests a retry.
func again(err error) bool { return client.MayRetry(err) && !errors.Is(err, context.Canceled) }

// refusedWith returns the status of a refusal, or 0 for another error.
func refusedWith(err error) int {
	if r, ok := errors.AsType[*client.Error](err); ok {
		return r.Status
	}
	return 0
}

// errAnswer means that an answer did not follow the contract.
var errAnswer = client.ErrAnswer

// control makes a call of the control plane, and retries it while that may help.
func (f *Fleet) control(ctx context.Context, call func() error) error {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		err := call()
		if !again(err) || ctx.Err() != nil {
			return err
		}
		f.tally.retries.Add(1)
		if after := client.RetryAfter(err); after > 0 {
			wait = min(wait, after)
		}
		if !pause(ctx, wait) {
			return err
		}
	}
}

// missing reports whether the requested object does not exist.
func missing(err error) bool { return refusedWith(err) == http.StatusNotFound }
