#include "cmd/ctl/print/go_json.h"

#include "base/xalloc.h"
#include "codec/base64.h"
#include "codec/utf8.h"

#include <inttypes.h>

/* -- texts -- */

/* Writes one character of a text; returns its length. What is not UTF-8 becomes one U+FFFD a byte.
 */
static size_t write_character(FILE *to, struct slice rest)
{
    uint8_t c = rest.ptr[0];
    static const char *const short_forms[32] = {
        ['\b'] = "\\b", ['\t'] = "\\t", ['\n'] = "\\n", ['\f'] = "\\f", ['\r'] = "\\r"};
    if (c < 32 && short_forms[c]) {
        fputs(short_forms[c], to);
    } else if (c < 32 || c == '<' || c == '>' || c == '&') {
        fprintf(to, "\\u%04x", c);
    } else if (c == '"' || c == '\\') {
        fprintf(to, "\\%c", c);
    } else if (c < 0x80) {
        fputc(c, to);
    } else {
        size_t len = utf8_char_len(rest);
        if (!len) {
            fputs("\\ufffd", to);
            return 1;
        }
        if (len == 3 && rest.ptr[0] == 0xe2 && rest.ptr[1] == 0x80 && (rest.ptr[2] | 1) == 0xa9)
            fprintf(to, "\\u202%c", '0' + (rest.ptr[2] & 15));
        else
            fwrite(rest.ptr, 1, len, to);
        return len;
    }
    return 1;
}

void go_json_text(FILE *to, struct slice text)
{
    fputc('"', to);
    while (text.len) {
        size_t len = write_character(to, text);
        text = slice_sub(text, len, text.len - len);
    }
    fputc('"', to);
}

void go_json_bytes(FILE *to, struct slice bytes)
{
    size_t len = base64_encoded_len(bytes.len);
    uint8_t *encoded = xmalloc(len + 1);
    base64_encode(bytes, encoded);
    fputc('"', to);
    fwrite(encoded, 1, len, to);
    fputc('"', to);
    free(encoded);
}

/* -- values -- */

static bool is_id(const struct pb_field *field)
{
    return field->kind == PB_KIND_UINT64 &&
           (strcmp(field->name, "cluster_id") == 0 || strcmp(field->name, "member_id") == 0 ||
            strcmp(field->name, "ID") == 0);
}

static bool is_zero(const struct pb_field *field, const void *value)
{
    static const char zeros[PB_ITEM_BYTES_MAX];
    struct slice text;
    if (field->kind == PB_KIND_STRING || field->kind == PB_KIND_BYTES) {
        memcpy(&text, value, sizeof(text));
        return text.len == 0;
    }
    return memcmp(value, zeros, field->item_bytes) == 0;
}

static void write_text(FILE *to, bool is_text, const void *value)
{
    struct slice bytes;
    memcpy(&bytes, value, sizeof(bytes));
    if (is_text)
        go_json_text(to, bytes);
    else
        go_json_bytes(to, bytes);
}

static void write_number(const struct go_json *json, const struct pb_field *field,
                         const void *value)
{
    bool hex = json->hex_ids && is_id(field);
    switch (field->kind) {
    case PB_KIND_UINT32:
        fprintf(json->to, "%" PRIu32, *(const uint32_t *)value);
        return;
    case PB_KIND_INT64:
        fprintf(json->to, "%" PRId64, *(const int64_t *)value);
        return;
    case PB_KIND_UINT64:
        fprintf(json->to, hex ? "\"%" PRIx64 "\"" : "%" PRIu64, *(const uint64_t *)value);
        return;
    default:
        fprintf(json->to, "%" PRId32, *(const int32_t *)value);
    }
}

static void write_value(const struct go_json *json, const struct pb_field *field, const void *value)
{
    switch (field->kind) {
    case PB_KIND_BOOL:
        fputs(*(const bool *)value ? "true" : "false", json->to);
        return;
    case PB_KIND_STRING:
    case PB_KIND_BYTES:
        write_text(json->to, field->kind == PB_KIND_STRING, value);
        return;
    case PB_KIND_MESSAGE:
        go_json_message(json, field->message,
                        field->label == PB_REPEATED ? value : *(const void *const *)value);
        return;
    default:
        write_number(json, field, value);
    }
}

static void write_array(const struct go_json *json, const struct pb_field *field,
                        const struct pb_array *array)
{
    fputc('[', json->to);
    for (size_t i = 0; i < array->count; i++) {
        if (i)
            fputc(',', json->to);
        write_value(json, field, (const char *)array->items + i * field->item_bytes);
    }
    fputc(']', json->to);
}

/* "response_put" is ResponsePut in Go. */
static void write_go_name(FILE *to, const char *name)
{
    bool upper = true;
    for (; *name; name++) {
        if (*name == '_') {
            upper = true;
            continue;
        }
        fputc(upper && *name >= 'a' && *name <= 'z' ? *name - 32 : *name, to);
        upper = false;
    }
}

/* The name of the field of a oneof is that of the oneof, whose value has one field. All oneofs of
 * etcd's answers are those of ResponseOp. */
static void write_oneof(const struct go_json *json, const struct pb_field *field, const void *value)
{
    fputs("\"Response\":{\"", json->to);
    if (json->go_names)
        write_go_name(json->to, field->name);
    else
        fputs(field->name, json->to);
    fputs("\":", json->to);
    write_value(json, field, value);
    fputc('}', json->to);
}

/* Whether Go leaves the field out. */
static bool is_left_out(const struct go_json *json, const struct pb_field *field,
                        const void *message)
{
    const char *value = (const char *)message + field->offset;
    if (field->label == PB_REPEATED)
        return ((const struct pb_array *)(const void *)value)->count == 0;
    if (field->label == PB_ONEOF) {
        uint32_t set;
        memcpy(&set, (const char *)message + field->case_offset, sizeof(set));
        return set != pb_field_number(field);
    }
    return is_zero(field, value) && !(json->hex_ids && is_id(field));
}

bool go_json_fields(const struct go_json *json, const struct pb_message *type, const void *message)
{
    bool any = false;
    for (size_t i = 0; i < type->field_count; i++) {
        const struct pb_field *field = &type->fields[i];
        const void *value = (const char *)message + field->offset;
        if (is_left_out(json, field, message))
            continue;
        if (any)
            fputc(',', json->to);
        any = true;
        if (field->label == PB_ONEOF) {
            write_oneof(json, field, value);
            continue;
        }
        fprintf(json->to, "\"%s\":", field->name);
        if (field->label == PB_REPEATED)
            write_array(json, field, value);
        else
            write_value(json, field, value);
    }
    return any;
}

void go_json_message(const struct go_json *json, const struct pb_message *type, const void *message)
{
    fputc('{', json->to);
    go_json_fields(json, type, message);
    fputc('}', json->to);
}
