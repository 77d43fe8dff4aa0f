package conn

import (
	"sync"

	"github.com/lubdub-io/lubdub/internal/shares"
)

// Member is a token, or a tenant, with connections. A connection belongs to the first valid token that it has shown. A stranger's
// connection belongs to none.
type Member struct {
	tenant *Member // of a token; nil: this is a tenant
	name   string
	open   int                // connections
	tokens map[string]*Member // of a tenant
}

// surplus is the member of connections that showed a valid token after the limit was reached, when no other connection could be closed
// for them. Like connections without a token, they are the first to be closed.
var surplus = new(Member)

// members are the tokens and tenants with connections.
type members struct {
	mu      sync.Mutex
	open    int // connections of all members
	tenants map[string]*Member
}

// join counts a connection for its holder.
func (m *members) join(h shares.Holder) *Member {
	m.mu.Lock()
	defer m.mu.Unlock()
	tenant := m.tenants[h.Tenant]
	if tenant == nil {
		tenant = &Member{name: h.Tenant, tokens: map[string]*Member{}}
		if m.tenants == nil {
			m.tenants = map[string]*Member{}
		}
		m.tenants[h.Tenant] = tenant
	}
	token := tenant.tokens[h.Token]
	if token == nil {
		token = &Member{tenant: tenant, name: h.Token}
		tenant.tokens[h.Token] = token
	}
	token.open++
	tenant.open++
	m.open++
	return token
}

// leave undoes join. For nil and surplus, which have not joined, it does nothing.
func (m *members) leave(token *Member) {
	if token == nil || token == surplus {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	tenant := token.tenant
	m.open--
	if token.open--; token.open == 0 {
		delete(tenant.tokens, token.name)
	}
	if tenant.open--; tenant.open == 0 {
		delete(m.tenants, tenant.name)
	}
}

// count returns how many connections all members have.
func (m *members) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open
}

// of returns how many connections a token and its tenant have.
func (m *members) of(token *Member) (byToken, byTenant int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return token.open, token.tenant.open
}
