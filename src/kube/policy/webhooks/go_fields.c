#include "kube/policy/webhooks/go_fields.h"

#include "codec/base64.h"
#include "codec/json/number.h"
#include "kube/types/schema/go_value.h"

static const struct go_field cause_fields[] = {
    {"reason", GO_TEXT, "v1.CauseType", NULL, NULL},
    {"message", GO_TEXT, "string", NULL, NULL},
    {"field", GO_TEXT, "string", NULL, NULL},
};
static const struct go_struct go_cause = {"StatusCause", cause_fields, COUNT_OF(cause_fields)};

static const struct go_field details_fields[] = {
    {"name", GO_TEXT, "string", NULL, NULL},
    {"group", GO_TEXT, "string", NULL, NULL},
    {"kind", GO_TEXT, "string", NULL, NULL},
    {"uid", GO_TEXT, "types.UID", NULL, NULL},
    {"causes", GO_STRUCTS, "v1.StatusCause", &go_cause, NULL},
    {"retryAfterSeconds", GO_INT32, "int32", NULL, NULL},
};
const struct go_struct go_status_details = {"StatusDetails", details_fields,
                                            COUNT_OF(details_fields)};

static const struct go_field metadata_fields[] = {
    {"selfLink", GO_TEXT, "string", NULL, NULL},
    {"resourceVersion", GO_TEXT, "string", NULL, NULL},
    {"continue", GO_TEXT, "string", NULL, NULL},
    {"remainingItemCount", GO_INT64_POINTER, "int64", NULL, NULL},
};
const struct go_struct go_status_metadata = {"ListMeta", metadata_fields,
                                             COUNT_OF(metadata_fields)};

static const struct go_field status_fields[] = {
    {"kind", GO_TEXT, "string", NULL, "TypeMeta.kind"},
    {"apiVersion", GO_TEXT, "string", NULL, "TypeMeta.apiVersion"},
    {"metadata", GO_STRUCT, "v1.ListMeta", &go_status_metadata, NULL},
    {"status", GO_TEXT, "string", NULL, NULL},
    {"message", GO_TEXT, "string", NULL, NULL},
    {"reason", GO_TEXT, "v1.StatusReason", NULL, NULL},
    {"details", GO_STRUCT_POINTER, "v1.StatusDetails", &go_status_details, NULL},
    {"code", GO_INT32, "int32", NULL, NULL},
};
static const struct go_struct go_status = {"Status", status_fields, COUNT_OF(status_fields)};

static const struct go_field response_fields[] = {
    {"uid", GO_TEXT, "types.UID", NULL, NULL},
    {"allowed", GO_BOOL, "bool", NULL, NULL},
    {"status", GO_STRUCT_POINTER, "v1.Status", &go_status, NULL},
    {"patch", GO_BYTES, "uint8", NULL, NULL},
    {"patchType", GO_TEXT, "v1.PatchType", NULL, NULL},
    {"auditAnnotations", GO_TEXT_MAP, "string", NULL, NULL},
    {"warnings", GO_TEXTS, "string", NULL, NULL},
};
const struct go_struct go_admission_response = {"AdmissionResponse", response_fields,
                                                COUNT_OF(response_fields)};

/* -- Checking -- */

/* Where the checked struct is: "response.status". */
struct place {
    const struct place *in;
    const char *name;
};

struct check {
    const struct go_struct *type;
    const struct place *place;
    struct arena *arena; /* for temporary memory */
    struct error *error;
};

static enum status write_place(const struct place *place, struct buf *to)
{
    if (place->in) {
        TRY(write_place(place->in, to));
        TRY(buf_append_text(to, "."));
    }
    return buf_append_text(to, place->name);
}

/* prefix: "[]" if it is about the whole list. */
static enum status wrong_type(const struct check *c, const struct go_field *field,
                              const struct json_node *node, const char *prefix)
{
    AUTO(buf_fini) struct buf text = {0};
    const struct place place = {c->place, field->place ? field->place : field->name};
    bool is_integer = field->value == GO_INT32 || field->value == GO_INT64_POINTER ||
                      (field->value == GO_BYTES && !prefix[0]);
    /* Go shows the number only if its type is right, and its value is not. */
    bool shows = is_integer && node->type == JSON_TYPE_NUMBER;
    TRY(write_place(&place, &text));
    return error_set(c->error, ST_INVALID,
                     "json: cannot unmarshal %s%s%.*s into Go struct field %s.%.*s of type %s%s",
                     kube_json_type(node), shows ? " " : "",
                     shows ? (int)size_min(node->text.len, 40) : 0,
                     shows ? (const char *)node->text.ptr : "", c->type->name, (int)text.len,
                     (const char *)text.ptr, prefix, field->type);
}

/* As strconv.ParseInt: digits only. */
static bool is_integer(const struct json_node *node, int64_t least, int64_t most)
{
    int64_t value;
    if (node->type != JSON_TYPE_NUMBER)
        return false;
    for (size_t i = 0; i < node->text.len; i++)
        if (node->text.ptr[i] == '.' || (node->text.ptr[i] | 0x20) == 'e')
            return false;
    return json_number_i64(node->text, &value) && value >= least && value <= most;
}

/* The items of a list, or the members of a map. */
static enum status check_texts(const struct check *c, const struct go_field *field,
                               const struct json_node *list)
{
    for (const struct json_node *item = list->first; item; item = item->next)
        if (item->type != JSON_TYPE_STRING && item->type != JSON_TYPE_NULL)
            return wrong_type(c, field, item, "");
    return ST_OK;
}

/* Base64, whose text may have escapes. */
static enum status check_base64(const struct check *c, const struct json_node *node)
{
    struct slice text;
    TRY(json_node_text(node, c->arena, &text));
    ssize_t at = base64_fault(text);
    return at < 0 ? ST_OK
                  : error_set(c->error, ST_INVALID, "illegal base64 data at input byte %zd", at);
}

static enum status check_bytes(const struct check *c, const struct go_field *field,
                               const struct json_node *node)
{
    if (node->type == JSON_TYPE_STRING)
        return check_base64(c, node);
    if (node->type != JSON_TYPE_ARRAY)
        return wrong_type(c, field, node, "[]");
    for (const struct json_node *item = node->first; item; item = item->next)
        if (item->type != JSON_TYPE_NULL && !is_integer(item, 0, UINT8_MAX))
            return wrong_type(c, field, item, "");
    return ST_OK;
}

static enum status check_struct(const struct check *c, const struct go_struct *type,
                                const struct json_node *object);

static enum status check_inner(const struct check *c, const struct go_field *field,
                               const struct json_node *object)
{
    const struct place place = {c->place, field->name};
    struct check inner = *c;
    if (object->type == JSON_TYPE_NULL)
        return ST_OK;
    if (object->type != JSON_TYPE_OBJECT)
        return wrong_type(c, field, object, "");
    inner.place = &place;
    return check_struct(&inner, field->of, object);
}

static enum status check_structs(const struct check *c, const struct go_field *field,
                                 const struct json_node *list)
{
    for (const struct json_node *item = list->first; item; item = item->next)
        TRY(check_inner(c, field, item));
    return ST_OK;
}

static enum status check_value(const struct check *c, const struct go_field *field,
                               const struct json_node *node)
{
    enum json_type type = (enum json_type)node->type;
    switch (field->value) {
    case GO_TEXT:
        return type == JSON_TYPE_STRING ? ST_OK : wrong_type(c, field, node, "");
    case GO_BOOL:
        return type == JSON_TYPE_BOOL ? ST_OK : wrong_type(c, field, node, "");
    case GO_INT32:
        return is_integer(node, INT32_MIN, INT32_MAX) ? ST_OK : wrong_type(c, field, node, "");
    case GO_INT64_POINTER:
        return is_integer(node, INT64_MIN, INT64_MAX) ? ST_OK : wrong_type(c, field, node, "");
    case GO_BYTES:
        return check_bytes(c, field, node);
    case GO_TEXTS:
        return type == JSON_TYPE_ARRAY ? check_texts(c, field, node)
                                       : wrong_type(c, field, node, "[]");
    case GO_TEXT_MAP:
        return type == JSON_TYPE_OBJECT ? check_texts(c, field, node)
                                        : wrong_type(c, field, node, "map[string]");
    case GO_STRUCTS:
        return type == JSON_TYPE_ARRAY ? check_structs(c, field, node)
                                       : wrong_type(c, field, node, "[]");
    default:
        return check_inner(c, field, node);
    }
}

static const struct go_field *find_field(const struct go_struct *type, struct slice name)
{
    for (size_t i = 0; i < type->count; i++)
        if (slice_is(name, type->fields[i].name))
            return &type->fields[i];
    return NULL;
}

static enum status check_struct(const struct check *c, const struct go_struct *type,
                                const struct json_node *object)
{
    struct check of = *c;
    of.type = type;
    for (const struct json_node *member = object->first; member; member = member->next) {
        const struct go_field *field = find_field(type, member->key);
        if (field && member->type != JSON_TYPE_NULL)
            TRY(check_value(&of, field, member));
    }
    return ST_OK;
}

enum status go_fields_check(const struct go_struct *type, const struct json_node *object,
                            const char *name, struct arena *arena, struct error *error)
{
    const struct place place = {NULL, name};
    const struct check check = {type, &place, arena, error};
    assert(object->type == JSON_TYPE_OBJECT);
    return check_struct(&check, type, object);
}

/* -- Writing -- */

static void write_text(const struct json_node *node, const char *name, struct arena *arena,
                       struct json_writer *to)
{
    struct slice text;
    if (json_node_text(node, arena, &text) == ST_OK && text.len)
        json_member_string(to, name, text);
}

static void write_integer(const struct json_node *node, const struct go_field *field,
                          struct json_writer *to)
{
    int64_t value;
    if (json_node_int(node, &value) && (value || field->value == GO_INT64_POINTER))
        json_member_i64(to, field->name, value);
}

static void write_structs(const struct json_node *list, const struct go_field *field,
                          struct arena *arena, struct json_writer *to)
{
    if (!json_node_items(list))
        return;
    json_member_array(to, field->name);
    for (const struct json_node *item = list->first; item; item = item->next)
        go_fields_write(field->of, item, arena, to);
    json_end_array(to);
}

void go_fields_write(const struct go_struct *type, const struct json_node *object,
                     struct arena *arena, struct json_writer *to)
{
    json_begin_object(to);
    for (size_t i = 0; i < type->count; i++) {
        const struct go_field *field = &type->fields[i];
        const struct json_node *node =
            json_node_is_set(object) ? json_node_named(object, field->name) : NULL;
        if (field->value == GO_STRUCTS)
            write_structs(node, field, arena, to);
        else if (field->value == GO_TEXT)
            write_text(node, field->name, arena, to);
        else
            write_integer(node, field, to);
    }
    json_end_object(to);
}

enum status go_fields_bytes(const struct json_node *node, struct arena *arena,
                            struct slice *ret_bytes)
{
    struct slice text;
    size_t len = 0;
    *ret_bytes = SLICE_EMPTY;
    if (!json_node_is_set(node))
        return ST_OK;
    TRY(json_node_text(node, arena, &text));
    uint8_t *bytes = arena_alloc(arena, node->type == JSON_TYPE_ARRAY ? node->count : text.len + 3);
    if (!bytes)
        return ST_NOMEM;
    for (const struct json_node *item = json_node_items(node); item; item = item->next) {
        int64_t value = 0;
        (void)!json_node_int(item, &value);
        bytes[len++] = (uint8_t)value;
    }
    /* base64_decode takes padding only without line ends. */
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] != '\n' && text.ptr[i] != '\r')
            bytes[len++] = text.ptr[i];
    if (node->type == JSON_TYPE_STRING && !base64_decode(slice_of(bytes, len), bytes, &len))
        return ST_MALFORMED;
    *ret_bytes = slice_of(bytes, len);
    return ST_OK;
}
