package kubeclient

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"testing"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

const protobuf = "application/vnd.kubernetes.protobuf"

type message interface {
	runtime.Object
	Unmarshal([]byte) error
}

func fetch(t *testing.T, s *server, path, accept string) (string, []byte) {
	t.Helper()
	request, _ := http.NewRequest("GET", "http://"+s.kube+path, nil)
	request.Header.Set("Accept", accept)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(path, response.Status, string(body), err)
	}
	return response.Header.Get("Content-Type"), body
}

func TestDiscoveryIsTheSameInProtobuf(t *testing.T) {
	s := newServer(t)
	defineHats(t, s.client())
	const v2 = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for _, row := range []struct {
		path, as    string
		first, same message
	}{
		{"/api", "", &metav1.APIVersions{}, &metav1.APIVersions{}},
		{"/apis", "", &metav1.APIGroupList{}, &metav1.APIGroupList{}},
		{"/apis/example.com", "", &metav1.APIGroup{}, &metav1.APIGroup{}},
		{"/apis/example.com/v1", "", &metav1.APIResourceList{}, &metav1.APIResourceList{}},
		{"/apis/apps/v1", "", &metav1.APIResourceList{}, &metav1.APIResourceList{}},
		{"/api/v1", "", &metav1.APIResourceList{}, &metav1.APIResourceList{}},
		{"/api", v2, &discoveryv2.APIGroupDiscoveryList{}, &discoveryv2.APIGroupDiscoveryList{}},
		{"/apis", v2, &discoveryv2.APIGroupDiscoveryList{}, &discoveryv2.APIGroupDiscoveryList{}},
	} {
		kind, body := fetch(t, s, row.path, "application/json"+row.as)
		if err := json.Unmarshal(body, row.first); err != nil || kind != "application/json"+row.as {
			t.Fatal(row.path, kind, err)
		}
		kind, body = fetch(t, s, row.path, protobuf+row.as+", */*")
		var unknown runtime.Unknown
		if kind != protobuf+row.as || unknown.Unmarshal(body[4:]) != nil || row.same.Unmarshal(unknown.Raw) != nil {
			t.Fatal(row.path, kind)
		}
		row.same.GetObjectKind().SetGroupVersionKind(unknown.GroupVersionKind())
		if !reflect.DeepEqual(row.first, row.same) {
			t.Errorf("%s%s:\n%+v\n%+v", row.path, row.as, row.first, row.same)
		}
	}
}

// Clients that are configured for protobuf request discovery documents in it, too.
func TestDiscoveryByClientsWithProtobuf(t *testing.T) {
	s := newServer(t)
	defineHats(t, s.client())
	for _, accept := range []string{"", protobuf, protobuf + ",application/json"} {
		client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: "http://" + s.kube,
			ContentConfig: rest.ContentConfig{ContentType: protobuf, AcceptContentTypes: accept}})
		if err != nil {
			t.Fatal(err)
		}
		groups, resources, err := client.ServerGroupsAndResources()
		if err != nil || len(groups) < 10 || len(resources) < 10 {
			t.Fatal(len(groups), len(resources), err)
		}
		list, err := client.ServerResourcesForGroupVersion("example.com/v1")
		if err != nil || len(list.APIResources) != 1 || list.APIResources[0].Kind != "Hat" {
			t.Fatal(list, err)
		}
	}
}
