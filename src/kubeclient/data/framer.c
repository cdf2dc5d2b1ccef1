#include "kubeclient/data/framer.h"

#include "codec/json/plain.h"

enum { HELD_BYTES_KEPT = 64 << 10 };

/*
 *     none ──► container, string, scalar ──► none
 *       └─────────────────────────────────► invalid
 *
 *     none        between frames
 *     container   an object or an array, which ends with the bracket that closes it
 *     scalar      a number or a word, which ends with white space or punctuation
 */
enum framer_value {
    VALUE_NONE,
    VALUE_CONTAINER,
    VALUE_STRING,
    VALUE_SCALAR,
    VALUE_INVALID,
};

void framer_init(struct framer *framer, enum framer_format format)
{
    *framer = (struct framer){.format = format, .bytes_max = FRAMER_BYTES_MAX};
}

void framer_fini(struct framer *framer)
{
    buf_fini(&framer->held);
}

void framer_feed(struct framer *framer, struct slice bytes)
{
    assert(framer->piece.len == 0);
    framer->piece = bytes;
}

struct slice framer_take_rest(struct framer *framer)
{
    struct slice rest = framer->piece;
    framer->piece = SLICE_EMPTY;
    return rest;
}

/* -- Both formats -- */

static struct slice take(struct framer *framer, size_t n)
{
    struct slice bytes = slice_sub(framer->piece, 0, n);
    framer->piece = slice_sub(framer->piece, n, framer->piece.len - n);
    return bytes;
}

/* The next n bytes belong to the frame, and with them it is complete or not. */
static enum status add(struct framer *framer, size_t n, bool completes, struct slice *ret_frame)
{
    struct slice bytes = take(framer, n);
    framer->length += n;
    if (framer->length > framer->bytes_max) {
        framer->skips = true;
        buf_fini(&framer->held);
    }
    if (framer->skips) {
        bool skipped = completes;
        framer->skips = !completes;
        return skipped ? ST_LIMIT : ST_AGAIN;
    }
    if (completes && framer->held.len == 0) {
        *ret_frame = bytes;
        return ST_OK;
    }
    TRY(buf_append(&framer->held, bytes));
    if (!completes)
        return ST_AGAIN;
    framer->given = true;
    *ret_frame = buf_slice(&framer->held);
    return ST_OK;
}

static void drop_given(struct framer *framer)
{
    if (framer->given)
        buf_reset(&framer->held, HELD_BYTES_KEPT);
    framer->given = false;
}

/* -- Protobuf -- */

static size_t announced(const struct framer *framer)
{
    const uint8_t *head = framer->head;
    return (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
}

/* False: the head is incomplete. */
static bool read_head(struct framer *framer)
{
    while (framer->head_length < sizeof(framer->head) && framer->piece.len)
        framer->head[framer->head_length++] = take(framer, 1).ptr[0];
    return framer->head_length == sizeof(framer->head);
}

static enum status next_message(struct framer *framer, struct slice *ret_frame)
{
    if (!read_head(framer))
        return ST_AGAIN;
    size_t missing = announced(framer) - framer->length;
    size_t n = size_min(missing, framer->piece.len);
    if (announced(framer) > framer->bytes_max)
        framer->skips = true;
    enum status status = add(framer, n, n == missing, ret_frame);
    if (n == missing)
        framer->head_length = 0;
    return status;
}

enum status framer_expect(struct framer *framer, struct slice before, uint32_t bytes)
{
    assert(framer->format == FRAMER_PROTOBUF && framer->head_length == 0);
    drop_given(framer);
    TRY(buf_append(&framer->held, before));
    for (unsigned i = 0; i < sizeof(framer->head); i++)
        framer->head[i] = (uint8_t)(bytes >> (24 - 8 * i));
    framer->head_length = sizeof(framer->head);
    return ST_OK;
}

/* -- JSON -- */

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static enum framer_value value_of(uint8_t first)
{
    if (first == '{' || first == '[')
        return VALUE_CONTAINER;
    if (first == '"')
        return VALUE_STRING;
    bool begins = first == '-' || (first >= '0' && first <= '9') || (first >= 'a' && first <= 'z');
    return begins ? VALUE_SCALAR : VALUE_INVALID;
}

/* Passes the rest of a string. False: the piece ends within it. */
static bool pass_string(struct framer *framer, const uint8_t **at, const uint8_t *end)
{
    bool ignored = false;
    while (*at < end) {
        if (framer->escapes) {
            framer->escapes = false;
            ++*at;
            continue;
        }
        *at = json_plain_end(*at, end, &ignored);
        if (*at == end)
            return false;
        uint8_t c = *(*at)++;
        framer->escapes = c == '\\';
        if (c == '"') {
            framer->in_string = false;
            return true;
        }
    }
    return false;
}

/* Passes bytes of the container up to its end. False: the piece ends before. */
static bool pass_container(struct framer *framer, const uint8_t **at, const uint8_t *end)
{
    while (*at < end) {
        if (framer->in_string) {
            if (!pass_string(framer, at, end))
                return false;
            continue;
        }
        uint8_t c = *(*at)++;
        if (c == '"')
            framer->in_string = true;
        else if (c == '{' || c == '[')
            framer->depth++;
        else if ((c == '}' || c == ']') && --framer->depth == 0)
            return true;
    }
    return false;
}

static bool pass_scalar(const uint8_t **at, const uint8_t *end)
{
    while (*at < end && !is_space(**at) && !strchr("{}[]\",:", **at))
        ++*at;
    return *at < end;
}

static bool pass_value(struct framer *framer, const uint8_t **at, const uint8_t *end)
{
    if (framer->value == VALUE_CONTAINER)
        return pass_container(framer, at, end);
    if (framer->value == VALUE_STRING) {
        if (framer->length == 0 && !framer->in_string) { /* its first quote */
            framer->in_string = true;
            ++*at;
        }
        return pass_string(framer, at, end);
    }
    return pass_scalar(at, end);
}

static enum status next_value(struct framer *framer, struct slice *ret_frame)
{
    if (framer->value == VALUE_NONE) {
        size_t spaces = 0;
        while (spaces < framer->piece.len && is_space(framer->piece.ptr[spaces]))
            spaces++;
        take(framer, spaces);
        if (framer->piece.len == 0)
            return ST_AGAIN;
        framer->value = (uint8_t)value_of(framer->piece.ptr[0]);
    }
    if (framer->value == VALUE_INVALID) {
        framer->piece = SLICE_EMPTY; /* so that more may be fed all the same */
        return ST_MALFORMED;
    }
    if (framer->piece.len == 0)
        return ST_AGAIN;
    const uint8_t *start = framer->piece.ptr, *at = start;
    bool completes = pass_value(framer, &at, start + framer->piece.len);
    enum status status = add(framer, (size_t)(at - start), completes, ret_frame);
    if (completes)
        framer->value = VALUE_NONE;
    return status;
}

/* -- Results -- */

enum status framer_next(struct framer *framer, struct slice *ret_frame)
{
    drop_given(framer);
    enum status status = framer->format == FRAMER_JSON ? next_value(framer, ret_frame)
                                                       : next_message(framer, ret_frame);
    if (status == ST_OK || status == ST_LIMIT)
        framer->length = 0;
    return status;
}

bool framer_is_cut_off(const struct framer *framer)
{
    if (framer->format == FRAMER_PROTOBUF)
        return framer->head_length > 0;
    /* The end of the body ends a number or a word, which is not an event anyway. */
    return framer->value != VALUE_NONE && framer->value != VALUE_INVALID;
}

void framer_check(const struct framer *framer)
{
    assert(framer->skips || framer->length <= framer->bytes_max);
    assert(!framer->skips || framer->held.len == 0);
    assert(framer->head_length <= sizeof(framer->head));
    assert(framer->value != VALUE_NONE || (framer->depth == 0 && !framer->in_string));
    assert(!framer->escapes || framer->in_string);
}
