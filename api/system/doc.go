// Package system answers the routes about the deployment, tokens and this server, and shows the pages for people: the index, the
// documentation and the dashboard.
package system
