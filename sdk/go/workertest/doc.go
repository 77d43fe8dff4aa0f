// Package workertest is a Lubdub server for tests of programs that use packages client and worker: in memory, with a clock that the
// test controls, and with simulated failures. It implements tasks, workers and leases as in the contract, but not lists, schedules,
// events and webhooks.
//
//	s := workertest.New(t)
//	c, err := client.New(s.URL(), s.Options()...)
//	id := s.Enqueue(v1.CreateTaskRequest{Queue: "default", Type: "send_email"})
//	…
//	s.Until("the task is done", func() bool { return s.Task(id).State == v1.Succeeded })
package workertest
