package main

import (
	"fmt"
	"math/rand"
	"reflect"
	"time"

	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

func addTypes() { must(extensions.AddToScheme(scheme.Scheme)) }

// Fills Go values with random content; most fields stay zero.
type filler struct{ r *rand.Rand }

var words = []string{"", "a", "b", "web", "c1", "c2", "c3", "Häuser", "x\"y\\z\n", "<&>", "metadata", "80"}

func (f *filler) word() string { return words[f.r.Intn(len(words))] }

func (f *filler) special(v reflect.Value) bool {
	switch p := v.Addr().Interface().(type) {
	case *meta.TypeMeta:
	case *meta.Time:
		if f.r.Intn(4) > 0 {
			*p = meta.NewTime(time.Unix(f.r.Int63n(4e9)-1e9, 0))
		}
	case *meta.MicroTime:
		if f.r.Intn(4) > 0 {
			*p = meta.NewMicroTime(time.Unix(f.r.Int63n(4e9)-1e9, f.r.Int63n(1e9)/1000*1000))
		}
	case *resource.Quantity:
		*p = resource.MustParse([]string{"0", "1", "100m", "1Gi", "1500m", "5k", "0.1"}[f.r.Intn(7)])
	case *intstr.IntOrString:
		if f.r.Intn(2) == 0 {
			*p = intstr.FromString(f.word())
		} else {
			*p = intstr.FromInt32(int32(f.r.Intn(70000)))
		}
	case *runtime.RawExtension:
		p.Raw = []byte(`{"a":[1,{"b":null}]}`)
	case *meta.FieldsV1:
		p.Raw = []byte(`{"f:metadata":{"f:name":{}}}`)
	case *extensions.JSON:
		p.Raw = []byte(`{"x":[1.5,true]}`)
	case *extensions.JSONSchemaPropsOrBool:
		p.Allows = f.r.Intn(2) == 0
	case *extensions.JSONSchemaPropsOrArray:
		p.JSONSchemas = []extensions.JSONSchemaProps{{Type: "string"}, {Type: "integer"}}
		if f.r.Intn(2) == 0 {
			*p = extensions.JSONSchemaPropsOrArray{Schema: &extensions.JSONSchemaProps{Type: "object"}}
		}
	case *extensions.JSONSchemaPropsOrStringArray:
		p.Property = []string{f.word(), "b"}
	default:
		return false
	}
	return true
}

func (f *filler) number() int64 {
	return []int64{0, 1, -1, 80, 443, 1 << 20, -(1 << 31), 1<<31 - 1}[f.r.Intn(8)]
}

func (f *filler) fill(v reflect.Value, depth int) {
	if f.special(v) {
		return
	}
	few := 3
	if depth > 4 {
		few = 6 + depth
	}
	if depth > 14 {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := 0; i < v.NumField(); i++ {
			if v.Field(i).CanSet() && (v.Field(i).Kind() == reflect.Struct || depth == 0 || f.r.Intn(few) == 0) {
				f.fill(v.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), depth+1)
	case reflect.Slice:
		count := f.r.Intn(4)
		v.Set(reflect.MakeSlice(v.Type(), count, count))
		for i := 0; i < count; i++ {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := f.r.Intn(3); i > 0; i-- {
			value := reflect.New(v.Type().Elem()).Elem()
			f.fill(value, depth+1)
			v.SetMapIndex(reflect.ValueOf(f.word()).Convert(v.Type().Key()), value)
		}
	case reflect.String:
		v.SetString(f.word())
	case reflect.Bool:
		v.SetBool(f.r.Intn(2) == 0)
	case reflect.Int32, reflect.Int64:
		v.SetInt(f.number())
	case reflect.Uint8:
		v.SetUint(uint64(f.r.Intn(256)))
	case reflect.Float64:
		v.SetFloat([]float64{0, 1.5, -2, 1e9, 0.1}[f.r.Intn(5)])
	case reflect.Interface:
	default:
		panic(fmt.Sprint("cannot fill ", v.Type()))
	}
}
