// What programs that use Lubdub link: wire types, client and worker. A module of its own, which needs the standard library
// only, so that no user's Go version or dependency is lifted by ours.
module github.com/lubdub-io/lubdub/sdk/go

go 1.24
