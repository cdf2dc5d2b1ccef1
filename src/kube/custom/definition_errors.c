#include "kube/custom/definition_errors.h"

#include "kube/types/go_text.h"

#include <stdarg.h>
#include <stdio.h>

size_t check_enter(struct definition_check *c, const char *format, ...)
{
    size_t before = c->path.len;
    char step[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(step, sizeof(step), format, arguments);
    va_end(arguments);
    if (buf_append_text(&c->path, step + (!before && step[0] == '.')) != ST_OK)
        c->errors->no_memory = true;
    return before;
}

/* Runs for every field of a schema, so it avoids printf. */
size_t check_enter_property(struct definition_check *c, struct slice name)
{
    size_t before = c->path.len;
    if (buf_append_text(&c->path, ".properties[") != ST_OK || buf_append(&c->path, name) != ST_OK ||
        buf_append_text(&c->path, "]") != ST_OK)
        c->errors->no_memory = true;
    return before;
}

void check_leave(struct definition_check *c, size_t before)
{
    c->path.len = before;
}

static void add(struct definition_check *c, const char *reason, const char *child, const char *what,
                struct slice value, const char *why)
{
    AUTO(buf_fini) struct buf field = {0};
    if (buf_append(&field, buf_slice(&c->path)) != ST_OK ||
        buf_append_format(&field, "%s%s", child[0] && field.len ? "." : "", child) != ST_OK) {
        c->errors->no_memory = true;
        return;
    }
    kube_field_errors_add(c->errors, reason, buf_slice(&field), "%s%s%.*s%s%s", what,
                          value.len ? ": " : "", SLICE_ARGS(value), why[0] ? ": " : "", why);
}

void check_required(struct definition_check *c, const char *child, const char *why)
{
    add(c, "FieldValueRequired", child, "Required value", SLICE_EMPTY, why);
}

void check_forbidden(struct definition_check *c, const char *child, const char *why)
{
    add(c, "FieldValueForbidden", child, "Forbidden", SLICE_EMPTY, why);
}

void check_internal(struct definition_check *c, const char *child, const char *why)
{
    add(c, "InternalError", child, "Internal error", SLICE_EMPTY, why);
}

static void add_value(struct definition_check *c, const char *reason, const char *child,
                      const char *what, const struct json_node *value, const char *why)
{
    AUTO(buf_fini) struct buf text = {0};
    if (c->errors->count >= KUBE_FIELD_ERRORS_MAX)
        return; /* values are shown in full, and the same one may be large each time */
    enum status status =
        value ? go_value_append(value, c->arena, &text) : buf_append_text(&text, "\"\"");
    if (status != ST_OK)
        c->errors->no_memory = true;
    else
        add(c, reason, child, what, buf_slice(&text), why);
}

void check_invalid(struct definition_check *c, const char *child, const struct json_node *value,
                   const char *why)
{
    add_value(c, "FieldValueInvalid", child, "Invalid value", value, why);
}

void check_invalid_shown(struct definition_check *c, const char *child, struct slice shown,
                         const char *why)
{
    add(c, "FieldValueInvalid", child, "Invalid value", shown, why);
}

void check_unsupported(struct definition_check *c, const char *child, const struct json_node *value,
                       const char *supported)
{
    char why[256];
    snprintf(why, sizeof(why), "supported values: %s", supported);
    add_value(c, "FieldValueNotSupported", child, "Unsupported value", value, why);
}

bool check_few(struct definition_check *c, const char *child, const struct json_node *list,
               size_t max)
{
    char why[96];
    if (list->count <= max)
        return true;
    snprintf(why, sizeof(why), "Too many: %u: must have at most %zu items", list->count, max);
    add(c, "FieldValueTooMany", child, why, SLICE_EMPTY, "");
    return false;
}

bool check_is_true(const struct json_node *node, const char *key)
{
    const struct json_node *member = json_node_named(node, key);
    return member && member->type == JSON_TYPE_BOOL && member->truth;
}

const struct json_node *check_array(const struct json_node *node, const char *key)
{
    const struct json_node *member = json_node_named(node, key);
    return member && member->type == JSON_TYPE_ARRAY ? member : NULL;
}

bool check_has(const struct json_node *node, const char *key)
{
    const struct json_node *member = json_node_named(node, key);
    return member && member->type != JSON_TYPE_NULL;
}
