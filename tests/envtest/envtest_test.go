// Tests of Vigil as the servers of controller-runtime's envtest: KUBEBUILDER_ASSETS names a directory with the links
// etcd and kube-apiserver, as `vigil assets` makes it. Nothing here knows of Vigil, so the same tests run on the real
// programs.
package envtest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const environments = 6

// limit bounds every wait of a test; nothing waits that long.
func limit(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func start(t *testing.T) *rest.Config {
	t.Helper()
	env := &envtest.Environment{}
	begun := time.Now()
	cfg, err := env.Start()
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Logf("started in %v", time.Since(begun))
	t.Cleanup(func() {
		begun := time.Now()
		if err := env.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		t.Logf("stopped in %v", time.Since(begun))
	})
	return cfg
}

func configMap(name string) *core.ConfigMap {
	return &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Namespace: "default", Name: name}}
}

func TestObjectsAreCreatedReadAndDeleted(t *testing.T) {
	ctx := limit(t)
	c, err := client.New(start(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var namespace core.Namespace
	if err := c.Get(ctx, client.ObjectKey{Name: "default"}, &namespace); err != nil {
		t.Fatal(err)
	}
	made := configMap("a")
	made.Data = map[string]string{"k": "v"}
	if err := c.Create(ctx, made); err != nil {
		t.Fatal(err)
	}
	var got core.ConfigMap
	if err := c.Get(ctx, client.ObjectKeyFromObject(made), &got); err != nil || got.Data["k"] != "v" {
		t.Fatalf("got %v, %v", got.Data, err)
	}
	if err := c.Delete(ctx, &got); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(made), &got); !errors.IsNotFound(err) {
		t.Fatalf("after the deletion: %v", err)
	}
}

func TestCachedClientSeesWhatWasCreated(t *testing.T) {
	ctx := limit(t)
	cfg := start(t)
	cached, err := cache.New(cfg, cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = cached.Start(ctx) }()
	informer, err := cached.GetInformer(ctx, &core.ConfigMap{})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 16)
	if _, err := informer.AddEventHandler(handler(seen)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{Cache: &client.CacheOptions{Reader: cached}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(ctx, configMap("watched")); err != nil {
		t.Fatal(err)
	}
	await(ctx, t, seen, "watched")
	var got core.ConfigMap
	if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "watched"}, &got); err != nil {
		t.Fatalf("the cached client does not have it: %v", err)
	}
}

func await(ctx context.Context, t *testing.T, seen <-chan string, name string) {
	t.Helper()
	for {
		select {
		case got := <-seen:
			if got == name {
				return
			}
		case <-ctx.Done():
			t.Fatalf("%s was not seen", name)
		}
	}
}

// A controller that labels config maps.
type labeler struct{ client.Client }

func (l labeler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var object core.ConfigMap
	if err := l.Get(ctx, request.NamespacedName, &object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if object.Labels["seen"] == "yes" {
		return ctrl.Result{}, nil
	}
	before := object.DeepCopy()
	object.Labels = map[string]string{"seen": "yes"}
	return ctrl.Result{}, l.Patch(ctx, &object, client.MergeFrom(before))
}

func TestManagerReconciles(t *testing.T) {
	ctx := limit(t)
	cfg := start(t)
	skip := true
	manager, err := ctrl.NewManager(cfg, ctrl.Options{
		Metrics:                 server.Options{BindAddress: "0"},
		LeaderElection:          true,
		LeaderElectionID:        "labeler",
		LeaderElectionNamespace: "default",
		Controller:              config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := ctrl.NewControllerManagedBy(manager).For(&core.ConfigMap{}).Complete(labeler{manager.GetClient()}); err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(running) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	}()
	c, err := client.NewWithWatch(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	events, err := c.Watch(ctx, &core.ConfigMapList{}, client.InNamespace("default"), client.MatchingLabels{"seen": "yes"})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	if err := c.Create(ctx, configMap("reconciled")); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case event := <-events.ResultChan():
			if object, ok := event.Object.(*core.ConfigMap); ok && object.Name == "reconciled" {
				return
			}
		case <-ctx.Done():
			t.Fatal("the object was not reconciled")
		}
	}
}

func TestEnvironmentsRunInParallel(t *testing.T) {
	var all sync.WaitGroup
	for i := range environments {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := useOne(fmt.Sprintf("only-%d", i)); err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
}

// useOne starts an environment, makes an object in it, and finds no other environment's.
func useOne(name string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	env := &envtest.Environment{}
	cfg, err := env.Start()
	if err != nil {
		return err
	}
	defer func() {
		if stopped := env.Stop(); err == nil {
			err = stopped
		}
	}()
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return err
	}
	if err := c.Create(ctx, configMap(name)); err != nil {
		return err
	}
	var all core.ConfigMapList
	if err := c.List(ctx, &all, client.InNamespace("default")); err != nil {
		return err
	}
	for _, object := range all.Items {
		if object.Name != name && object.Name != "kube-root-ca.crt" {
			return fmt.Errorf("%s also has %s", name, object.Name)
		}
	}
	return nil
}

func TestUsersAreAuthorized(t *testing.T) {
	ctx := limit(t)
	env := &envtest.Environment{}
	if _, err := env.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	}()
	user, err := env.AddUser(envtest.User{Name: "reader", Groups: []string{"readers"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(user.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(ctx, configMap("forbidden")); !errors.IsForbidden(err) {
		t.Fatalf("a user without roles: %v", err)
	}
}
