package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

func padded(n int64) string { return fmt.Sprintf("%013d", n) }

var errDisabled = &model.Error{Code: Disabled, Message: "this webhook is switched off; switch it on first, by an update with enabled"}

var errDeliveryNotFound = &model.Error{Code: DeliveryNotFound, Message: fmt.Sprintf(
	"nothing is kept of this delivery: of those that are over the newest %d delivered and as many dead ones are; redeliver by since instead",
	maxFinished)}

// DeliveryFilter selects a page of a webhook's deliveries.
type DeliveryFilter struct {
	Scope       model.Scope
	WebhookID   string
	Status      Status // "": any
	OldestFirst bool   // else newest first
	After       string // ID of the last delivery of the previous page; "": first page
	PageSize    int
}

// DeliveryPage is the result of a DeliveryFilter.
type DeliveryPage struct {
	Deliveries []*Delivery
	Next       string // ID after which the next page begins; "": last page
}

// scanned is the largest number of deliveries that one page reads.
const scanned = 200

// Deliveries returns a page of deliveries. It may be short although there are more. It fails when the webhook does not exist or the page
// token is invalid.
func (s *Service) Deliveries(ctx context.Context, f DeliveryFilter) (*DeliveryPage, error) {
	ctx = s.store.Within(ctx, 0)
	behind := ""
	if f.After != "" {
		number, ok := numberOf(f.After)
		if !ok {
			return nil, invalid("pageToken", "is not one of ours; use the nextPageToken of the page before, unchanged")
		}
		behind = number
	}
	most := f.PageSize
	if f.Status == Pending {
		most = scanned
	}
	re, err := s.store.Do(ctx, "deliveries", s.deliveriesCall(s.ref(f.Scope, f.WebhookID), f.Status, behind, most, f.OldestFirst))
	if err != nil {
		return nil, err
	}
	reply := readDeliveries(re, most)
	if !reply.found {
		return nil, errNotFound
	}
	page := &DeliveryPage{}
	for _, d := range reply.all {
		if f.Status != "" && d.Status != f.Status {
			continue
		}
		if page.Deliveries = append(page.Deliveries, d); len(page.Deliveries) == f.PageSize {
			page.Next = d.ID
			return page, nil
		}
	}
	if reply.full {
		page.Next = deliveryPrefix + reply.last
	}
	return page, nil
}

// Redeliver makes one delivery due again now, with the same message. It fails when the webhook or the delivery does not exist, or the
// webhook is disabled.
func (s *Service) Redeliver(ctx context.Context, scope model.Scope, webhook, delivery string) error {
	ctx = s.store.Within(ctx, 0)
	number, ok := numberOf(delivery)
	if !ok {
		return invalid("deliveryId", "is no id of a delivery; use one that GET …/deliveries lists")
	}
	if _, err := s.Get(ctx, scope, webhook); err != nil {
		return err
	}
	re, err := s.store.Do(ctx, "redeliver", s.againCall(s.ref(scope, webhook), number))
	if err != nil {
		return err
	}
	return refusalOf(readCode(re), errDeliveryNotFound)
}

func refusalOf(code int64, missing error) error {
	switch code {
	case schema.CodeNotFound:
		return missing
	case schema.CodeRefused:
		return errDisabled
	}
	return nil
}

// Redelivered is the result of RedeliverSince.
type Redelivered struct {
	Queued int
	Next   string // cursor from which to continue; "": that was all
	Gap    *events.Gap
}

// redeliverPages limits how many pages of events one call reads.
const redeliverPages = 10

// RedeliverSince sends all stored events since a time again that the webhook subscribes to. `after` is that time in RFC 3339, or the
// cursor of the previous call. It fails when the webhook does not exist, is disabled, or has a full queue.
func (s *Service) RedeliverSince(ctx context.Context, scope model.Scope, webhook, after string) (*Redelivered, error) {
	ctx = s.store.Within(ctx, 0)
	w, err := s.Get(ctx, scope, webhook)
	if err != nil {
		return nil, err
	}
	if !w.Settings.Enabled {
		return nil, errDisabled
	}
	share, err := s.share(ctx, scope.Tenant)
	if err != nil {
		return nil, err
	}
	r := s.ref(scope, webhook)
	done, suffix, began := &Redelivered{Next: after}, suffixOf(r.name), time.Now().UnixMilli()
	for range redeliverPages {
		page, err := s.events.List(ctx, events.Query{
			Filter: w.Settings.Filter, After: done.Next, Field: "pageToken", Size: events.MaxPage,
		})
		switch {
		case model.CodeOf(err) == model.Overloaded && done.Next != after:
			return done, nil // the next call continues
		case err != nil:
			return nil, err
		}
		if done.Gap == nil {
			done.Gap = page.Gap
		}
		if page.Next == done.Next || len(page.Events) > 0 && page.Events[0].Ms > began {
			done.Next = "" // later events are sent as they happen
			return done, nil
		}
		if done.Next = page.Next; len(page.Events) == 0 {
			continue
		}
		messages := make([]message, len(page.Events))
		for i, e := range page.Events {
			messages[i] = messageOf(e, suffix)
		}
		if _, err := s.push(ctx, r, pushArgs{last: ulid.Make().String(), most: share}, messages); err != nil {
			return nil, err
		}
		done.Queued += len(messages)
		if s.store.IsLate(ctx, nil) {
			break
		}
	}
	return done, nil
}

// Test sends a message that belongs to no event, and returns its delivery.
func (s *Service) Test(ctx context.Context, scope model.Scope, webhook string) (*Delivery, error) {
	ctx = s.store.Within(ctx, 0)
	r, now := s.ref(scope, webhook), time.Now()
	share, err := s.share(ctx, scope.Tenant)
	if err != nil {
		return nil, err
	}
	request := ulid.Make().String()
	m := ownMessage(scope, webhook, typeTest, "test_"+request+suffixOf(r.name), now, map[string]any{})
	number, err := s.push(ctx, r, pushArgs{last: request, most: share}, []message{m})
	if err != nil {
		return nil, err
	}
	return &Delivery{ID: deliveryPrefix + number, MessageID: m.id, Type: m.kind, Subject: m.subject, Status: Pending,
		CreatedAt: now.UTC(), NextAt: now.UTC()}, nil
}

// push adds messages to a queue for a request, and returns the number of the last one.
func (s *Service) push(ctx context.Context, r hookRef, a pushArgs, messages []message) (string, error) {
	for i := range messages {
		messages[i].entry = "0-0" // requests have no order
	}
	c := s.pushCall(r, a, messages)
	if s.store.DoDurably(ctx, "pushWebhook", c); c.Err != nil {
		return "", c.Err
	}
	reply := readPush(c.Reply)
	if err := refusalOf(reply.code, errNotFound); err != nil {
		return "", err
	}
	s.countPushed(reply)
	if reply.code == schema.CodeTerminal {
		return "", &model.Error{Code: model.Overloaded, TooMany: true, RetryAfter: time.Minute, Message: fmt.Sprintf(
			"the deliveries that wait for this webhook take the %d bytes that they may (what its tenant may have, divided among the tenant's "+
				"webhooks); wait until it has received some", a.most)}
	}
	return reply.newest, nil
}
