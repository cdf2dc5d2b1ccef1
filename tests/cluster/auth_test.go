package cluster

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3"

	"vigil/tests/harness"
)

const rightsLimit = time.Second // for which the front may use an answer about a caller's rights

// users adds root, Vigil's own user, and anna and ben, who may read and write below a/ and b/.
func (f *fixture) users() {
	f.Helper()
	own := func(_ any, err error) {
		f.Helper()
		f.must(err)
	}
	for name, prefix := range map[string]string{"anna": "a/", "ben": "b/"} {
		own(f.direct.RoleAdd(f.ctx, name))
		own(f.direct.RoleGrantPermission(f.ctx, name, prefix, clientv3.GetPrefixRangeEnd(prefix),
			clientv3.PermissionType(clientv3.PermReadWrite)))
	}
	for _, name := range []string{"root", "vigil", "anna", "ben"} {
		own(f.direct.UserAdd(f.ctx, name, name+"pw"))
	}
	for name, role := range map[string]string{"root": "root", "vigil": "root", "anna": "anna", "ben": "ben"} {
		own(f.direct.UserGrantRole(f.ctx, name, role))
	}
}

// authFixture has users, and a front that was started before authentication was enabled.
func authFixture(t *testing.T, binary string, args ...string) *fixture {
	t.Helper()
	front := harness.FrontOptions{}
	if harness.IsVigil() {
		front.Args = append([]string{"--upstream-user", "vigil:vigilpw"}, args...)
	}
	f := newFixture(t, harness.ClusterOptions{Binary: binary, Args: []string{"--bcrypt-cost", "4"}}, front)
	f.users()
	return f
}

// enable enables authentication, and waits for as long as answers about rights may be used.
func (f *fixture) enable() {
	f.Helper()
	_, err := f.direct.AuthEnable(f.ctx)
	f.must(err)
	time.Sleep(2 * rightsLimit)
}

// try is what reads, writes and watches of a range end with.
func (f *fixture) try(client *clientv3.Client, key string) map[string]string {
	f.Helper()
	ends := map[string]string{}
	note := func(name string, err error) {
		ends[name] = refusal(err)
		if err == nil {
			ends[name] = "permitted"
		}
	}
	_, err := client.Get(f.ctx, key)
	note("get", err)
	_, err = client.Get(f.ctx, key, clientv3.WithSerializable())
	note("serializable get", err)
	_, err = client.Get(f.ctx, key, clientv3.WithPrefix())
	note("get of a prefix", err)
	_, err = client.Put(f.ctx, key, "v")
	note("put", err)
	_, err = client.Txn(f.ctx).Then(clientv3.OpGet(key), clientv3.OpPut(key, "v")).Commit()
	note("transaction", err)
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	answer := <-client.Watch(ctx, key, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	note("watch", answer.Err())
	return ends
}

// Callers may do through the front what they may do directly, and no more, whatever others did there
// before them.
func TestCallersHaveTheirOwnRights(t *testing.T) {
	onEach(t, func(t *testing.T, binary string) {
		f := authFixture(t, binary)
		f.put(f.direct, "a/1", "secret")
		f.put(f.direct, "b/1", "secret")
		f.enable()
		root := f.clientAs("root", "rootpw", f.front.URL)
		for range 3 {
			for _, key := range []string{"a/1", "b/1", "c"} {
				for how, end := range f.try(root, key) {
					f.wantSame("root: "+how+" of "+key, end, "permitted")
				}
				for _, user := range []string{"anna", "ben"} {
					via, direct := f.clientAs(user, user+"pw", f.front.URL), f.clientAs(user, user+"pw", f.cluster.Members[0].URL)
					f.wantSame(user+": "+key, f.try(via, key), f.try(direct, key))
				}
				f.wantSame("nobody: "+key, f.try(f.client(f.front.URL), key), f.try(f.client(f.cluster.Members[0].URL), key))
			}
		}
	})
}

// A running watch is canceled, and reads are refused, soon after the permission is revoked or the user
// deleted. A watch of another user of the same range continues.
func TestRightsAreTakenBack(t *testing.T) {
	if !harness.IsVigil() {
		t.Skip("etcd does not check running watches")
	}
	take := map[string]func(f *fixture, root *clientv3.Client) error{
		"user deleted": func(f *fixture, root *clientv3.Client) error {
			_, err := root.UserDelete(f.ctx, "anna")
			return err
		},
		"permission revoked": func(f *fixture, root *clientv3.Client) error {
			_, err := root.RoleRevokePermission(f.ctx, "anna", "a/", clientv3.GetPrefixRangeEnd("a/"))
			return err
		},
		"role revoked": func(f *fixture, root *clientv3.Client) error {
			_, err := root.UserRevokeRole(f.ctx, "anna", "anna")
			return err
		},
	}
	outside := map[string]func(f *fixture, root *clientv3.Client) error{}
	for name, how := range take {
		outside[name+" outside of the prefixes"] = how
	}
	outside["permission for a long range revoked"] = take["permission revoked"]
	maps.Copy(take, outside)
	for name, how := range take {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, binary string) {
				var args []string
				if strings.Contains(name, "outside") {
					args = []string{"--upstream-prefix", "mirrored/"}
				}
				f := authFixture(t, binary, args...)
				f.put(f.direct, "a/1", "1")
				f.enable()
				root := f.clientAs("root", "rootpw", f.front.URL)
				anna := f.clientAs("anna", "annapw", f.front.URL)
				within := clientv3.WithPrefix()
				if strings.Contains(name, "long") {
					within = clientv3.WithRange("a/" + strings.Repeat("z", 9<<10))
				}
				hers := anna.Watch(f.ctx, "a/", within, clientv3.WithCreatedNotify())
				others := root.Watch(f.ctx, "a/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
				<-hers
				<-others
				revision := f.put(root, "a/1", "2")
				f.follow(hers, revision, revision)
				f.must(how(f, root))
				f.eventually("the refusal of a read", func() bool {
					_, err := anna.Get(f.ctx, "a/1")
					return err != nil
				})
				if last := f.last(hers); last == nil {
					t.Error("the watch ended without a reason")
				} else {
					t.Logf("the watch ended: %v", last)
				}
				next := f.put(root, "a/1", "3")
				f.follow(others, revision, next)
			})
		})
	}
}

// last reads a watch until it ends, and returns why.
func (f *fixture) last(events clientv3.WatchChan) error {
	f.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case answer, open := <-events:
			if !open {
				return fmt.Errorf("closed")
			}
			if err := answer.Err(); err != nil {
				return err
			}
		case <-limit:
			f.Fatal("the watch continues")
		}
	}
}

// Authentication is enabled and disabled again while clients without a user work: they are refused as
// directly, and the front's own mirror is never interrupted.
func TestAuthenticationIsEnabled(t *testing.T) {
	onEach(t, func(t *testing.T, binary string) {
		f := authFixture(t, binary)
		f.put(f.via, "k", "1")
		f.enable()
		f.eventually("refusals as directly", func() bool {
			return fmt.Sprint(f.try(f.via, "k")) == fmt.Sprint(f.try(f.direct, "k"))
		})
		root := f.clientAs("root", "rootpw", f.front.URL)
		revision := f.put(root, "k", "2")
		answer, err := root.Get(f.ctx, "k", clientv3.WithSerializable())
		f.must(err)
		if answer.Header.Revision < revision {
			t.Errorf("a client does not read what it wrote: %d is below %d", answer.Header.Revision, revision)
		}
		_, err = root.AuthDisable(f.ctx)
		f.must(err)
		f.eventually("permission for all", func() bool {
			_, err := f.via.Get(f.ctx, "k")
			return err == nil
		})
		f.follow(f.via.Watch(f.ctx, "k", clientv3.WithRev(revision)), revision, f.put(f.via, "k", "3"))
	})
}

// The past that is older than the mirror is read in the front's own name, on connections that it may
// have made before authentication was enabled.
func TestPastAfterAuthenticationIsEnabled(t *testing.T) {
	onEach(t, func(t *testing.T, binary string) {
		f := authFixture(t, binary)
		const clients = 4 // on both threads of the front
		for range clients {
			_, err := f.clientAs("", "", f.front.URL).Get(f.ctx, "k")
			f.must(err)
		}
		last := f.put(f.via, "k", "1")
		f.enable()
		for range clients {
			root := f.clientAs("root", "rootpw", f.front.URL)
			f.follow(root.Watch(f.ctx, "k", clientv3.WithRev(1)), 2, last)
		}
	})
}
