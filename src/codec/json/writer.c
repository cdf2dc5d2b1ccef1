#include "codec/json/writer.h"

#include "codec/json/plain.h"
#include "codec/utf8.h"

#include <inttypes.h>

void json_writer_init(struct json_writer *writer, struct buf *out)
{
    assert(writer);
    assert(out);
    *writer = (struct json_writer){.out = out, .status = ST_OK};
}

enum status json_writer_finish(const struct json_writer *writer)
{
    assert(writer->depth == 0);
    return writer->status;
}

static void put(struct json_writer *writer, struct slice bytes)
{
    if (writer->status == ST_OK)
        writer->status = buf_append(writer->out, bytes);
}

/* Writes the separator before a value or key, and notes that the next one needs one. */
static void put_separator(struct json_writer *writer)
{
    if (writer->needs_comma)
        put(writer, SLICE_LITERAL(","));
    writer->needs_comma = true;
}

static void begin(struct json_writer *writer, struct slice bracket)
{
    put_separator(writer);
    put(writer, bracket);
    writer->depth++;
    writer->needs_comma = false;
}

static void end(struct json_writer *writer, struct slice bracket)
{
    assert(writer->depth > 0);
    put(writer, bracket);
    writer->depth--;
    writer->needs_comma = true;
}

void json_begin_object(struct json_writer *writer)
{
    begin(writer, SLICE_LITERAL("{"));
}

void json_end_object(struct json_writer *writer)
{
    end(writer, SLICE_LITERAL("}"));
}

void json_begin_array(struct json_writer *writer)
{
    begin(writer, SLICE_LITERAL("["));
}

void json_end_array(struct json_writer *writer)
{
    end(writer, SLICE_LITERAL("]"));
}

/* Writes bytes without anything to escape. Bytes that are not UTF-8 are replaced one by one. */
static void put_beyond_ascii(struct json_writer *writer, struct slice run)
{
    size_t from = 0;
    for (size_t at = 0; at < run.len;) {
        size_t char_len = utf8_char_len(slice_sub(run, at, run.len - at));
        if (char_len) {
            at += char_len;
            continue;
        }
        put(writer, slice_sub(run, from, at - from));
        put(writer, SLICE_LITERAL("\\ufffd"));
        from = ++at;
    }
    put(writer, slice_sub(run, from, run.len - from));
}

static void put_escape(struct json_writer *writer, uint8_t byte)
{
    static const char hex[] = "0123456789abcdef";
    switch (byte) {
    case '"':
        put(writer, SLICE_LITERAL("\\\""));
        return;
    case '\\':
        put(writer, SLICE_LITERAL("\\\\"));
        return;
    case '\n':
        put(writer, SLICE_LITERAL("\\n"));
        return;
    case '\r':
        put(writer, SLICE_LITERAL("\\r"));
        return;
    case '\t':
        put(writer, SLICE_LITERAL("\\t"));
        return;
    default:
        break;
    }
    const char escape[] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};
    put(writer, slice_of(escape, sizeof(escape)));
}

static void put_quoted(struct json_writer *writer, struct slice text)
{
    put(writer, SLICE_LITERAL("\""));
    while (text.len) {
        bool beyond_ascii = false;
        const uint8_t *end = json_plain_end(text.ptr, text.ptr + text.len, &beyond_ascii);
        struct slice run = slice_sub(text, 0, (size_t)(end - text.ptr));
        if (beyond_ascii)
            put_beyond_ascii(writer, run);
        else
            put(writer, run);
        if (run.len == text.len)
            break;
        put_escape(writer, *end);
        text = slice_sub(text, run.len + 1, text.len - run.len - 1);
    }
    put(writer, SLICE_LITERAL("\""));
}

void json_key(struct json_writer *writer, const char *name)
{
    json_key_of(writer, slice_from_text(name));
}

void json_key_of(struct json_writer *writer, struct slice name)
{
    assert(writer->depth > 0);
    put_separator(writer);
    put_quoted(writer, name);
    put(writer, SLICE_LITERAL(":"));
    writer->needs_comma = false;
}

void json_string(struct json_writer *writer, struct slice text)
{
    put_separator(writer);
    put_quoted(writer, text);
}

void json_text(struct json_writer *writer, const char *text)
{
    json_string(writer, slice_from_text(text));
}

void json_strings(struct json_writer *writer, const struct slice *texts, size_t count)
{
    json_begin_array(writer);
    for (size_t i = 0; i < count; i++)
        json_string(writer, texts[i]);
    json_end_array(writer);
}

void json_i64(struct json_writer *writer, int64_t number)
{
    put_separator(writer);
    if (writer->status == ST_OK)
        writer->status = buf_append_format(writer->out, "%" PRId64, number);
}

void json_raw(struct json_writer *writer, struct slice json)
{
    put_separator(writer);
    if (writer->status == ST_OK)
        writer->status = buf_append(writer->out, json);
}

void json_u64(struct json_writer *writer, uint64_t number)
{
    put_separator(writer);
    if (writer->status == ST_OK)
        writer->status = buf_append_format(writer->out, "%" PRIu64, number);
}

void json_bool(struct json_writer *writer, bool truth)
{
    put_separator(writer);
    put(writer, truth ? SLICE_LITERAL("true") : SLICE_LITERAL("false"));
}

void json_null(struct json_writer *writer)
{
    put_separator(writer);
    put(writer, SLICE_LITERAL("null"));
}

void json_member_string(struct json_writer *writer, const char *name, struct slice text)
{
    json_key(writer, name);
    json_string(writer, text);
}

void json_member_text(struct json_writer *writer, const char *name, const char *text)
{
    json_key(writer, name);
    json_text(writer, text);
}

void json_member_i64(struct json_writer *writer, const char *name, int64_t number)
{
    json_key(writer, name);
    json_i64(writer, number);
}

void json_member_u64(struct json_writer *writer, const char *name, uint64_t number)
{
    json_key(writer, name);
    json_u64(writer, number);
}

void json_member_bool(struct json_writer *writer, const char *name, bool truth)
{
    json_key(writer, name);
    json_bool(writer, truth);
}

void json_member_raw(struct json_writer *writer, const char *name, struct slice json)
{
    json_key(writer, name);
    json_raw(writer, json);
}

void json_member_object(struct json_writer *writer, const char *name)
{
    json_key(writer, name);
    json_begin_object(writer);
}

void json_member_array(struct json_writer *writer, const char *name)
{
    json_key(writer, name);
    json_begin_array(writer);
}
