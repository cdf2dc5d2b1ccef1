#include "cmd/serve/config/typed.h"

#include "io/whole_file.h"
#include "yaml/yaml.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 256, UNKNOWN_BYTES = 512 };

/* One object while it is checked. */
struct checking {
    char path[PATH_BYTES]; /* "plugins[0]." in front of its members */
    size_t path_len;
    char unknown[UNKNOWN_BYTES]; /* `unknown field "a", unknown field "b"`, as far as it fits */
    size_t unknown_len;
    struct error *error;
};

static const char *const type_names[] = {
    [JSON_TYPE_NULL] = "null",     [JSON_TYPE_BOOL] = "bool",   [JSON_TYPE_NUMBER] = "number",
    [JSON_TYPE_STRING] = "string", [JSON_TYPE_ARRAY] = "array", [JSON_TYPE_OBJECT] = "object",
};

static enum status check_object(struct checking *c, const struct typed_type *type,
                                const struct json_node *object);

/* -- Errors -- */

PRINTF_LIKE(3, 4)
static size_t add(char *to, size_t room, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int len = vsnprintf(to, room, format, values);
    va_end(values);
    return len < 0 ? 0 : size_min((size_t)len, room ? room - 1 : 0);
}

static void report_unknown(struct checking *c, struct slice name)
{
    c->unknown_len += add(c->unknown + c->unknown_len, UNKNOWN_BYTES - c->unknown_len,
                          "%sunknown field \"%s%.*s\"", c->unknown_len ? ", " : "", c->path,
                          (int)size_min(name.len, 100), (const char *)name.ptr);
}

static enum status fail_type(struct checking *c, const struct typed_type *of,
                             const struct typed_field *field, const struct json_node *node,
                             bool is_item)
{
    const char *name = field->type ? field->type->name : "string";
    bool is_list = field->value == TYPED_TEXTS || field->value == TYPED_OBJECTS;
    return error_set(c->error, ST_INVALID,
                     "json: cannot unmarshal %s into Go struct field %s.%s%s of type %s%s",
                     type_names[node->type], of->name, c->path, field->name,
                     is_list && !is_item ? "[]" : "", name);
}

/* -- Values -- */

static enum status check_one(struct checking *c, const struct typed_type *of,
                             const struct typed_field *field, const struct json_node *node,
                             ssize_t item)
{
    bool is_object = field->value == TYPED_OBJECT || field->value == TYPED_OBJECTS;
    size_t len = c->path_len;
    if (node->type == JSON_TYPE_NULL)
        return ST_OK;
    if (node->type != (is_object ? JSON_TYPE_OBJECT : JSON_TYPE_STRING))
        return fail_type(c, of, field, node, item >= 0);
    if (!is_object)
        return ST_OK;
    if (item < 0)
        c->path_len += add(c->path + len, PATH_BYTES - len, "%s.", field->name);
    else
        c->path_len += add(c->path + len, PATH_BYTES - len, "%s[%zd].", field->name, item);
    TRY(check_object(c, field->type, node));
    c->path_len = len;
    c->path[len] = 0;
    return ST_OK;
}

static enum status check_field(struct checking *c, const struct typed_type *of,
                               const struct typed_field *field, const struct json_node *node)
{
    bool is_list = field->value == TYPED_TEXTS || field->value == TYPED_OBJECTS;
    if (field->value == TYPED_ANY || node->type == JSON_TYPE_NULL)
        return ST_OK;
    if (!is_list)
        return check_one(c, of, field, node, -1);
    if (node->type != JSON_TYPE_ARRAY)
        return fail_type(c, of, field, node, false);
    ssize_t place = 0;
    for (const struct json_node *item = node->first; item; item = item->next)
        TRY(check_one(c, of, field, item, place++));
    return ST_OK;
}

static const struct typed_field *find_field(const struct typed_type *type, struct slice name)
{
    static const struct typed_field of_objects[] = {{"apiVersion", TYPED_TEXT, NULL},
                                                    {"kind", TYPED_TEXT, NULL}};
    for (size_t i = 0; i < TYPED_FIELDS_MAX && type->fields[i].name; i++)
        if (slice_is(name, type->fields[i].name))
            return &type->fields[i];
    for (size_t i = 0; type->versions[0] && i < COUNT_OF(of_objects); i++)
        if (slice_is(name, of_objects[i].name))
            return &of_objects[i];
    return NULL;
}

static enum status check_object(struct checking *c, const struct typed_type *type,
                                const struct json_node *object)
{
    for (const struct json_node *member = object->first; member; member = member->next) {
        const struct typed_field *field = find_field(type, member->key);
        if (field)
            TRY(check_field(c, type, field, member));
        else
            report_unknown(c, member->key);
    }
    return ST_OK;
}

/* -- Versions -- */

static bool has_version(const struct typed_type *type, const struct json_node *version)
{
    for (size_t i = 0; i < TYPED_VERSIONS_MAX && type->versions[i]; i++)
        if (json_node_is_text(version, type->versions[i]))
            return true;
    return false;
}

static enum status check_version(const struct typed_type *type, const struct json_node *object,
                                 struct error *error)
{
    const struct json_node *kind = json_node_named(object, "kind");
    const struct json_node *version = json_node_named(object, "apiVersion");
    if (!json_node_has_text(kind))
        return error_set(error, ST_INVALID, "Object 'Kind' is missing");
    if (!json_node_has_text(version))
        return error_set(error, ST_INVALID, "Object 'apiVersion' is missing");
    if (json_node_is_text(kind, type->name) && has_version(type, version))
        return ST_OK;
    return error_set(error, ST_INVALID,
                     "no kind \"%.*s\" is registered for version \"%.*s\" here: a %s of %s is "
                     "expected",
                     (int)size_min(kind->text.len, 100), (const char *)kind->text.ptr,
                     (int)size_min(version->text.len, 100), (const char *)version->text.ptr,
                     type->name, type->versions[0]);
}

enum status typed_check(const struct typed_type *type, const struct json_node *object,
                        struct error *error)
{
    struct checking c = {.error = error};
    if (object->type != JSON_TYPE_OBJECT)
        return error_set(error, ST_INVALID, "json: cannot unmarshal %s into Go value of type %s",
                         type_names[object->type], type->name);
    TRY(check_version(type, object, error));
    TRY(check_object(&c, type, object));
    return c.unknown_len ? error_set(error, ST_INVALID, "strict decoding error: %s", c.unknown)
                         : ST_OK;
}

/* -- Files -- */

static enum status read_tree(struct slice text, struct arena *arena, struct json_node **ret_object,
                             struct error *error)
{
    AUTO(buf_fini) struct buf repeats = {0};
    TRY(yaml_tree_read_strict(arena, text, ret_object, &repeats, error));
    if (repeats.len)
        return error_set(error, ST_INVALID, "strict decoding error: yaml: %.*s",
                         (int)size_min(repeats.len, 500), (const char *)repeats.ptr);
    return ST_OK;
}

enum status typed_read(const struct typed_type *type, const char *path, struct arena *arena,
                       struct json_node **ret_object, struct error *error)
{
    AUTO(buf_fini) struct buf text = {0};
    struct error why = {.text = "it takes too much memory"};
    struct json_node *object;
    TRY(whole_file_read(path, WHOLE_FILE_ANY, TYPED_FILE_BYTES_MAX, &text, error));
    *ret_object = NULL;
    if (!text.len)
        return ST_OK;
    enum status status = read_tree(buf_slice(&text), arena, &object, &why);
    if (status == ST_OK)
        status = typed_check(type, object, &why);
    if (status != ST_OK)
        return error_set(error, status, "%.300s: %.600s", path, why.text);
    *ret_object = object;
    return ST_OK;
}
