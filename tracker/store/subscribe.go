package store

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// subscribe receives what scripts publish on a channel until ctx ends. Its first function is called at the start and after every
// reconnect, since messages may have been missed. On Cluster one node is enough: messages reach all of them.
func (s *servers) subscribe(ctx context.Context, channel string, onConnect func(), onMessage func(payload string)) {
	var sub *redis.PubSub
	if s.cluster != nil {
		sub = s.cluster.Subscribe(ctx, channel)
	} else {
		sub = s.single.Subscribe(ctx, channel)
	}
	defer func() { _ = sub.Close() }()
	messages := sub.ChannelWithSubscriptions()
	for {
		select {
		case <-ctx.Done():
			return
		case m, ok := <-messages:
			if !ok {
				return
			}
			switch m := m.(type) {
			case *redis.Subscription:
				onConnect()
			case *redis.Message:
				onMessage(m.Payload)
			}
		}
	}
}
