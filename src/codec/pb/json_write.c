#include "codec/pb/json_write.h"

#include "codec/base64.h"
#include "codec/pb/wire.h"

#include <stdlib.h>

enum json_write_expects {
    EXPECTS_TAG,
    EXPECTS_NUMBER,
    EXPECTS_LENGTH,
    EXPECTS_TEXT,   /* value_left bytes of a string */
    EXPECTS_BYTES,  /* value_left bytes for base64 */
    EXPECTS_PACKED, /* value_left bytes of numbers */
};

enum { FRAMES_FIRST = 4 };

void pb_json_writer_fini(struct pb_json_writer *w)
{
    free(w->frames);
    *w = (struct pb_json_writer){0};
}

static struct pb_json_frame *top(struct pb_json_writer *w)
{
    return &w->frames[w->frame_count - 1];
}

static enum status push(struct pb_json_writer *w, const struct pb_message *type, uint32_t bytes)
{
    if (w->frame_count == PB_JSON_FRAMES_MAX)
        return ST_LIMIT;
    if (w->frame_count == w->frame_capacity) {
        uint32_t more = w->frame_capacity ? 2 * w->frame_capacity : FRAMES_FIRST;
        void *frames = realloc(w->frames, more * sizeof(*w->frames));
        if (!frames)
            return ST_NOMEM;
        w->frames = frames;
        w->frame_capacity = more;
    }
    w->frames[w->frame_count++] = (struct pb_json_frame){.type = type, .left = bytes};
    return ST_OK;
}

/* -- Text -- */

static enum status put(struct buf *out, const char *text)
{
    return buf_append_text(out, text);
}

static enum status close_list(struct pb_json_frame *frame, struct buf *out)
{
    if (!frame->list)
        return ST_OK;
    frame->list = NULL;
    return put(out, "]");
}

/* Writes name and comma before a value, or only the comma within a list. */
static enum status put_name(struct pb_json_writer *w, struct buf *out)
{
    struct pb_json_frame *frame = top(w);
    const struct pb_field *field = w->field;
    if (frame->list == field)
        return put(out, ",");
    TRY(close_list(frame, out));
    struct slice name = slice_from_text(field->name);
    TRY(buf_reserve(out, name.len + 5));
    uint8_t *p = out->ptr + out->len;
    if (frame->any)
        *p++ = ',';
    *p++ = '"';
    slice_copy(p, name);
    p += name.len;
    *p++ = '"';
    *p++ = ':';
    if (field->label == PB_REPEATED) {
        *p++ = '[';
        frame->list = field;
    }
    frame->any = true;
    out->len = (size_t)(p - out->ptr);
    return ST_OK;
}

enum { DIGITS_MAX = 20 };

/* In quotes if it is a 64-bit number. */
static enum status put_digits(bool negative, uint64_t magnitude, bool quoted, struct buf *out)
{
    uint8_t digits[DIGITS_MAX], *first = digits + DIGITS_MAX;
    do
        *--first = (uint8_t)('0' + magnitude % 10);
    while (magnitude /= 10);
    TRY(buf_reserve(out, DIGITS_MAX + 3));
    uint8_t *p = out->ptr + out->len;
    if (quoted)
        *p++ = '"';
    if (negative)
        *p++ = '-';
    size_t len = (size_t)(digits + DIGITS_MAX - first);
    memcpy(p, first, len);
    p += len;
    if (quoted)
        *p++ = '"';
    out->len = (size_t)(p - out->ptr);
    return ST_OK;
}

static enum status put_signed(int64_t number, bool quoted, struct buf *out)
{
    return put_digits(number < 0, number < 0 ? 0 - (uint64_t)number : (uint64_t)number, quoted,
                      out);
}

static enum status put_enum(const struct pb_enum *e, int32_t number, struct buf *out)
{
    for (size_t i = 0; i < e->value_count; i++) {
        if (e->values[i].number == number)
            return buf_append_format(out, "\"%s\"", e->values[i].name);
    }
    return put_signed(number, false, out);
}

static enum status put_number(const struct pb_field *field, uint64_t number, struct buf *out)
{
    switch (field->kind) {
    case PB_KIND_BOOL:
        return put(out, number ? "true" : "false");
    case PB_KIND_INT32:
        return put_signed((int32_t)number, false, out);
    case PB_KIND_UINT32:
        return put_digits(false, (uint32_t)number, false, out);
    case PB_KIND_ENUM:
        return put_enum(field->enumeration, (int32_t)number, out);
    case PB_KIND_INT64:
        return put_signed((int64_t)number, true, out);
    default:
        return put_digits(false, number, true, out);
    }
}

static enum status put_base64(struct slice bytes, struct buf *out)
{
    size_t len = base64_encoded_len(bytes.len);
    TRY(buf_reserve(out, len));
    base64_encode(bytes, out->ptr + out->len);
    out->len += len;
    return ST_OK;
}

/* Encodes complete groups of three; the rest waits for the next piece or the end. */
static enum status put_bytes(struct pb_json_writer *w, struct slice bytes, struct buf *out)
{
    while (w->carry_len && w->carry_len < 3 && bytes.len) {
        w->carry[w->carry_len++] = bytes.ptr[0];
        bytes = slice_sub(bytes, 1, bytes.len - 1);
    }
    if (w->carry_len == 3 || (w->carry_len && w->value_left == 0)) {
        TRY(put_base64(slice_of(w->carry, w->carry_len), out));
        w->carry_len = 0;
    }
    size_t whole = w->value_left ? bytes.len - bytes.len % 3 : bytes.len;
    TRY(put_base64(slice_sub(bytes, 0, whole), out));
    struct slice rest = slice_sub(bytes, whole, bytes.len - whole);
    slice_copy(w->carry + w->carry_len, rest);
    w->carry_len = (uint8_t)(w->carry_len + rest.len);
    return ST_OK;
}

static enum status put_escape(uint8_t c, struct buf *out)
{
    static const char short_names[] = "btn\0fr"; /* from 8 on; 11 has none */
    if (c == '"' || c == '\\')
        return buf_append_format(out, "\\%c", c);
    if (c >= 8 && c <= 13 && c != 11)
        return buf_append_format(out, "\\%c", short_names[c - 8]);
    return buf_append_format(out, "\\u%04x", c);
}

static enum status put_text(struct slice text, struct buf *out)
{
    size_t from = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (c >= ' ' && c != '"' && c != '\\')
            continue;
        TRY(buf_append(out, slice_sub(text, from, i - from)));
        TRY(put_escape(c, out));
        from = i + 1;
    }
    return buf_append(out, slice_sub(text, from, text.len - from));
}

/* -- Bytes -- */

/* Closes every object that is complete. */
static enum status end_messages(struct pb_json_writer *w, struct buf *out)
{
    w->expects = EXPECTS_TAG;
    while (w->frame_count && top(w)->left == 0) {
        TRY(close_list(top(w), out));
        TRY(put(out, "}"));
        w->frame_count--;
    }
    return ST_OK;
}

static enum status end_value(struct pb_json_writer *w, struct buf *out)
{
    if (w->expects != EXPECTS_PACKED)
        TRY(put(out, "\""));
    return end_messages(w, out);
}

static enum status on_tag(struct pb_json_writer *w)
{
    const struct pb_message *type = top(w)->type;
    uint64_t number = w->number >> 3;
    w->field = number <= PB_NUMBER_MAX ? pb_field_find(type, (uint32_t)number) : NULL;
    /* Our encoders write no unknown fields. */
    if (!w->field || w->field->tag != w->number)
        return ST_MALFORMED;
    w->expects = (w->number & 7) == PB_WIRE_VARINT ? EXPECTS_NUMBER : EXPECTS_LENGTH;
    return top(w)->left ? ST_OK : ST_MALFORMED;
}

static enum status on_length(struct pb_json_writer *w, struct buf *out)
{
    const struct pb_field *field = w->field;
    if (w->number > top(w)->left)
        return ST_MALFORMED;
    uint32_t len = (uint32_t)w->number;
    top(w)->left -= len;
    if (field->kind < PB_KIND_STRING) {
        w->value_left = len;
        w->expects = EXPECTS_PACKED;
        return len ? ST_OK : ST_MALFORMED;
    }
    TRY(put_name(w, out));
    if (field->kind == PB_KIND_MESSAGE) {
        TRY(push(w, field->message, len));
        TRY(put(out, "{"));
        return end_messages(w, out);
    }
    TRY(put(out, "\""));
    w->value_left = len;
    w->expects = field->kind == PB_KIND_STRING ? EXPECTS_TEXT : EXPECTS_BYTES;
    return len ? ST_OK : end_value(w, out);
}

static enum status on_varint(struct pb_json_writer *w, struct buf *out)
{
    switch (w->expects) {
    case EXPECTS_TAG:
        return on_tag(w);
    case EXPECTS_LENGTH:
        return on_length(w, out);
    case EXPECTS_PACKED:
        TRY(put_name(w, out));
        TRY(put_number(w->field, w->number, out));
        return w->value_left ? ST_OK : end_value(w, out);
    default:
        TRY(put_name(w, out));
        TRY(put_number(w->field, w->number, out));
        return end_messages(w, out);
    }
}

static enum status feed_varint(struct pb_json_writer *w, uint8_t byte, struct buf *out)
{
    uint32_t *left = w->expects == EXPECTS_PACKED ? &w->value_left : &top(w)->left;
    if (*left == 0 || w->shift > 63)
        return ST_MALFORMED;
    --*left;
    if (w->shift == 0)
        w->number = 0;
    w->number |= (uint64_t)(byte & 0x7f) << w->shift;
    w->shift = (uint8_t)(w->shift + 7);
    if (byte >= 0x80)
        return *left ? ST_OK : ST_MALFORMED;
    w->shift = 0;
    return on_varint(w, out);
}

static enum status feed_value(struct pb_json_writer *w, struct slice piece, struct buf *out)
{
    w->value_left -= (uint32_t)piece.len;
    if (w->expects == EXPECTS_TEXT)
        TRY(put_text(piece, out));
    else
        TRY(put_bytes(w, piece, out));
    return w->value_left ? ST_OK : end_value(w, out);
}

enum status pb_json_begin(struct pb_json_writer *w, const struct pb_message *type,
                          uint32_t message_bytes, struct buf *out)
{
    assert(w->frame_count == 0);
    w->shift = 0;
    w->carry_len = 0;
    TRY(push(w, type, message_bytes));
    TRY(put(out, "{"));
    return end_messages(w, out);
}

enum status pb_json_feed(struct pb_json_writer *w, struct slice bytes, struct buf *out)
{
    while (bytes.len) {
        assert(w->frame_count > 0);
        size_t n = 1;
        if (w->expects == EXPECTS_TEXT || w->expects == EXPECTS_BYTES) {
            n = size_min(bytes.len, w->value_left);
            TRY(feed_value(w, slice_sub(bytes, 0, n), out));
        } else {
            TRY(feed_varint(w, bytes.ptr[0], out));
        }
        bytes = slice_sub(bytes, n, bytes.len - n);
    }
    return ST_OK;
}
