#include "kube/types/schema/gnostic.h"

#include "codec/pb/wire.h"

/* How a member of the JSON becomes a field. */
enum field_form {
    FORM_TEXT,
    FORM_TEXTS, /* an array of strings: one field each */
    FORM_TRUTH,
    FORM_ONE,   /* an object: a message */
    FORM_NAMED, /* an object with any keys: one message {1: key, 2: value} each */
    FORM_PARAMETERS,
};

struct message;

struct field {
    const char *key;
    uint8_t number;
    uint8_t inner; /* the value is field `inner` of a message in this field; 0: the field itself */
    uint8_t value; /* value of FORM_NAMED: the same for each value */
    enum field_form form;
    const struct message *of;
};

struct message {
    const struct field *fields;
    size_t count;
    uint8_t extensions; /* field of members whose name begins with "x-"; 0: none */
};

/* -- Fields -- */

static enum status put_bytes(struct buf *to, unsigned number, struct slice bytes)
{
    size_t size = pb_message_head_size(number, bytes.len) + bytes.len;
    TRY(buf_reserve(to, size));
    uint8_t *at = pb_message_head_write(to->ptr + to->len, number, bytes.len);
    slice_copy(at, bytes);
    to->len += size;
    return ST_OK;
}

/* In field `inner` of a message in field `number`, or without that message. */
static enum status put(struct buf *to, unsigned number, unsigned inner, struct slice bytes)
{
    AUTO(buf_fini) struct buf wrapped = {0};
    if (!inner)
        return put_bytes(to, number, bytes);
    TRY(put_bytes(&wrapped, inner, bytes));
    return put_bytes(to, number, buf_slice(&wrapped));
}

static enum status put_truth(struct buf *to, unsigned number)
{
    TRY(buf_reserve(to, pb_uint_size(number, 1)));
    to->len = (size_t)(pb_uint_write(to->ptr + to->len, number, 1) - to->ptr);
    return ST_OK;
}

/* -- Messages -- */

static enum status write_message(const struct message *message, const struct json_node *object,
                                 struct buf *to);

static enum status put_named(struct buf *to, const struct field *field,
                             const struct json_node *node)
{
    AUTO(buf_fini) struct buf body = {0}, named = {0};
    TRY(write_message(field->of, node, &body));
    TRY(put_bytes(&named, 1, node->key));
    TRY(put(&named, 2, field->value, buf_slice(&body)));
    return put(to, field->number, field->inner, buf_slice(&named));
}

static enum status put_parameter(struct buf *to, const struct field *field,
                                 const struct json_node *node);

static enum status put_field(struct buf *to, const struct field *field,
                             const struct json_node *node)
{
    const struct json_node *item = node->first;
    bool holds = node->type == JSON_TYPE_OBJECT || node->type == JSON_TYPE_ARRAY;
    switch (field->form) {
    case FORM_TEXT:
        return put(to, field->number, field->inner, node->text);
    case FORM_TRUTH:
        return node->type == JSON_TYPE_BOOL && node->truth ? put_truth(to, field->number) : ST_OK;
    case FORM_ONE: {
        AUTO(buf_fini) struct buf body = {0};
        TRY(write_message(field->of, node, &body));
        return put(to, field->number, field->inner, buf_slice(&body));
    }
    default:
        break;
    }
    for (; holds && item; item = item->next) {
        if (field->form == FORM_TEXTS)
            TRY(put_bytes(to, field->number, item->text));
        else if (field->form == FORM_PARAMETERS)
            TRY(put_parameter(to, field, item));
        else
            TRY(put_named(to, field, item));
    }
    return ST_OK;
}

static enum status write_message(const struct message *message, const struct json_node *object,
                                 struct buf *to)
{
    const struct json_node *node = object->type == JSON_TYPE_OBJECT ? object->first : NULL;
    for (; node; node = node->next) {
        size_t i = 0;
        while (i < message->count && !slice_is(node->key, message->fields[i].key))
            i++;
        if (i < message->count) {
            TRY(put_field(to, &message->fields[i], node));
        } else if (message->extensions && slice_has_prefix(node->key, SLICE_LITERAL("x-"))) {
            /* NamedAny{name = 1, value = 2: Any{yaml = 2}}; JSON is YAML. */
            AUTO(buf_fini) struct buf text = {0}, named = {0};
            TRY(json_tree_write(node, &text));
            TRY(put_bytes(&named, 1, node->key));
            TRY(put(&named, 2, 2, buf_slice(&text)));
            TRY(put_bytes(to, message->extensions, buf_slice(&named)));
        }
    }
    return ST_OK;
}

/* -- The messages of OpenAPIv2.proto -- */

static const struct message schema;

static const struct field schema_fields[] = {
    {"$ref", 1, 0, 0, FORM_TEXT, NULL},
    {"format", 2, 0, 0, FORM_TEXT, NULL},
    {"description", 4, 0, 0, FORM_TEXT, NULL},
    {"required", 19, 0, 0, FORM_TEXTS, NULL},
    {"additionalProperties", 21, 1, 0, FORM_ONE, &schema},
    {"type", 22, 1, 0, FORM_TEXT, NULL},
    {"items", 23, 1, 0, FORM_ONE, &schema},
    {"properties", 25, 1, 0, FORM_NAMED, &schema},
};
static const struct message schema = {schema_fields, COUNT_OF(schema_fields), 31};

/* A parameter says where it is by the message that it is in: see parameter_of. */
static const struct field body_fields[] = {
    {"name", 2, 0, 0, FORM_TEXT, NULL},
    {"in", 3, 0, 0, FORM_TEXT, NULL},
    {"required", 4, 0, 0, FORM_TRUTH, NULL},
    {"schema", 5, 0, 0, FORM_ONE, &schema},
};
static const struct field query_fields[] = {
    {"required", 1, 0, 0, FORM_TRUTH, NULL},
    {"in", 2, 0, 0, FORM_TEXT, NULL},
    {"name", 4, 0, 0, FORM_TEXT, NULL},
    {"type", 6, 0, 0, FORM_TEXT, NULL},
};
static const struct field path_fields[] = {
    {"required", 1, 0, 0, FORM_TRUTH, NULL},
    {"in", 2, 0, 0, FORM_TEXT, NULL},
    {"name", 4, 0, 0, FORM_TEXT, NULL},
    {"type", 5, 0, 0, FORM_TEXT, NULL},
};
static const struct message body_parameter = {body_fields, COUNT_OF(body_fields), 6};
static const struct message query_parameter = {query_fields, COUNT_OF(query_fields), 23};
static const struct message path_parameter = {path_fields, COUNT_OF(path_fields), 22};

static const struct field response_fields[] = {
    {"description", 1, 0, 0, FORM_TEXT, NULL},
    {"schema", 2, 1, 0, FORM_ONE, &schema},
};
static const struct message response = {response_fields, COUNT_OF(response_fields), 5};

static const struct field operation_fields[] = {
    {"operationId", 5, 0, 0, FORM_TEXT, NULL},     {"produces", 6, 0, 0, FORM_TEXTS, NULL},
    {"consumes", 7, 0, 0, FORM_TEXTS, NULL},       {"parameters", 8, 1, 0, FORM_PARAMETERS, NULL},
    {"responses", 9, 1, 1, FORM_NAMED, &response},
};
static const struct message operation = {operation_fields, COUNT_OF(operation_fields), 13};

static const struct field path_item_fields[] = {
    {"get", 2, 0, 0, FORM_ONE, &operation},   {"put", 3, 0, 0, FORM_ONE, &operation},
    {"post", 4, 0, 0, FORM_ONE, &operation},  {"delete", 5, 0, 0, FORM_ONE, &operation},
    {"patch", 8, 0, 0, FORM_ONE, &operation}, {"parameters", 9, 1, 0, FORM_PARAMETERS, NULL},
};
static const struct message path_item = {path_item_fields, COUNT_OF(path_item_fields), 10};

/* Parameter{1: body}, or Parameter{2: {3: of the query | 4: of the path}} */
static enum status put_parameter(struct buf *to, const struct field *field,
                                 const struct json_node *node)
{
    AUTO(buf_fini) struct buf parameter = {0}, body = {0};
    const struct json_node *in = json_node_named(node, "in");
    bool of_body = json_node_is_text(in, "body"), of_path = json_node_is_text(in, "path");
    TRY(write_message(of_body   ? &body_parameter
                      : of_path ? &path_parameter
                                : &query_parameter,
                      node, &body));
    if (of_body)
        TRY(put_bytes(&parameter, 1, buf_slice(&body)));
    else
        TRY(put(&parameter, 2, of_path ? 4 : 3, buf_slice(&body)));
    return put(to, field->number, field->inner, buf_slice(&parameter));
}

/* -- Documents -- */

enum status gnostic_write_paths(const struct json_node *paths, struct buf *to)
{
    static const struct field field = {"paths", 8, 2, 0, FORM_NAMED, &path_item};
    return put_field(to, &field, paths);
}

enum status gnostic_write_definitions(const struct json_node *definitions, struct buf *to)
{
    static const struct field field = {"definitions", 9, 1, 0, FORM_NAMED, &schema};
    return put_field(to, &field, definitions);
}

enum status gnostic_write_head(const char *title, const char *version, struct buf *to)
{
    AUTO(buf_fini) struct buf info = {0};
    TRY(put_bytes(&info, 1, slice_from_text(title)));
    TRY(put_bytes(&info, 2, slice_from_text(version)));
    TRY(put_bytes(to, 1, SLICE_LITERAL("2.0")));
    return put_bytes(to, 2, buf_slice(&info));
}
