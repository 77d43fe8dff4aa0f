package requests

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/lubdub-io/lubdub/bench/load"
)

// BatchSize is how many tasks are created, or started, by one request.
const BatchSize = 1000

// creation creates all tasks that have no token yet, in batches.
type creation struct {
	*Tasks
	control  []byte
	from, to int   // this connection's part
	batch    []int // the tasks of the request under way
	body     []byte
}

// Create creates every task that has no token yet. Each counts as one beat.
func (t *Tasks) Create(control string) Sources {
	return func(i, n int) load.Source {
		return &creation{Tasks: t, control: []byte(control), from: len(t.at) * i / n, to: len(t.at) * (i + 1) / n}
	}
}

func (c *creation) Next(dst []byte) []byte {
	c.batch, c.body = c.batch[:0], append(c.body[:0], `{"tasks":[`...)
	for ; c.from < c.to && len(c.batch) < BatchSize; c.from++ {
		if c.at[c.from] != 0 {
			continue
		}
		if len(c.batch) > 0 {
			c.body = append(c.body, ',')
		}
		c.batch = append(c.batch, c.from)
		c.body = append(c.appendID(append(c.body, `{"taskId":"`...), uint32(c.from)), `",`...)
		if c.Tenants > 0 {
			c.body = strconv.AppendInt(append(c.body, `"tenantId":"tenant-`...), int64(c.from%c.Tenants), 10)
			c.body = append(c.body, `","workspaceId":"bench",`...)
		}
		c.body = append(c.body, c.template...)
	}
	if len(c.batch) == 0 {
		return nil
	}
	c.body = append(c.body, `]}`...)
	return post(dst, "/v1/tasks:batch", nil, "", c.control, c.body)
}

var createdField = []byte(`"status":201`)

func (c *creation) Answered(status int, body []byte, t *load.Tally) (created int) {
	size := len(c.batch)
	if status != 200 {
		t.Refused(refusal(status, body), int64(size))
		return 0
	}
	if c.Queue != "" { // there are no tokens yet
		if created = bytes.Count(body, createdField); created < size {
			t.Refused("not created in a batch", int64(size-created))
		}
		return created
	}
	if bytes.Count(body, tokenField) == size {
		for _, i := range c.batch {
			body = body[bytes.Index(body, tokenField):]
			c.setToken(i, after(body, tokenField, '"'))
			body = body[len(tokenField):]
		}
		return size
	}
	answers := results(body)
	if len(answers) != size {
		t.Refused("a batch without its results", int64(size))
		return 0
	}
	for i, r := range answers {
		if r.TaskToken == "" {
			t.Refused(fmt.Sprintf("%d %s", r.Status, r.Error), 1)
			continue
		}
		c.setToken(c.batch[i], []byte(r.TaskToken))
		created++
	}
	return created
}
