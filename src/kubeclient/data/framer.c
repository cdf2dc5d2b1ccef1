#include "kubeclient/data/framer.h"

#include "codec/json/plain.h"

/* Size of a buffer that is kept while pieces follow each other. */
enum { KEPT_BYTES_MAX = 64 << 10 };

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

/* The buffer is kept for the next frame that is cut: buffers of every size between the objects of a
 * long list would leave holes in the heap. */
static void drop_given(struct framer *framer)
{
    if (framer->given)
        buf_reset(&framer->held, KEPT_BYTES_MAX);
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

/* Passes bytes of the container up to its end. False: `end` comes before. */
static bool pass_bytes(struct framer *framer, const uint8_t **at, const uint8_t *end)
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

/* A bit for each byte of a block, the lowest for the first. */
struct block {
    uint64_t quotes, backslashes, opening, closing;
};

enum { BLOCK_BYTES = 64 };

#ifdef __SSE2__
static ALWAYS_INLINE uint64_t equal_bits(__m128i bytes, char byte)
{
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte)));
}

static ALWAYS_INLINE void add_bits(struct block *block, const uint8_t *from, unsigned shift)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(from + shift));
    /* Brackets differ from braces in this bit only. */
    __m128i folded = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
    block->quotes |= equal_bits(bytes, '"') << shift;
    block->backslashes |= equal_bits(bytes, '\\') << shift;
    block->opening |= equal_bits(folded, '{') << shift;
    block->closing |= equal_bits(folded, '}') << shift;
}

enum { STEP_BYTES = 16 };
#else
/* Exact for every byte, in contrast to json_plain_marks. */
static ALWAYS_INLINE uint64_t equal_bits(uint64_t word, uint8_t byte)
{
    const uint64_t lows = ~JSON_PLAIN_HIGHS;
    uint64_t other = word ^ (JSON_PLAIN_ONES * byte);
    uint64_t equal = ~(((other & lows) + lows) | other | lows);
    return ((equal >> 7) * UINT64_C(0x0102040810204080)) >> 56;
}

static ALWAYS_INLINE void add_bits(struct block *block, const uint8_t *from, unsigned shift)
{
    uint64_t word = json_plain_word(from + shift), folded = word | JSON_PLAIN_ONES * 0x20;
    block->quotes |= equal_bits(word, '"') << shift;
    block->backslashes |= equal_bits(word, '\\') << shift;
    block->opening |= equal_bits(folded, '{') << shift;
    block->closing |= equal_bits(folded, '}') << shift;
}

enum { STEP_BYTES = 8 };
#endif

static ALWAYS_INLINE size_t count_bits(uint64_t bits)
{
    bits -= bits >> 1 & UINT64_C(0x5555555555555555);
    bits = (bits & UINT64_C(0x3333333333333333)) + (bits >> 2 & UINT64_C(0x3333333333333333));
    return ((bits + (bits >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f)) * JSON_PLAIN_ONES >> 56;
}

/* The bits from each quote up to the next one. */
static ALWAYS_INLINE uint64_t bits_between(uint64_t quotes)
{
    for (unsigned shift = 1; shift < BLOCK_BYTES; shift *= 2)
        quotes ^= quotes << shift;
    return quotes;
}

/* Passes whole blocks that have no escapes and in which the container does not end. */
static void pass_blocks(struct framer *framer, const uint8_t **at, const uint8_t *end)
{
    const uint8_t *from = *at;
    uint64_t in_string = framer->in_string ? UINT64_MAX : 0;
    for (; !framer->escapes && end - from >= BLOCK_BYTES; from += BLOCK_BYTES) {
        struct block block = {0};
        for (unsigned shift = 0; shift < BLOCK_BYTES; shift += STEP_BYTES)
            add_bits(&block, from, shift);
        uint64_t text = bits_between(block.quotes) ^ in_string;
        size_t closing = count_bits(block.closing & ~text);
        if (block.backslashes || closing >= framer->depth)
            break;
        framer->depth += count_bits(block.opening & ~text) - closing;
        in_string = text >> (BLOCK_BYTES - 1) ? UINT64_MAX : 0;
    }
    framer->in_string = in_string;
    *at = from;
}

/* Passes the container up to its end. False: the piece ends before. */
static bool pass_container(struct framer *framer, const uint8_t **at, const uint8_t *end)
{
    while (*at < end) {
        pass_blocks(framer, at, end);
        size_t n = size_min((size_t)(end - *at), BLOCK_BYTES);
        if (pass_bytes(framer, at, *at + n))
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

static void pass_space(struct framer *framer)
{
    size_t spaces = 0;
    while (spaces < framer->piece.len && is_space(framer->piece.ptr[spaces]))
        spaces++;
    take(framer, spaces);
}

struct slice framer_peek(struct framer *framer)
{
    assert(framer->format == FRAMER_JSON);
    if (framer->value != VALUE_NONE)
        return SLICE_EMPTY;
    drop_given(framer);
    pass_space(framer);
    return framer->piece;
}

void framer_take(struct framer *framer, size_t frame_bytes)
{
    assert(framer->format == FRAMER_JSON && framer->value == VALUE_NONE);
    take(framer, frame_bytes);
}

static enum status next_value(struct framer *framer, struct slice *ret_frame)
{
    if (framer->value == VALUE_NONE) {
        pass_space(framer);
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
    /* Between two pieces an empty buffer is freed, so that a thousand watches that wait hold
     * nothing. */
    if (status == ST_AGAIN && framer->held.len == 0)
        buf_fini(&framer->held);
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
