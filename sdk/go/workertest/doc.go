// Package workertest is a Lubdub server for tests of programs that use packages client and worker: in memory, with a clock in the
// test's hand, and with everything at hand that goes wrong in life. It keeps tasks, workers and leases as the contract has them;
// lists, schedules, events and webhooks it has not.
//
//	s := workertest.New(t)
//	c, err := client.New(s.URL(), s.Options()...)
//	id := s.Enqueue(v1.CreateTaskRequest{Queue: "default", Type: "send_email"})
//	…
//	s.Until("the task is done", func() bool { return s.Task(id).State == v1.Succeeded })
package workertest
