#include "cmd/cel/show.h"

#include "cel/library/convert.h"
#include "cel/value/container.h"
#include "codec/base64.h"
#include "codec/json/writer.h"

#include <math.h>

struct shower {
    struct cel_work *work;
    struct buf *to;
    bool as_json;
    enum status status; /* nothing is written after a failure */
};

static void show(struct shower *s, struct cel_value value);

static void put(struct shower *s, const char *text)
{
    if (s->status == ST_OK)
        s->status = buf_append_text(s->to, text);
}

static void put_slice(struct shower *s, struct slice text)
{
    if (s->status == ST_OK)
        s->status = buf_append(s->to, text);
}

static void put_quoted(struct shower *s, struct slice text)
{
    struct json_writer writer;
    if (s->status != ST_OK)
        return;
    json_writer_init(&writer, s->to);
    json_string(&writer, text);
    s->status = json_writer_finish(&writer);
}

/* string(value) */
static struct slice text_of(struct shower *s, struct cel_value value)
{
    struct cel_value text = cel_to_string(s->work, &value);
    return text.kind == CEL_STRING ? cel_text(text) : slice_from_text(cel_value_type_name(value));
}

/* function("text"), or only the text in JSON. */
static void show_call(struct shower *s, const char *function, struct slice text)
{
    if (!s->as_json) {
        put(s, function);
        put(s, "(");
    }
    put_quoted(s, text);
    if (!s->as_json)
        put(s, ")");
}

static void show_double(struct shower *s, struct cel_value value)
{
    struct slice text = text_of(s, value);
    /* Neither JSON nor CEL has a literal for infinity and NaN. CEL converts them from texts. */
    if (!isfinite(value.number)) {
        show_call(s, "double", text);
        return;
    }
    put_slice(s, text);
    bool looks_like_int = !memchr(text.ptr, '.', text.len) && !memchr(text.ptr, 'e', text.len);
    /* Without a fraction the output would be an int when it is used as an expression again. */
    if (looks_like_int && !s->as_json)
        put(s, ".0");
}

static void show_bytes(struct shower *s, struct slice bytes)
{
    static const char digits[] = "0123456789abcdef";
    if (s->as_json) {
        size_t len = base64_encoded_len(bytes.len);
        uint8_t *text = arena_alloc(s->work->arena, len + 1);
        if (!text) {
            s->status = ST_NOMEM;
            return;
        }
        base64_encode(bytes, text);
        put_quoted(s, slice_of(text, len));
        return;
    }
    put(s, "b\"");
    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t byte = bytes.ptr[i];
        bool is_plain = byte >= ' ' && byte < 0x7f && byte != '"' && byte != '\\';
        char escaped[] = {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
        put_slice(s, is_plain ? slice_of(&byte, 1) : slice_of(escaped, sizeof(escaped)));
    }
    put(s, "\"");
}

/* In JSON a key is a text. */
static void show_key(struct shower *s, struct cel_value key)
{
    if (s->as_json)
        put_quoted(s, text_of(s, key));
    else
        show(s, key);
}

static void show_container(struct shower *s, struct cel_value value)
{
    struct cel_walk walk;
    struct cel_value key, item;
    bool is_map = value.kind == CEL_MAP, is_first = true;
    put(s, is_map ? "{" : "[");
    cel_walk_init(&walk, s->work, value);
    while (s->status == ST_OK && cel_walk_next(&walk, &key, &item)) {
        if (!is_first)
            put(s, s->as_json ? "," : ", ");
        is_first = false;
        if (is_map) {
            show_key(s, key);
            put(s, s->as_json ? ":" : ": ");
        }
        show(s, item);
    }
    put(s, is_map ? "}" : "]");
}

static void show_optional(struct shower *s, const struct cel_value *some)
{
    if (s->as_json && some) {
        show(s, *some);
    } else if (some) {
        put(s, "optional.of(");
        show(s, *some);
        put(s, ")");
    } else {
        put(s, s->as_json ? "null" : "optional.none()");
    }
}

static void show(struct shower *s, struct cel_value value)
{
    switch ((enum cel_value_kind)value.kind) {
    case CEL_NULL:
        put(s, "null");
        break;
    case CEL_BOOL:
        put(s, value.truth ? "true" : "false");
        break;
    case CEL_INT:
    case CEL_UINT:
        put_slice(s, text_of(s, value));
        put(s, value.kind == CEL_UINT && !s->as_json ? "u" : "");
        break;
    case CEL_DOUBLE:
        show_double(s, value);
        break;
    case CEL_STRING:
    case CEL_ERROR:
        put_quoted(s, cel_text(value));
        break;
    case CEL_BYTES:
        show_bytes(s, cel_text(value));
        break;
    case CEL_DURATION:
        show_call(s, "duration", text_of(s, value));
        break;
    case CEL_TIMESTAMP:
        show_call(s, "timestamp", text_of(s, value));
        break;
    case CEL_LIST:
    case CEL_MAP:
        show_container(s, value);
        break;
    case CEL_TYPE_VALUE:
        if (s->as_json)
            put_quoted(s, slice_from_text(value.type->name));
        else
            put(s, value.type->name);
        break;
    case CEL_OPTIONAL:
        show_optional(s, value.some);
        break;
    case CEL_OPAQUE:
        show_call(s, cel_value_type_name(value), text_of(s, value));
        break;
    default:
        put(s, "null");
        break;
    }
}

enum status cel_show(struct cel_work *work, struct cel_value value, bool as_json, struct buf *to)
{
    struct shower s = {.work = work, .to = to, .as_json = as_json};
    show(&s, value);
    return s.status;
}
