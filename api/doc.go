// Package api is the HTTP server of Lubdub, on fasthttp: its configuration, listeners, connections, shutdown and the pages for
// operators. It knows no Redis.
//
// It mounts the packages of routes (beats, tasks, workers, queues, events, schedules, webhooks, system), each of which has the
// handlers of a resource and declares what it needs of the domain. They stand on httpapi, which all requests go through, and share
// convert. The heartbeat of one task is recognised before any routing, see Handler.
package api
