#include "kube/apply/fields_v1.h"
#include "kube/apply/typed_private.h"
#include "kube/patch/print.h"

#include <stdio.h>

struct typed_check {
    struct arena *arena;
    struct buf *errors;
    struct buf path;
    size_t count;
};

static enum status check(struct typed_check *c, struct apply_type type,
                         const struct json_node *value);

static enum status report(struct typed_check *c, const char *text)
{
    if (c->count++ >= TYPED_ERRORS_MAX)
        return ST_OK;
    TRY(buf_append_text(c->errors, c->errors->len ? "\n" : ""));
    TRY(buf_append(c->errors, buf_slice(&c->path)));
    TRY(buf_append_text(c->errors, c->path.len ? ": " : ""));
    return buf_append_text(c->errors, text);
}

static enum status report_type(struct typed_check *c, const char *wanted,
                               const struct json_node *value)
{
    char text[PRINT_BYTES + 64], shown[PRINT_BYTES];
    snprintf(text, sizeof(text), "expected %s, got &{%s}", wanted, print_go(value, shown));
    return report(c, text);
}

/* Go's %#v of the value: &value.valueUnstructured{Value:1}. */
static enum status report_string(struct typed_check *c, const struct json_node *value)
{
    char text[PRINT_BYTES + 96], shown[PRINT_BYTES];
    const char *type = value->type == JSON_TYPE_OBJECT  ? "map[string]interface {}"
                       : value->type == JSON_TYPE_ARRAY ? "[]interface {}"
                                                        : "";
    const char *open = type[0] ? "{" : "", *close = type[0] ? "}" : "";
    snprintf(text, sizeof(text), "expected string, got &value.valueUnstructured{Value:%s%s%s%s}",
             type, open, print_go(value, shown), close);
    return report(c, text);
}

static enum status check_scalar(struct typed_check *c, const struct apply_rules *rules,
                                const struct json_node *value)
{
    char text[96];
    if (value->type == JSON_TYPE_NULL)
        return ST_OK;
    switch (rules->scalar) {
    case APPLY_SCALAR_STRING:
        return value->type == JSON_TYPE_STRING ? ST_OK : report_string(c, value);
    case APPLY_SCALAR_BOOLEAN:
        return value->type == JSON_TYPE_BOOL ? ST_OK : report_type(c, "boolean", value);
    case APPLY_SCALAR_NUMERIC:
        snprintf(text, sizeof(text), "expected numeric (int or float), got %s",
                 print_go_type(value));
        return value->type == JSON_TYPE_NUMBER ? ST_OK : report(c, text);
    default:
        if (value->type == JSON_TYPE_OBJECT || value->type == JSON_TYPE_ARRAY)
            return report_type(c, "any scalar", value);
        return ST_OK;
    }
}

static enum status check_members(struct typed_check *c, struct apply_type type,
                                 const struct apply_rules *rules, const struct json_node *map)
{
    size_t len = c->path.len;
    for (const struct json_node *node = map->first; node; node = node->next) {
        struct field_element element = field_name(node->key);
        bool named;
        struct apply_type member = apply_rules_member(type, rules, node->key, &named);
        TRY(field_element_append(&element, c->arena, &c->path));
        if (member.kind == APPLY_TYPE_NOTHING) {
            TRY(report(c, "field not declared in schema"));
            c->path.len = len;
            return ST_OK;
        }
        TRY(check(c, member, node));
        c->path.len = len;
    }
    return ST_OK;
}

static enum status report_element(struct typed_check *c, size_t at, const char *why)
{
    char text[600];
    snprintf(text, sizeof(text), "element %zu: %s", at, why);
    return report(c, text);
}

/* Reports each element that occurs again. */
static enum status check_unique(struct typed_check *c, const struct typed_item *items, size_t count)
{
    struct typed_item *sorted;
    TRY(typed_sort(c->arena, items, count, &sorted));
    for (size_t i = 1; i < count; i++) {
        AUTO(buf_fini) struct buf text = {0};
        if (field_element_compare(&sorted[i - 1].element, &sorted[i].element))
            continue;
        TRY(buf_append_text(&text, "duplicate entries for key "));
        TRY(field_element_append(&sorted[i].element, c->arena, &text));
        TRY(buf_append(&text, slice_of("", 1)));
        TRY(report(c, (const char *)text.ptr));
    }
    return ST_OK;
}

static enum status check_items(struct typed_check *c, struct apply_type type,
                               const struct apply_rules *rules, const struct json_node *list)
{
    size_t len = c->path.len, at = 0;
    struct typed_item *items = arena_calloc(c->arena, list->count + 1, sizeof(*items));
    if (!items)
        return ST_NOMEM;
    for (const struct json_node *node = list->first; node; node = node->next, at++) {
        struct error why = {0};
        struct field_element *element = &items[at].element;
        items[at].at = at;
        *element = (struct field_element){.step = FIELD_INDEX, .index = (int64_t)at};
        enum status status =
            rules->list_atomic ? ST_OK : typed_element(c->arena, type, rules, node, element, &why);
        if (status == ST_INVALID)
            return report_element(c, at, why.text);
        TRY(status);
        TRY(field_element_append(element, c->arena, &c->path));
        TRY(check(c, rules->item, node));
        c->path.len = len;
    }
    return rules->list_atomic ? ST_OK : check_unique(c, items, at);
}

static enum status check(struct typed_check *c, struct apply_type type,
                         const struct json_node *value)
{
    struct apply_rules rules = apply_rules_of(type);
    unsigned forms = apply_rules_forms(&rules, value);
    if (forms & APPLY_FORM_MAP) {
        if (value->type == JSON_TYPE_NULL)
            return ST_OK;
        if (value->type != JSON_TYPE_OBJECT)
            return report_type(c, "map", value);
        return check_members(c, type, &rules, value);
    }
    if (forms & APPLY_FORM_SCALAR)
        return check_scalar(c, &rules, value);
    if (value->type == JSON_TYPE_NULL)
        return ST_OK;
    if (value->type != JSON_TYPE_ARRAY)
        return report_type(c, "list", value);
    return check_items(c, type, &rules, value);
}

enum status typed_validate(struct arena *arena, struct apply_type type,
                           const struct json_node *value, struct buf *errors, size_t *ret_count)
{
    struct typed_check c = {.arena = arena, .errors = errors};
    enum status status = check(&c, type, value);
    buf_fini(&c.path);
    *ret_count = c.count;
    return status;
}
