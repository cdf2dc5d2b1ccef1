package kubeclient

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	hats        = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "hats"}
	oldHats     = schema.GroupVersionResource{Group: "example.com", Version: "v1beta1", Resource: "hats"}
)

func hatVersion(name string, storage bool) map[string]any {
	return map[string]any{"name": name, "served": true, "storage": storage, "schema": map[string]any{
		"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
			"spec": map[string]any{"type": "object", "properties": map[string]any{"v": map[string]any{"type": "string"}}}}}}}
}

func defineHats(t *testing.T, client dynamic.Interface) {
	t.Helper()
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "hats.example.com"},
		"spec": map[string]any{"group": "example.com", "scope": "Namespaced",
			"names":    map[string]any{"plural": "hats", "kind": "Hat"},
			"versions": []any{hatVersion("v1", true), hatVersion("v1beta1", false)}}}}
	if _, err := client.Resource(definitions).Create(context.Background(), definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func hat(name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Hat",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"v": value}}}
}

// followHats is an informer over custom resources in one of their versions.
func followHats(t *testing.T, s *server, version schema.GroupVersionResource) *follower {
	return followAll(t, s, version, func(u *unstructured.Unstructured) string {
		if u.GroupVersionKind() != version.GroupVersion().WithKind("Hat") {
			t.Errorf("%s is a %v", u.GetName(), u.GroupVersionKind())
		}
		value, _, _ := unstructured.NestedString(u.Object, "spec", "v")
		return value
	})
}

func TestInformerFollowsCustomResourcesInEveryVersion(t *testing.T) {
	s := newServer(t)
	client := s.client()
	defineHats(t, client)
	resource := client.Resource(hats).Namespace("default")
	make := func(name, value string) {
		t.Helper()
		if _, err := resource.Create(context.Background(), hat(name, value), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	change := func(name, value string) {
		t.Helper()
		patch := fmt.Appendf(nil, `{"spec":{"v":%q}}`, value)
		if _, err := resource.Patch(context.Background(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	make("before", "1")
	followers := []*follower{followHats(t, s, hats), followHats(t, s, oldHats)}
	// An informer that lists again sees only the last of several changes, so the test waits for each.
	seen := []string{"+1"}
	expect := func(more ...string) {
		t.Helper()
		seen = append(seen, more...)
		for _, f := range followers {
			f.expect(t, "a", seen...)
		}
	}
	make("a", "1")
	expect()
	change("a", "2")
	expect("=2")
	// The definition changes: watches end, and informers resume them.
	patch := []byte(`{"spec":{"names":{"shortNames":["ht"]}}}`)
	if _, err := client.Resource(definitions).Patch(context.Background(), "hats.example.com", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	change("a", "3")
	expect("=3")
	s.stop()
	s.start()
	change("a", "4")
	expect("=4")
	for _, f := range followers {
		f.expect(t, "before", "+1")
	}
	if err := client.Resource(definitions).Delete(context.Background(), "hats.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		_, err := client.Resource(definitions).Get(context.Background(), "hats.example.com", metav1.GetOptions{})
		if err != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the definition is not deleted")
		}
	}
}

// answers records the formats of a server's answers.
type answers struct {
	lock  sync.Mutex
	types map[string]string
}

func (a *answers) wrap(below http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := below.RoundTrip(request)
		if err == nil {
			what := request.Method
			if request.URL.Query().Get("watch") != "" {
				what = "watch"
			}
			a.lock.Lock()
			a.types[what], _, _ = strings.Cut(response.Header.Get("Content-Type"), ";")
			a.lock.Unlock()
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// The garbage collector and others follow the metadata of all kinds, in protobuf if possible.
func TestInformerFollowsMetadataOfCustomResourcesInProtobuf(t *testing.T) {
	s := newServer(t)
	defineHats(t, s.client())
	resource := s.client().Resource(hats).Namespace("default")
	if _, err := resource.Create(context.Background(), hat("before", "1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	formats := &answers{types: map[string]string{}}
	client, err := metadata.NewForConfig(&rest.Config{Host: "http://" + s.kube, WrapTransport: formats.wrap})
	if err != nil {
		t.Fatal(err)
	}
	factory := metadatainformer.NewSharedInformerFactory(client, 0)
	informer := factory.ForResource(hats).Informer()
	ctx, cancel := context.WithCancel(context.Background())
	factory.Start(ctx.Done())
	t.Cleanup(func() { cancel(); factory.Shutdown() })
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer does not sync")
	}
	labelOf := func(name string) string {
		object, there, _ := informer.GetStore().GetByKey("default/" + name)
		if !there {
			return "gone"
		}
		return object.(*metav1.PartialObjectMetadata).Labels["l"]
	}
	expect := func(name, label string) {
		t.Helper()
		for end := time.Now().Add(patience); labelOf(name) != label; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s has %q and not %q", name, labelOf(name), label)
			}
		}
	}
	expect("before", "")
	for _, label := range []string{"1", "2"} {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"l":%q}}}`, label)
		made, err := client.Resource(hats).Namespace("default").Patch(context.Background(), "before", types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil || made.Labels["l"] != label || made.UID == "" {
			t.Fatal(made, err)
		}
		expect("before", label)
	}
	if list, err := client.Resource(hats).List(context.Background(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 || list.Items[0].UID == "" {
		t.Fatal(list, err)
	}
	if err := client.Resource(hats).Namespace("default").Delete(context.Background(), "before", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("before", "gone")
	formats.lock.Lock()
	defer formats.lock.Unlock()
	for _, what := range []string{"watch", "GET", "PATCH"} {
		if formats.types[what] != "application/vnd.kubernetes.protobuf" {
			t.Errorf("%s was answered in %q", what, formats.types[what])
		}
	}
}
