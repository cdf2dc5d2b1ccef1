package main

import (
	"encoding/json"
	"math/rand"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type schema = v1.JSONSchemaProps

// Names of properties, most of which are written differently in expressions, and some not at all.
var names = []string{"a", "b", "c", "d", "name", "b-c", "d.e", "namespace", "if", "x__y", "in", "a/b", "1x", "size", "self"}

// What values of strings look like by their format.
var texts = map[string][]string{
	"":          {"", "a", "b", "ab", "web-1", "A b", "1.2.3", "10.0.0.1", "10.0.0.0/8", "500m", "https://a.b/c?d=e", "é世😀", "a,b,c", "true"},
	"date":      {"2020-01-02", "1999-12-31", "2024-02-29"},
	"date-time": {"2020-01-02T03:04:05Z", "2021-02-03T04:05:06.5+01:00", "1999-12-31T23:59:59-08:00"},
	"duration":  {"1h", "90s", "1m30s", "0s", "2 days"},
	"byte":      {"aGVsbG8=", "", "YQ=="},
	"ipv4":      {"10.0.0.1", "192.168.1.1"},
}

type maker struct{ *rand.Rand }

func (m maker) one(of ...string) string { return of[m.Intn(len(of))] }

// True in one of so many cases.
func (m maker) in(times int) bool { return m.Intn(times) == 0 }

func (m maker) limit(most int64) *int64 {
	limit := 1 + m.Int63n(most)
	return &limit
}

func (m maker) text() *schema {
	s := &schema{Type: "string"}
	switch m.Intn(8) {
	case 0:
		s.Format = m.one("date", "date-time", "duration", "byte", "ipv4")
	case 1:
		s.Enum = []v1.JSON{{Raw: []byte(`"a"`)}, {Raw: []byte(`"ab"`)}, {Raw: []byte(`"longest"`)}}
	case 2:
		s.Pattern = "^[a-z]*$"
	}
	if !m.in(3) {
		s.MaxLength = m.limit(40)
	}
	return s
}

func (m maker) scalar() *schema {
	switch m.Intn(6) {
	case 0:
		return &schema{Type: "integer"}
	case 1:
		return &schema{Type: "number"}
	case 2:
		return &schema{Type: "boolean"}
	default:
		return m.text()
	}
}

func (m maker) array(depth int) *schema {
	s, items := &schema{Type: "array"}, m.schema(depth-1)
	switch m.Intn(4) {
	case 0:
		set := "set"
		items, s.XListType = m.scalar(), &set
	case 1:
		of := "map"
		items = m.object(depth-1, true)
		s.XListType, s.XListMapKeys = &of, []string{"k"}
		if m.in(3) {
			items.Properties["l"] = schema{Type: "integer"}
			items.Required = append(items.Required, "l")
			s.XListMapKeys = append(s.XListMapKeys, "l")
		}
	}
	if !m.in(3) {
		s.MaxItems = m.limit(20)
	}
	s.Items = &v1.JSONSchemaPropsOrArray{Schema: items}
	return s
}

// An object with properties. keyed: it has the key k.
func (m maker) object(depth int, keyed bool) *schema {
	s := &schema{Type: "object", Properties: map[string]schema{}}
	for count := 1 + m.Intn(4); count > 0; count-- {
		name := m.one(names...)
		s.Properties[name] = *m.schema(depth - 1)
		if m.in(3) {
			s.Required = append(s.Required, name)
		}
	}
	if keyed {
		key := schema{Type: "string", MaxLength: m.limit(20)}
		s.Properties["k"] = key
		s.Required = append(s.Required, "k")
	}
	if m.in(12) {
		open := true
		s.XPreserveUnknownFields = &open
	}
	if m.in(12) {
		kind := m.one("atomic", "granular")
		s.XMapType = &kind
	}
	return s
}

func (m maker) schema(depth int) *schema {
	var s *schema
	kind := m.Intn(12)
	switch {
	case depth <= 0 && kind == 0 || kind == 1:
		s = &schema{XIntOrString: true}
		if m.in(2) {
			s.MaxLength = m.limit(20)
		}
	case depth <= 0 || kind < 4:
		s = m.scalar()
	case kind < 7:
		s = m.array(depth)
	case kind == 7:
		s = &schema{Type: "object", AdditionalProperties: &v1.JSONSchemaPropsOrBool{Allows: true, Schema: m.schema(depth - 1)}}
		if !m.in(3) {
			s.MaxProperties = m.limit(10)
		}
	case kind == 8 && m.in(3):
		s = m.object(depth, false)
		s.XEmbeddedResource = true
		for _, name := range []string{"apiVersion", "kind", "metadata"} {
			delete(s.Properties, name)
		}
	case kind == 8 && m.in(4):
		open := true
		s = &schema{XPreserveUnknownFields: &open} // expressions do not see it
	default:
		s = m.object(depth, false)
	}
	if m.in(10) && s.XListType == nil {
		s.Nullable = true
	}
	return s
}

// Sets and lists of type map may not have items that are null.
func sane(s *schema) {
	if s.Items != nil && s.XListType != nil {
		s.Items.Schema.Nullable = false
		for name, property := range s.Items.Schema.Properties {
			if name == "k" || name == "l" {
				property.Nullable = false
				s.Items.Schema.Properties[name] = property
			}
		}
	}
	each(s, func(child *schema) { sane(child) })
}

// Calls do with every schema below this one, which may be changed.
func each(s *schema, do func(*schema)) {
	for _, name := range sorted(s.Properties) {
		property := s.Properties[name]
		do(&property)
		s.Properties[name] = property
	}
	if s.Items != nil {
		do(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		do(s.AdditionalProperties.Schema)
	}
}

// The schema of a resource with rules.
func (m maker) resource() *schema {
	spec := m.object(3, false)
	root := &schema{Type: "object", Properties: map[string]schema{"spec": *spec}}
	if m.in(3) {
		root.Properties["status"] = *m.object(1, false)
	}
	sane(root)
	left := 1 + m.Intn(6)
	for tries := 0; left > 0 && tries < 20; tries++ {
		m.addRules(root, true, true, &left)
	}
	if m.in(8) {
		m.addDefault(root)
	}
	return root
}

// Adds rules to some of the nodes.
func (m maker) addRules(s *schema, resource, correlatable bool, left *int) {
	if kindOf(s) != "" && m.in(3) {
		for ; *left > 0; *left-- {
			s.XValidations = append(s.XValidations, m.rule(s, resource, correlatable))
			if m.in(2) {
				*left--
				break
			}
		}
	}
	correlates := correlatable && (s.Type != "array" || s.XListType != nil && *s.XListType == "map")
	each(s, func(child *schema) { m.addRules(child, child.XEmbeddedResource, correlates, left) })
}

// A default somewhere, which the rules may refuse.
func (m maker) addDefault(s *schema) {
	added := false
	for _, name := range sorted(s.Properties) {
		property := s.Properties[name]
		if added || property.XEmbeddedResource || name == "k" || name == "l" {
			continue
		}
		if property.Type == "object" && !m.in(3) {
			m.addDefault(&property)
		} else if name != "spec" && name != "status" {
			raw, err := json.Marshal(m.value(&property))
			must(err)
			property.Default = &v1.JSON{Raw: raw}
		}
		s.Properties[name], added = property, true
	}
}
