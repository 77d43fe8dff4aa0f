package main

import "net/http"

// alwaysExchanges sends exchanges to servers that do not have them.
func alwaysExchanges(c *call) (*reply, error) {
	a, err := c.send()
	if err == nil && c.kind == "workers" {
		a.out["capabilities"] = []any{"exchange"}
	}
	return a, err
}

// oneResult takes an exchange that is answered for the acceptance of each completion in it.
func oneResult(c *call) (*reply, error) {
	a, err := c.send()
	if err == nil && c.kind == "exchange" {
		for _, result := range list(a.out, "completed") {
			if result["status"] != float64(http.StatusOK) {
				result["status"], result["finalState"] = http.StatusOK, "SUCCEEDED"
			}
		}
	}
	return a, err
}

// noFallback takes the refusal of an exchange for that of each completion in it.
func noFallback(c *call) (*reply, error) {
	a, err := c.send()
	if err != nil || c.kind != "exchange" || a.status/100 != 4 {
		return a, err
	}
	var results []any
	for _, item := range list(c.in, "completed") {
		results = append(results, map[string]any{"taskId": item["taskId"], "status": a.status, "error": a.out["error"]})
	}
	return forged(map[string]any{"completed": results, "tasks": []any{}}), nil
}

// repeatsExchanges sends an exchange that was not answered, or answered 503, again as it was.
func repeatsExchanges(c *call) (*reply, error) {
	a, err := c.send()
	if c.kind == "exchange" && (err != nil || a.status == http.StatusServiceUnavailable) {
		return c.send()
	}
	return a, err
}

// workersToken sends all completions with the token of the worker.
func workersToken(c *call) (*reply, error) {
	c.mu.Lock()
	if c.kind == "exchange" {
		c.tokens[c.kind] = c.req.Header.Get("Authorization")
	}
	if token := c.tokens["exchange"]; token != "" && c.kind == "completed" {
		c.req.Header.Set("Authorization", token)
	}
	c.mu.Unlock()
	return c.send()
}
