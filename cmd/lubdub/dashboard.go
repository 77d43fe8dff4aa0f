package main

import "net/url"

// dashboardURL is the address of the dashboard of a server, with what signs its user in. That stands in the fragment, which browsers
// send to nobody.
func dashboardURL(server, token, tenant, workspace string) string {
	signIn := url.Values{"token": {token}}
	if tenant != "" && workspace != "" {
		signIn.Set("tenantId", tenant)
		signIn.Set("workspaceId", workspace)
	}
	return server + "/ui/#" + signIn.Encode()
}
