// Package client calls Lubdub: it creates, lists and cancels tasks, follows events, verifies webhooks, and keeps attempts
// alive that this process works on. It needs the standard library only.
//
// [New] makes a client. Every call takes a context, tries the other addresses and comes again while that may help, and returns
// an [*Error] where Lubdub refuses: errors.Is(err, client.ErrTaskNotFound).
//
// [Client.Run] does the work of one attempt and tells Lubdub about it: that it has started, that it lives, how far it has come,
// and how it has ended. [Client.Track] is the same for whoever wants to complete it themselves. All attempts of a client
// share one beat, so that a process has one client, however many attempts it works on. Package worker claims work by itself.
package client
