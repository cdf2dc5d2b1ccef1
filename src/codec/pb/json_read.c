#include "codec/pb/json_read.h"

#include "codec/base64.h"
#include "codec/json/number.h"
#include "codec/json/string.h"
#include "codec/pb/wire.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    QUOTED_BYTES_MAX = 200, /* limit on the length of a token in an error */
    NAME_BYTES_MAX = 128,   /* an escaped name that is longer does not name a field */
    NUMBER_BYTES_MAX = 64,
    FIELDS_MAX = 64,
};

struct pb_json_reader {
    struct json_scanner scanner;
    struct buf *out;
    char *error;
    unsigned depth;
};

static enum status read_message(struct pb_json_reader *r, const struct pb_message *type,
                                enum json_token token);

/* -- Errors -- */

/* Line and column of a token as Go counts them: from one, in characters. */
static void place_of(const struct pb_json_reader *r, size_t *ret_line, size_t *ret_column)
{
    size_t line = 1, column = 1, end = json_position(&r->scanner);
    for (size_t i = 0; i < end; i++) {
        uint8_t c = r->scanner.start[i];
        if (c == '\n') {
            line++;
            column = 1;
        } else if ((c & 0xc0) != 0x80) {
            column++;
        }
    }
    *ret_line = line;
    *ret_column = column;
}

static PRINTF_LIKE(3, 4) enum status
    refuse(const struct pb_json_reader *r, bool syntax, const char *format, ...)
{
    size_t line, column;
    place_of(r, &line, &column);
    int n = snprintf(r->error, PB_JSON_ERROR_BYTES,
                     "proto: %s(line %zu:%zu): ", syntax ? "syntax error " : "", line, column);
    va_list args;
    va_start(args, format);
    vsnprintf(r->error + n, PB_JSON_ERROR_BYTES - (size_t)n, format, args);
    va_end(args);
    return ST_INVALID;
}

/* For "%.*s": the token, truncated to what an error can hold. */
static struct slice quoted(const struct pb_json_reader *r)
{
    return slice_of(r->scanner.raw.ptr, size_min(r->scanner.raw.len, QUOTED_BYTES_MAX));
}

static enum status unexpected(const struct pb_json_reader *r)
{
    return refuse(r, true, "unexpected token %.*s", SLICE_ARGS(quoted(r)));
}

static enum status bad_value(const struct pb_json_reader *r, const struct pb_field *field)
{
    static const char *const kinds[] = {
        [PB_KIND_BOOL] = "bool",     [PB_KIND_INT32] = "int32", [PB_KIND_UINT32] = "uint32",
        [PB_KIND_ENUM] = "enum",     [PB_KIND_INT64] = "int64", [PB_KIND_UINT64] = "uint64",
        [PB_KIND_STRING] = "string", [PB_KIND_BYTES] = "bytes", [PB_KIND_MESSAGE] = "message",
    };
    return refuse(r, false, "invalid value for %s field %s: %.*s", kinds[field->kind],
                  field->json_name, SLICE_ARGS(quoted(r)));
}

/* -- Tokens -- */

/* The next token; strings are checked for UTF-8, also where they are ignored. */
static enum status next(struct pb_json_reader *r, enum json_token *ret_token)
{
    struct json_scanner *s = &r->scanner;
    *ret_token = json_next(s);
    if (*ret_token == JSON_FAULT) {
        snprintf(r->error, PB_JSON_ERROR_BYTES, "proto: unexpected EOF");
        return ST_INVALID;
    }
    bool text = *ret_token == JSON_KEY || *ret_token == JSON_STRING;
    if (text && (s->escaped || s->beyond_ascii)) {
        size_t ignored;
        enum json_string_fault fault = json_string_decode(s->raw, NULL, &ignored);
        if (fault != JSON_STRING_FINE)
            return refuse(r, true,
                          fault == JSON_STRING_NOT_UTF8 ? "invalid UTF-8 in string"
                                                        : "invalid escape code in string");
    }
    return ST_OK;
}

static enum status skip(struct pb_json_reader *r)
{
    enum json_token token;
    uint32_t depth = r->scanner.depth;
    do
        TRY(next(r, &token));
    while (r->scanner.depth > depth);
    return ST_OK;
}

/* The decoded token if it fits into `room` bytes, or false. */
static bool get_text(struct pb_json_reader *r, uint8_t *dst, size_t room, struct slice *ret_text)
{
    if (r->scanner.escaped && r->scanner.raw.len > room)
        return false;
    return json_string_get(&r->scanner, dst, ret_text) == JSON_STRING_FINE;
}

/* -- Bytes -- */

static enum status put_varint(struct pb_json_reader *r, uint64_t value)
{
    TRY(buf_reserve(r->out, PB_VARINT_BYTES_MAX));
    r->out->len = (size_t)(pb_varint_write(r->out->ptr + r->out->len, value) - r->out->ptr);
    return ST_OK;
}

/* Inserts the length before the value that was written from `from` on. */
static enum status put_length_before(struct pb_json_reader *r, size_t from)
{
    uint8_t head[PB_VARINT_BYTES_MAX];
    size_t len = r->out->len - from;
    size_t head_len = (size_t)(pb_varint_write(head, len) - head);
    TRY(buf_reserve(r->out, head_len));
    uint8_t *at = r->out->ptr + from;
    memmove(at + head_len, at, len);
    memcpy(at, head, head_len);
    r->out->len += head_len;
    return ST_OK;
}

/* -- Values -- */

static bool is_number(const struct pb_field *field)
{
    return field->kind < PB_KIND_STRING;
}

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_word(uint8_t c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '-' ||
           c == '+' || c == '.' || c == '_';
}

/* A number in a string. Go reads the first one and ignores what follows. */
static bool first_number(struct slice text, struct slice *ret_number)
{
    struct json_scanner s;
    if (text.len == 0 || is_space(text.ptr[0]) || is_space(text.ptr[text.len - 1]))
        return false;
    json_scanner_init(&s, text);
    if (json_next(&s) != JSON_NUMBER || (s.at < s.end && is_word(*s.at)))
        return false;
    *ret_number = s.raw;
    return true;
}

static bool in_range(const struct pb_field *field, int64_t number)
{
    switch (field->kind) {
    case PB_KIND_UINT32:
        return number >= 0 && number <= UINT32_MAX;
    case PB_KIND_INT32:
    case PB_KIND_ENUM:
        return number >= INT32_MIN && number <= INT32_MAX;
    default:
        return true;
    }
}

static bool read_digits(const struct pb_field *field, struct slice text, uint64_t *ret_number)
{
    int64_t number;
    if (field->kind == PB_KIND_UINT64)
        return json_number_u64(text, ret_number);
    if (!json_number_i64(text, &number) || !in_range(field, number))
        return false;
    *ret_number = (uint64_t)number;
    return true;
}

static bool read_enum_name(const struct pb_field *field, struct slice name, uint64_t *ret_number)
{
    const struct pb_enum *e = field->enumeration;
    for (size_t i = 0; i < e->value_count; i++) {
        if (slice_equal(name, slice_from_text(e->values[i].name))) {
            *ret_number = (uint64_t)(int64_t)e->values[i].number;
            return true;
        }
    }
    return false;
}

/* ret_known: false for an unknown name of an enum value. */
static enum status read_number(struct pb_json_reader *r, const struct pb_field *field,
                               enum json_token token, uint64_t *ret_number, bool *ret_known)
{
    uint8_t room[NUMBER_BYTES_MAX];
    struct slice text = r->scanner.raw;
    *ret_known = true;
    if (field->kind == PB_KIND_BOOL) {
        *ret_number = token == JSON_TRUE;
        return token == JSON_TRUE || token == JSON_FALSE ? ST_OK : bad_value(r, field);
    }
    if (token == JSON_STRING && field->kind == PB_KIND_ENUM) {
        *ret_known =
            get_text(r, room, sizeof(room), &text) && read_enum_name(field, text, ret_number);
        return ST_OK;
    }
    bool valid =
        token == JSON_NUMBER || (token == JSON_STRING && get_text(r, room, sizeof(room), &text) &&
                                 first_number(text, &text));
    return valid && read_digits(field, text, ret_number) ? ST_OK : bad_value(r, field);
}

/* Appends the bytes of a string or bytes value, without tag and length. */
static enum status read_text(struct pb_json_reader *r, const struct pb_field *field,
                             enum json_token token)
{
    if (token != JSON_STRING)
        return bad_value(r, field);
    TRY(buf_reserve(r->out, r->scanner.raw.len + 3));
    uint8_t *dst = r->out->ptr + r->out->len;
    struct slice text;
    enum json_string_fault fault = json_string_get(&r->scanner, dst, &text);
    assert(fault == JSON_STRING_FINE); /* checked in next() */
    size_t len = text.len;
    if (field->kind == PB_KIND_STRING)
        memmove(dst, text.ptr, text.len);
    else if (!base64_decode(text, dst, &len))
        return bad_value(r, field);
    r->out->len += len;
    return ST_OK;
}

/* Appends one value with its tag, unless it is a default that is left out. */
static enum status read_value(struct pb_json_reader *r, const struct pb_field *field,
                              enum json_token token)
{
    size_t start = r->out->len;
    bool explicit = field->label != PB_SINGULAR;
    if (is_number(field)) {
        uint64_t number;
        bool known;
        TRY(read_number(r, field, token, &number, &known));
        if (!known || (!explicit && number == 0))
            return ST_OK;
        TRY(put_varint(r, field->tag));
        return put_varint(r, number);
    }
    TRY(put_varint(r, field->tag));
    size_t from = r->out->len;
    if (field->kind == PB_KIND_MESSAGE)
        TRY(read_message(r, field->message, token));
    else
        TRY(read_text(r, field, token));
    if (r->out->len == from && !explicit && field->kind != PB_KIND_MESSAGE) {
        r->out->len = start;
        return ST_OK;
    }
    return put_length_before(r, from);
}

/* Numbers of a list are packed behind one tag. */
static enum status read_packed(struct pb_json_reader *r, const struct pb_field *field)
{
    size_t start = r->out->len, from;
    enum json_token token;
    TRY(put_varint(r, field->tag));
    from = r->out->len;
    for (;;) {
        uint64_t number;
        bool known;
        TRY(next(r, &token));
        if (token == JSON_ARRAY_END)
            break;
        TRY(read_number(r, field, token, &number, &known));
        if (known)
            TRY(put_varint(r, number));
    }
    if (r->out->len == from) {
        r->out->len = start;
        return ST_OK;
    }
    return put_length_before(r, from);
}

static enum status read_list(struct pb_json_reader *r, const struct pb_field *field,
                             enum json_token token)
{
    if (token != JSON_ARRAY)
        return unexpected(r);
    if (is_number(field))
        return read_packed(r, field);
    for (;;) {
        TRY(next(r, &token));
        if (token == JSON_ARRAY_END)
            return ST_OK;
        TRY(read_value(r, field, token));
    }
}

/* -- Messages -- */

/* The fields of one message that occurred so far. */
struct seen {
    uint64_t fields; /* a bit for each, by its index */
    uint64_t unions; /* the same for the members of a oneof that have a value */
};

static const struct pb_field *find_field(const struct pb_message *type, struct slice name)
{
    for (size_t i = 0; i < type->field_count; i++) {
        if (slice_equal(name, slice_from_text(type->fields[i].json_name)))
            return &type->fields[i];
    }
    for (size_t i = 0; i < type->field_count; i++) {
        if (slice_equal(name, slice_from_text(type->fields[i].name)))
            return &type->fields[i];
    }
    return NULL;
}

static bool union_is_set(const struct pb_message *type, const struct seen *seen,
                         const struct pb_field *field)
{
    for (size_t i = 0; i < type->field_count; i++) {
        if ((seen->unions >> i & 1) && type->fields[i].case_offset == field->case_offset)
            return true;
    }
    return false;
}

static enum status read_field(struct pb_json_reader *r, const struct pb_message *type,
                              struct seen *seen)
{
    uint8_t room[NAME_BYTES_MAX];
    struct slice name;
    struct slice raw = quoted(r);
    const struct pb_field *field = NULL;
    if (get_text(r, room, sizeof(room), &name))
        field = find_field(type, name);
    if (!field)
        return skip(r);
    uint64_t bit = UINT64_C(1) << (field - type->fields);
    if (seen->fields & bit)
        return refuse(r, false, "duplicate field %.*s", SLICE_ARGS(raw));
    seen->fields |= bit;
    if (field->label == PB_ONEOF && union_is_set(type, seen, field)) {
        struct json_scanner here = r->scanner;
        if (json_next(&here) != JSON_NULL)
            return refuse(r, false, "error parsing %.*s, oneof of %s is already set",
                          SLICE_ARGS(raw), type->name);
    }
    enum json_token token;
    TRY(next(r, &token));
    if (token == JSON_NULL)
        return ST_OK;
    if (field->label == PB_ONEOF)
        seen->unions |= bit;
    return field->label == PB_REPEATED ? read_list(r, field, token) : read_value(r, field, token);
}

static enum status read_message(struct pb_json_reader *r, const struct pb_message *type,
                                enum json_token token)
{
    struct seen seen = {0};
    assert(type->field_count <= FIELDS_MAX);
    if (token != JSON_OBJECT)
        return unexpected(r);
    if (r->depth == PB_DEPTH_MAX) {
        snprintf(r->error, PB_JSON_ERROR_BYTES, "proto: exceeded max recursion depth");
        return ST_LIMIT;
    }
    r->depth++;
    for (;;) {
        TRY(next(r, &token));
        if (token == JSON_OBJECT_END)
            break;
        TRY(read_field(r, type, &seen));
    }
    r->depth--;
    return ST_OK;
}

enum status pb_json_read(const struct pb_message *type, struct slice json, struct buf *out,
                         char error[PB_JSON_ERROR_BYTES])
{
    struct pb_json_reader r;
    r.out = out;
    r.error = error;
    r.depth = 0;
    error[0] = '\0';
    enum json_token token;
    json_scanner_init(&r.scanner, json);
    TRY(next(&r, &token));
    return read_message(&r, type, token);
}
