package kubeclient

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// apiWriter changes objects through the Kubernetes API, and knows which exist at which version.
type apiWriter struct {
	t       *testing.T
	objects dynamic.ResourceInterface
	there   map[string]int64
	count   int
}

// step deletes, creates or changes one of a few objects in turn, with a value that soon fills the history.
func (w *apiWriter) step() {
	w.t.Helper()
	w.count++
	ctx, name := context.Background(), fmt.Sprintf("c%02d", w.count%objects)
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name}, "data": map[string]any{"v": fmt.Sprint(w.count) + strings.Repeat("x", 1000)}}}
	_, there := w.there[name]
	var made *unstructured.Unstructured
	var err error
	switch {
	case there && w.count%5 == 0:
		err = w.objects.Delete(ctx, name, metav1.DeleteOptions{})
		delete(w.there, name)
	case there:
		made, err = w.objects.Update(ctx, object, metav1.UpdateOptions{})
	default:
		made, err = w.objects.Create(ctx, object, metav1.CreateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if made != nil {
		_, w.there[name] = versionOf(made)
	}
}

// isGone says whether history since the version has been compacted.
func (w *apiWriter) isGone(version int64) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	watcher, err := w.objects.Watch(ctx, metav1.ListOptions{ResourceVersion: fmt.Sprint(version)})
	if err != nil {
		return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
	}
	defer watcher.Stop()
	event := <-watcher.ResultChan() // there are later changes
	err = apierrors.FromObject(event.Object)
	return event.Type == watch.Error && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err))
}

func TestInformersLoseNothingWhenHistoryIsCompactedWhileDisconnected(t *testing.T) {
	s := newServerWith(t, "http", "--kube-history", "1s", "--kube-history-bytes", "20000")
	p := newProxy(t, s.kube, 0)
	w := &apiWriter{t: t, objects: s.client().Resource(configMaps).Namespace("default"), there: map[string]int64{}}
	views := viewsThrough(t, s, p)
	stop := make(chan struct{})
	defer close(stop)
	for range 2 * objects {
		w.step()
	}
	for _, v := range views {
		v.start(t, stop)
	}
	checkViews(t, views, w.there)
	for range 2 {
		w.step()
		var last int64
		for _, version := range w.there {
			last = max(last, version)
		}
		p.shutFor(func() {
			for end := time.Now().Add(patience); ; {
				w.step()
				if w.isGone(last) {
					break
				}
				if time.Now().After(end) {
					t.Fatal("nothing is compacted")
				}
			}
			for range objects / 2 {
				w.step()
			}
		})
		checkViews(t, views, w.there)
	}
	t.Logf("%d changes", w.count)
}
