package kubeclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// speaking is a client that uses only this version of HTTP.
func (s *server) speaking(t *testing.T, two bool) kubernetes.Interface {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!two)
	protocols.SetUnencryptedHTTP2(two)
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: "http://" + s.kube, Transport: &http.Transport{Protocols: protocols}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func status431(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusRequestHeaderFieldsTooLarge
}

// short cuts off the text of an error that contains its request.
func short(err error) string {
	text := fmt.Sprint(err)
	return text[:min(len(text), 200)] + "…" + text[max(0, len(text)-200):]
}

func TestRequestsBeyondTheLimitsGetProperErrors(t *testing.T) {
	server := newServer(t)
	for name, two := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			maps := server.speaking(t, two).CoreV1().ConfigMaps("default")
			for _, size := range []int{3500000, 5000000, 20000000} {
				large := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Data: map[string]string{"a": strings.Repeat("x", size)}}
				_, err := maps.Create(context.Background(), large, metav1.CreateOptions{})
				if !apierrors.IsRequestEntityTooLargeError(err) || err.Error() != "Request entity too large: limit is 3145728" {
					t.Error(size, err)
				}
			}
			list := func(letters int) error {
				selector := "a in (" + strings.Repeat("x", letters) + ")"
				_, err := maps.List(context.Background(), metav1.ListOptions{LabelSelector: selector})
				return err
			}
			if err := list(50000); !apierrors.IsBadRequest(err) { // no value of a label is that long
				t.Error(short(err))
			}
			// Over HTTP/2 the client knows our limit, as it knows that of a kube-apiserver.
			err, refused := list(100000), status431
			if two {
				refused = func(err error) bool { return strings.Contains(err.Error(), "larger than peer's advertised limit") }
			}
			if err == nil || !refused(err) {
				t.Error(short(err))
			}
			// The connection, or a new one, still serves.
			if _, err = maps.List(context.Background(), metav1.ListOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
}
