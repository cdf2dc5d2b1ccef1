package kubeclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const websiteFinalizer = "example.com/website"

var websites = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "websites"}

// websiteController does what examples/kube_controller.c does.
type websiteController struct {
	client dynamic.Interface
	stored cache.Indexer
	queue  workqueue.TypedRateLimitingInterface[string]
}

func startWebsiteController(t *testing.T, client dynamic.Interface) {
	t.Helper()
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	informer := factory.ForResource(websites).Informer()
	c := &websiteController{client: client, stored: informer.GetIndexer(),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())}
	add := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			c.queue.Add(key)
		}
	}
	handlers := cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, now any) { add(now) }, DeleteFunc: add}
	copies := factory.ForResource(configMaps).Informer()
	for _, informer := range []cache.SharedIndexInformer{informer, copies} {
		if _, err := informer.AddEventHandler(handlers); err != nil {
			t.Fatal(err)
		}
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	go c.work(t.Context())
	t.Cleanup(c.queue.ShutDown)
}

func (c *websiteController) work(ctx context.Context) {
	for {
		key, stopped := c.queue.Get()
		if stopped {
			return
		}
		object, exists, _ := c.stored.GetByKey(key)
		if !exists || c.reconcile(ctx, object.(*unstructured.Unstructured)) == nil {
			c.queue.Forget(key)
		} else {
			c.queue.AddRateLimited(key)
		}
		c.queue.Done(key)
	}
}

func (c *websiteController) patchFinalizers(ctx context.Context, website *unstructured.Unstructured, finalizers []string) error {
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": website.GetUID(), "resourceVersion": website.GetResourceVersion(), "finalizers": finalizers}})
	_, err := c.client.Resource(websites).Namespace(website.GetNamespace()).Patch(ctx, website.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

func (c *websiteController) reconcile(ctx context.Context, website *unstructured.Unstructured) error {
	copies := c.client.Resource(configMaps).Namespace(website.GetNamespace())
	name := website.GetName()
	has := len(website.GetFinalizers()) > 0
	if website.GetDeletionTimestamp() != nil {
		if err := copies.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !errors.IsNotFound(err) {
			return err
		}
		if has {
			return c.patchFinalizers(ctx, website, nil)
		}
		return nil
	}
	if !has {
		if err := c.patchFinalizers(ctx, website, []string{websiteFinalizer}); err != nil {
			return err
		}
	}
	text, _, _ := unstructured.NestedString(website.Object, "spec", "text")
	isTrue := true
	owner, _ := json.Marshal(metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Website", Name: name,
		UID: website.GetUID(), Controller: &isTrue, BlockOwnerDeletion: &isTrue})
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"ownerReferences":[%s]},"data":{"text":%q}}`, name, owner, text)
	if _, err := copies.Patch(ctx, name, types.ApplyPatchType, []byte(body),
		metav1.PatchOptions{FieldManager: "website-controller", Force: &isTrue}); err != nil {
		return err
	}
	if seen, _, _ := unstructured.NestedInt64(website.Object, "status", "observedGeneration"); seen == website.GetGeneration() {
		return nil
	}
	status := fmt.Appendf(nil, `{"status":{"observedGeneration":%d}}`, website.GetGeneration())
	_, err := c.client.Resource(websites).Namespace(website.GetNamespace()).Patch(ctx, name, types.MergePatchType, status, metav1.PatchOptions{}, "status")
	return err
}

// buildExample builds a program of examples/ with the library beside the server.
func buildExample(t *testing.T, name string) string {
	t.Helper()
	build := filepath.Dir(os.Getenv("VIGIL_BIN"))
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), name)
	flags := []string{"-o", program, root + "/examples/" + name + ".c", "-I" + root + "/include", "-L" + build, "-lvigil-kube", "-lvigil"}
	library, err := os.ReadFile(build + "/libvigil.so.1")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(library, []byte("__asan_init")) {
		flags = append(flags, "-fsanitize=address,undefined")
	}
	if output, err := exec.Command("cc", flags...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return program
}

func exampleEnvironment(s *server) []string {
	return []string{"LD_LIBRARY_PATH=" + filepath.Dir(os.Getenv("VIGIL_BIN")), "KUBECONFIG=" + s.dir + "/kubeconfig"}
}

func startWebsiteProgram(t *testing.T, s *server) {
	t.Helper()
	process := exec.Command(buildExample(t, "kube_controller"))
	process.Env = append(os.Environ(), exampleEnvironment(s)...)
	process.Stderr = os.Stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Process.Kill()
		process.Wait()
	})
}

// changeWebsites makes changes, some of them while the controller works on earlier ones, and returns when it has dealt with all.
func changeWebsites(t *testing.T, client dynamic.Interface) {
	t.Helper()
	resource := client.Resource(websites).Namespace("default")
	must := func(_ *unstructured.Unstructured, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	website := func(name, text string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Website",
			"metadata": map[string]any{"name": name}, "spec": map[string]any{"text": text}}}
	}
	for i := range 30 {
		must(resource.Create(t.Context(), website(fmt.Sprintf("w%02d", i), fmt.Sprintf("text \"%d\"", i)), metav1.CreateOptions{}))
	}
	for i := range 20 {
		patch := fmt.Appendf(nil, `{"spec":{"text":"changed %d"}}`, i)
		must(resource.Patch(t.Context(), fmt.Sprintf("w%02d", i), types.MergePatchType, patch, metav1.PatchOptions{}))
	}
	for i := range 10 {
		if err := resource.Delete(t.Context(), fmt.Sprintf("w%02d", i), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Resource(configMaps).Namespace("default").Delete(t.Context(), "w29", metav1.DeleteOptions{}); err != nil && !errors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// endState is what the controllers have made, without what differs between two servers.
func endState(t *testing.T, client dynamic.Interface) map[string]any {
	t.Helper()
	state := map[string]any{}
	for _, resource := range []schema.GroupVersionResource{websites, configMaps} {
		list, err := client.Resource(resource).Namespace("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			owners := item.GetOwnerReferences()
			for i := range owners {
				owners[i].UID = ""
			}
			state[resource.Resource+"/"+item.GetName()] = []any{item.Object["spec"], item.Object["data"], item.Object["status"],
				item.GetFinalizers(), item.GetGeneration(), owners}
		}
	}
	return state
}

func isComplete(state map[string]any) bool {
	for i := range 30 {
		for _, resource := range []string{"websites", "configmaps"} {
			name := fmt.Sprintf("%s/w%02d", resource, i)
			if _, is := state[name]; is != (i >= 10) {
				return false
			}
		}
	}
	return len(state) == 40
}

func TestControllersInCAndInGoReachTheSameState(t *testing.T) {
	definition, err := os.ReadFile("../../examples/kube_controller.json")
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(definition, &object); err != nil {
		t.Fatal(err)
	}
	inC, inGo := newServer(t), newServer(t)
	for _, s := range []*server{inC, inGo} {
		if _, err := s.client().Resource(definitions).Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	startWebsiteProgram(t, inC)
	startWebsiteController(t, inGo.client())
	changeWebsites(t, inC.client())
	changeWebsites(t, inGo.client())
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		stateInC, stateInGo := endState(t, inC.client()), endState(t, inGo.client())
		if isComplete(stateInC) && reflect.DeepEqual(stateInC, stateInGo) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("in C: %v\nin Go: %v", stateInC, stateInGo)
		}
	}
}
