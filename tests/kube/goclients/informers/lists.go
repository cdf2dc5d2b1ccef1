package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

// listAll lists the same objects in many ways, and returns for each what it has found: objects in their order, or an error.
func listAll(ctx context.Context, json, protobuf clients) map[string]any {
	found := map[string]any{}
	for format, c := range map[string]clients{"json": json, "protobuf": protobuf} {
		kinds := map[string]func(context.Context, metav1.ListOptions) (runtime.Object, error){
			"configmaps": func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return c.typed.CoreV1().ConfigMaps("").List(ctx, options)
			},
			"configmaps of two": func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return c.typed.CoreV1().ConfigMaps("two").List(ctx, options)
			},
			"metadata of configmaps": func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return c.metadata.Resource(configMaps).List(ctx, options)
			},
			"lamps": func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return c.dynamic.Resource(lamps).List(ctx, options)
			},
		}
		for kind, list := range kinds {
			for name, options := range map[string]metav1.ListOptions{
				"current": {}, "any": {ResourceVersion: "0"}, "red": {LabelSelector: "color=red"},
				"any red": {LabelSelector: "color=red", ResourceVersion: "0"}, "m2": {FieldSelector: "metadata.name=m2"},
				"exact": {ResourceVersion: "1", ResourceVersionMatch: metav1.ResourceVersionMatchExact},
				"wrong": {LabelSelector: "=="}, "unknown": {FieldSelector: "spec.color=red"},
			} {
				for _, size := range []int64{0, 1, 3, 500} {
					found[fmt.Sprintf("%s %s %s %d", kind, format, name, size)] = listOne(ctx, list, options, size)
				}
			}
		}
	}
	return found
}

func listOne(ctx context.Context, list pager.ListPageFunc, options metav1.ListOptions, size int64) any {
	p := pager.New(list)
	p.PageSize = size
	if size == 0 {
		p.PageSize, p.FullListIfExpired = 2, false // a small page, and no other list if the token is too old
	}
	items := []any{}
	err := p.EachListItem(ctx, options, func(object runtime.Object) error {
		key, e := describe("", object)
		items = append(items, []string{key, e.Version, e.Digest})
		return nil
	})
	if err != nil {
		return fmt.Sprint(err)
	}
	// The same with one call for all, which puts the pages together.
	whole, paged, err := p.List(ctx, options)
	if err != nil {
		return fmt.Sprint(err)
	}
	count := meta.LenList(whole)
	return map[string]any{"items": items, "count": count, "paged": paged}
}
