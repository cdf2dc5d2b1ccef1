// Program recorder does random operations on config maps with client-go and prints each as a line of JSON, in the form that
// tests/histories/op.go describes:
//
//	recorder URL START SECONDS CLIENTS SEED
//
// START is a time of CLOCK_MONOTONIC in nanoseconds. When all operations are done, a line "done" follows. Then the program
// reads a line, waits until its informers have what the server has, and prints what they received.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	cellNanos   = int64(500e6)
	keysPerCell = 3
	callLimit   = 1500 * time.Millisecond
	settleLimit = time.Minute
	registry    = "/registry/configmaps/default/"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

type object map[string]any

var printing sync.Mutex

func print(line any) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	printing.Lock()
	defer printing.Unlock()
	os.Stdout.Write(append(text, '\n'))
}

func now() int64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}

// worker is one client with one operation at a time.
type worker struct {
	objects    dynamic.ResourceInterface
	number     int
	count      int
	random     *rand.Rand
	start, end int64
	versions   map[string]string // resourceVersions that this client has seen
}

func connect(url string) dynamic.ResourceInterface {
	client, err := dynamic.NewForConfig(&rest.Config{Host: url, QPS: -1})
	if err != nil {
		panic(err)
	}
	return client.Resource(configMaps).Namespace("default")
}

func (w *worker) run() {
	for now() < w.end {
		w.count++
		cell := (now() - w.start) / cellNanos
		name := fmt.Sprintf("c%d-%d", cell, w.random.Intn(keysPerCell))
		ok := false
		switch w.random.Intn(10) {
		case 0, 1:
			ok = w.create(cell, name)
		case 2, 3, 4:
			ok = w.update(cell, name, w.versions[name])
		case 5:
			ok = w.update(cell, name, "")
		case 6:
			ok = w.remove(name)
		case 7:
			ok = w.list(cell)
		default:
			ok = w.get(name)
		}
		if !ok {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func (w *worker) value() string { return fmt.Sprintf("op-%d-%d", w.number, w.count) }

func (w *worker) configMap(cell int64, name, version string) *unstructured.Unstructured {
	metadata := map[string]any{"name": name, "labels": map[string]any{"cell": fmt.Sprint(cell)}}
	if version != "" {
		metadata["resourceVersion"] = version
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
		"data": map[string]any{"v": w.value()}}}
}

func versionOf(text string) int64 {
	version, _ := strconv.ParseInt(text, 10, 64)
	return version
}

func keyValue(u *unstructured.Unstructured) object {
	value, _, _ := unstructured.NestedString(u.Object, "data", "v")
	return object{"key": registry + u.GetName(), "value": value, "mod": versionOf(u.GetResourceVersion())}
}

// record prints an operation. It returns false if it was not answered.
func (w *worker) record(kind string, call int64, err error, fields object) bool {
	line := object{"client": fmt.Sprint("k", w.number), "op": kind, "call": call, "return": now(), "outcome": "ok"}
	for name, field := range fields {
		line[name] = field
	}
	if err != nil {
		line["error"] = err.Error()
		line["outcome"] = "unknown"
		if apierrors.IsTooManyRequests(err) {
			line["outcome"] = "refused"
		}
	}
	print(line)
	return err == nil
}

func limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), callLimit)
}

func (w *worker) create(cell int64, name string) bool {
	ctx, cancel := limited()
	defer cancel()
	call := now()
	made, err := w.objects.Create(ctx, w.configMap(cell, name, ""), metav1.CreateOptions{})
	exists := apierrors.IsAlreadyExists(err)
	if exists {
		err = nil
	}
	return w.written("kube create", call, name, made, err, !exists, object{"field": "version", "relation": "="})
}

// update replaces an object, if it still has the version unless that is empty.
func (w *worker) update(cell int64, name, version string) bool {
	ctx, cancel := limited()
	defer cancel()
	condition := object{"field": "version", "relation": ">"}
	if version != "" {
		condition = object{"field": "mod", "relation": "=", "number": versionOf(version)}
	}
	call := now()
	made, err := w.objects.Update(ctx, w.configMap(cell, name, version), metav1.UpdateOptions{})
	different := apierrors.IsNotFound(err) || apierrors.IsConflict(err) && version != ""
	if different {
		err = nil
		delete(w.versions, name)
	}
	return w.written("kube update", call, name, made, err, !different, condition)
}

func (w *worker) written(kind string, call int64, name string, made *unstructured.Unstructured, err error, succeeded bool, condition object) bool {
	condition["key"] = registry + name
	fields := object{"if": []object{condition}, "then": []object{{"kind": "put", "key": registry + name, "value": w.value()}}}
	if err == nil && succeeded {
		w.versions[name] = made.GetResourceVersion()
		fields["succeeded"], fields["revision"] = true, versionOf(made.GetResourceVersion())
	}
	return w.record(kind, call, err, fields)
}

func (w *worker) remove(name string) bool {
	ctx, cancel := limited()
	defer cancel()
	call := now()
	err := w.objects.Delete(ctx, name, metav1.DeleteOptions{})
	deleted := 1
	if apierrors.IsNotFound(err) {
		deleted, err = 0, nil
	}
	return w.record("kube delete", call, err, object{"succeeded": true, "results": []object{{"deleted": deleted}},
		"then": []object{{"kind": "delete", "key": registry + name}}})
}

func (w *worker) get(name string) bool {
	ctx, cancel := limited()
	defer cancel()
	call := now()
	u, err := w.objects.Get(ctx, name, metav1.GetOptions{})
	kvs := []object{}
	if apierrors.IsNotFound(err) {
		err = nil
	} else if err == nil {
		kvs = append(kvs, keyValue(u))
		w.versions[name] = u.GetResourceVersion()
	}
	return w.record("kube get", call, err, object{"succeeded": true, "results": []object{{"kvs": kvs}},
		"then": []object{{"kind": "get", "key": registry + name}}})
}

func (w *worker) list(cell int64) bool {
	ctx, cancel := limited()
	defer cancel()
	call := now()
	list, err := w.objects.List(ctx, metav1.ListOptions{LabelSelector: fmt.Sprintf("cell=%d", cell)})
	fields := object{"succeeded": true, "then": []object{{"kind": "get", "prefix": true, "key": fmt.Sprintf("%sc%d-", registry, cell)}}}
	if err == nil {
		kvs := []object{}
		for i := range list.Items {
			kvs = append(kvs, keyValue(&list.Items[i]))
		}
		fields["results"], fields["revision"] = []object{{"kvs": kvs}}, versionOf(list.GetResourceVersion())
	}
	return w.record("kube list", call, err, fields)
}

func main() {
	if len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: recorder URL START SECONDS CLIENTS SEED")
		os.Exit(2)
	}
	var numbers [4]int64
	for i := range numbers {
		numbers[i], _ = strconv.ParseInt(os.Args[i+2], 10, 64)
	}
	start, clients, seed := numbers[0], int(numbers[2]), numbers[3]
	end := start + numbers[1]*int64(time.Second)
	f := follow(os.Args[1])
	var done sync.WaitGroup
	for n := range clients {
		w := &worker{objects: connect(os.Args[1]), number: n, random: rand.New(rand.NewSource(seed + int64(n))),
			start: start, end: end, versions: map[string]string{}}
		done.Go(w.run)
	}
	done.Wait()
	fmt.Println("done")
	bufio.NewReader(os.Stdin).ReadString('\n')
	if !f.finish(connect(os.Args[1])) {
		os.Exit(1)
	}
}
