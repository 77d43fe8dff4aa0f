// Package client calls Lubdub: it creates, lists and cancels tasks, follows events, verifies webhooks, and sends heartbeats for attempts
// that this process works on. It needs the standard library only.
//
// [New] returns a client. Every call takes a context, is retried at the other addresses while that may help, and returns an [*Error] if
// Lubdub refuses it: errors.Is(err, client.ErrTaskNotFound).
//
// [Client.Run] does the work of one attempt and reports its start, heartbeats, progress and completion. [Client.Track] does the same
// without the completion. All attempts of a client share one heartbeat request, so a process needs only one client, however many attempts
// it works on. Package worker claims work automatically.
package client
