#include "codec/pb/text_write.h"

#include <stdarg.h>
#include <stdio.h>

struct text {
    char *dst;
    size_t len, room;
};

static void put(struct text *text, const char *format, ...) PRINTF_LIKE(2, 3);

static void put(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text->dst + text->len, text->room - text->len, format, args);
    va_end(args);
    text->len = size_min(text->len + (size_t)n, text->room - 1);
}

static bool is_full(const struct text *text)
{
    return text->len + 1 >= text->room;
}

static void put_bytes(struct text *text, struct slice bytes)
{
    put(text, "\"");
    for (size_t i = 0; i < bytes.len && !is_full(text); i++) {
        uint8_t c = bytes.ptr[i];
        if (c == '"' || c == '\\')
            put(text, "\\%c", c);
        else if (c >= 0x20 && c < 0x7f)
            put(text, "%c", c);
        else
            put(text, "\\%03o", c);
    }
    put(text, "\"");
}

static void put_message(struct text *text, const struct pb_message *type, const void *message);

static void put_enum(struct text *text, const struct pb_enum *type, int32_t number)
{
    for (size_t i = 0; i < type->value_count; i++) {
        if (type->values[i].number == number) {
            put(text, "%s", type->values[i].name);
            return;
        }
    }
    put(text, "%d", number);
}

/* at: the value, or an item of a repeated field. */
static void put_value(struct text *text, const struct pb_field *field, const void *at)
{
    switch ((enum pb_kind)field->kind) {
    case PB_KIND_BOOL:
        put(text, "%s", *(const bool *)at ? "true" : "false");
        break;
    case PB_KIND_INT32:
        put(text, "%d", *(const int32_t *)at);
        break;
    case PB_KIND_UINT32:
        put(text, "%u", *(const uint32_t *)at);
        break;
    case PB_KIND_ENUM:
        put_enum(text, field->enumeration, *(const int32_t *)at);
        break;
    case PB_KIND_INT64:
        put(text, "%lld", (long long)*(const int64_t *)at);
        break;
    case PB_KIND_UINT64:
        put(text, "%llu", (unsigned long long)*(const uint64_t *)at);
        break;
    case PB_KIND_STRING:
    case PB_KIND_BYTES:
        put_bytes(text, *(const struct slice *)at);
        break;
    case PB_KIND_MESSAGE:
        put_message(text, field->message, *(const void *const *)at);
        break;
    }
}

static bool is_set(const struct pb_field *field, const void *message)
{
    const char *at = (const char *)message + field->offset;
    if (field->label == PB_REPEATED)
        return ((const struct pb_array *)at)->count > 0;
    if (field->label == PB_ONEOF)
        return *(const uint32_t *)((const char *)message + field->case_offset) ==
               pb_field_number(field);
    if (field->kind == PB_KIND_BYTES || field->kind == PB_KIND_STRING)
        return ((const struct slice *)at)->len > 0;
    for (size_t i = 0; i < field->item_bytes; i++)
        if (at[i])
            return true;
    return false;
}

static bool is_bytes(const struct pb_field *field)
{
    return field->kind == PB_KIND_BYTES || field->kind == PB_KIND_STRING;
}

/* Items of a list are in one pair of brackets, as etcd shows operations. */
static void put_list(struct text *text, const struct pb_field *field, const void *at)
{
    const struct pb_array *array = at;
    put(text, "%s:<", field->name);
    for (size_t i = 0; i < array->count && !is_full(text); i++) {
        const char *item = (const char *)array->items + i * field->item_bytes;
        put(text, "%s", i ? " " : "");
        if (field->kind == PB_KIND_MESSAGE)
            put_message(text, field->message, item);
        else
            put_value(text, field, item);
    }
    put(text, ">");
}

static void put_field(struct text *text, const struct pb_field *field, const void *message)
{
    const char *at = (const char *)message + field->offset;
    if (field->label == PB_REPEATED) {
        put_list(text, field, at);
    } else if (is_bytes(field) && strcmp(field->name, "value") == 0) {
        put(text, "value_size:%zu", ((const struct slice *)at)->len);
    } else if (strstr(field->name, "assword") || strstr(field->name, "token")) {
        put(text, "%s:***", field->name);
    } else if (field->kind == PB_KIND_MESSAGE) {
        put(text, "%s:<", field->name);
        put_value(text, field, at);
        put(text, ">");
    } else {
        put(text, "%s:", field->name);
        put_value(text, field, at);
    }
}

static void put_message(struct text *text, const struct pb_message *type, const void *message)
{
    bool first = true;
    for (size_t i = 0; message && i < type->field_count && !is_full(text); i++) {
        if (!is_set(&type->fields[i], message))
            continue;
        put(text, "%s", first ? "" : " ");
        put_field(text, &type->fields[i], message);
        first = false;
    }
}

size_t pb_text_write(const struct pb_message *type, const void *message, char *dst, size_t room)
{
    assert(room > 0);
    struct text text = {.dst = dst, .room = room};
    dst[0] = 0;
    put_message(&text, type, message);
    return text.len;
}
