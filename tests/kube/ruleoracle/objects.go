package main

import (
	"encoding/json"
	"slices"
)

// A value that the schema allows, but for enumerations, patterns and limits, which do not keep rules from being evaluated.
func (m maker) value(s *schema) any {
	if s.Nullable && m.in(4) {
		return nil
	}
	switch {
	case s.XIntOrString:
		if m.in(2) {
			return m.Intn(5)
		}
		return m.one(texts[""]...)
	case s.Type == "string":
		if len(s.Enum) > 0 && !m.in(4) {
			return m.one("a", "ab", "longest")
		}
		return m.one(texts[s.Format]...)
	case s.Type == "integer":
		return []int{0, 1, 2, 3, -1, 7, 100}[m.Intn(7)]
	case s.Type == "number":
		return []any{0, 1, 1.5, -2.25, 3, 100.125, 1e6}[m.Intn(7)]
	case s.Type == "boolean":
		return m.in(2)
	case s.Type == "array":
		return m.list(s)
	case s.Type == "object":
		return m.fields(s)
	}
	return map[string]any{"p": 1, "q": []any{"r"}}
}

func (m maker) list(s *schema) any {
	values, seen := []any{}, map[string]bool{}
	for count := m.Intn(5); count > 0; count-- {
		value := m.value(s.Items.Schema)
		key, err := json.Marshal(value)
		must(err)
		if object, is := value.(map[string]any); is && len(s.XListMapKeys) > 0 {
			key, err = json.Marshal([]any{object["k"], object["l"]})
			must(err)
		}
		if s.XListType != nil && seen[string(key)] {
			continue
		}
		seen[string(key)] = true
		values = append(values, value)
	}
	return values
}

func (m maker) fields(s *schema) any {
	values := map[string]any{}
	if s.AdditionalProperties != nil {
		for count := m.Intn(4); count > 0; count-- {
			values[m.one("a", "b", "k", "x-y", "long/key.name", "")] = m.value(s.AdditionalProperties.Schema)
		}
		return values
	}
	for _, name := range sorted(s.Properties) {
		property := s.Properties[name]
		if slices.Contains(s.Required, name) || m.Intn(3) > 0 {
			values[name] = m.value(&property)
		}
	}
	if s.XPreserveUnknownFields != nil && m.in(2) {
		values["unknown"] = m.Intn(3)
	}
	if s.XEmbeddedResource {
		values["apiVersion"], values["kind"] = "v1", m.one("Pod", "Node")
		values["metadata"] = map[string]any{"name": m.one("a", "b"), "labels": map[string]any{"x": "y"}}
	}
	return values
}

// The value after some changes: most parts stay as they are, and the order of lists is another.
func (m maker) changed(s *schema, value any) any {
	if m.in(8) {
		return m.value(s)
	}
	switch v := value.(type) {
	case map[string]any:
		changed := map[string]any{}
		for _, name := range sorted(v) {
			property, known := s.Properties[name]
			if !known && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
				property, known = *s.AdditionalProperties.Schema, true
			}
			if !known {
				changed[name] = v[name]
			} else if m.Intn(12) > 0 || slices.Contains(s.Required, name) {
				changed[name] = m.changed(&property, v[name])
			}
		}
		return changed
	case []any:
		changed := []any{}
		for _, item := range v {
			object, is := item.(map[string]any)
			if m.in(10) {
				continue
			}
			other := m.changed(s.Items.Schema, item)
			if new, isNew := other.(map[string]any); is && isNew && len(s.XListMapKeys) > 0 {
				new["k"] = object["k"]
				if number, has := object["l"]; has {
					new["l"] = number
				}
			}
			// The items of a set must stay different.
			if s.XListType != nil && *s.XListType == "set" {
				other = item
			}
			changed = append(changed, other)
		}
		if m.in(3) {
			slices.Reverse(changed)
		}
		return changed
	}
	return value
}

// A whole object, and one as it was before; nil: there was none.
func (m maker) object2(root *schema) (object, old map[string]any) {
	object = m.fields(root).(map[string]any)
	if m.Intn(3) > 0 {
		old = m.changed(root, object).(map[string]any)
		old["apiVersion"], old["kind"], old["metadata"] = "example.com/v1", "Thing", map[string]any{"name": "a"}
	}
	object["apiVersion"], object["kind"], object["metadata"] = "example.com/v1", "Thing", map[string]any{"name": "a"}
	return object, old
}
