package kubeclient

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Decoded and encoded by Kubernetes' own types, a document must be the same as before.
func roundTrip(t *testing.T, path string, body []byte, document any) {
	t.Helper()
	if err := json.Unmarshal(body, document); err != nil {
		t.Fatal(path, err)
	}
	again, err := json.Marshal(document)
	if err != nil {
		t.Fatal(path, err)
	}
	var first, second any
	if json.Unmarshal(body, &first) != nil || json.Unmarshal(again, &second) != nil {
		t.Fatal(path, "is not JSON")
	}
	different(t, path, first, second)
}

// Names the first place of each difference.
func different(t *testing.T, at string, first, second any) {
	t.Helper()
	a, isMap := first.(map[string]any)
	b, areMaps := second.(map[string]any)
	if !isMap || !areMaps {
		if !reflect.DeepEqual(first, second) {
			t.Errorf("%s: %.300v became %.300v", at, first, second)
		}
		return
	}
	for key := range a {
		different(t, at+" "+key, a[key], b[key])
	}
	for key := range b {
		if _, known := a[key]; !known {
			t.Errorf("%s: %s was added", at, key)
		}
	}
}

func TestOpenAPIDocumentsSurviveDecoding(t *testing.T) {
	s := newServer(t)
	defineHats(t, s.client())
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	_, body := fetch(t, s, "/openapi/v3", "application/json")
	if err := json.Unmarshal(body, &index); err != nil || len(index.Paths) < 20 {
		t.Fatal(string(body), err)
	}
	for path, row := range index.Paths {
		_, body := fetch(t, s, row.ServerRelativeURL, "application/json")
		var document spec3.OpenAPI
		roundTrip(t, path, body, &document)
		checkLists(t, &document)
	}
	_, body = fetch(t, s, "/openapi/v2", "application/json")
	roundTrip(t, "v2", body, &spec.Swagger{})
}

// A list answers with the type of the list.
func checkLists(t *testing.T, document *spec3.OpenAPI) {
	t.Helper()
	for path, item := range document.Paths.Paths {
		if item.Get == nil || item.Get.Extensions["x-kubernetes-action"] != "list" {
			continue
		}
		content := item.Get.Responses.StatusCodeResponses[200].Content
		if content == nil {
			continue // of a custom resource
		}
		name := content["application/json"].Schema.AllOf[0].Ref.String()
		model := document.Components.Schemas[strings.TrimPrefix(name, "#/components/schemas/")]
		if model == nil {
			t.Errorf("%s: %s is not in the document", path, name)
		} else if _, has := model.Properties["items"]; !has || !strings.HasSuffix(name, "List") {
			t.Errorf("%s: %s is not a list", path, name)
		}
	}
}
