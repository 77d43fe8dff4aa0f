// Package api is the HTTP server of Lubdub, on fasthttp: its configuration, listeners, connections, shutdown and the pages for
// operators. It knows nothing of Redis.
//
// It mounts the packages of routes (beats, tasks, workers, queues, events, schedules, webhooks, system). Each contains the handlers of
// one resource and declares the interfaces that it needs of the domain; exchange combines some of them. All requests go through httpapi;
// convert is shared. The heartbeat of one task is recognised before routing, see Handler.
package api
