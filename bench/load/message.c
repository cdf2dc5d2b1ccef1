#include "load/message.h"

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5, VARINT_MAX = 10 };

static size_t varint_write(uint8_t *at, uint64_t value)
{
    size_t n = 0;
    for (; value > 0x7f; value >>= 7)
        at[n++] = (uint8_t)(value | 0x80);
    at[n++] = (uint8_t)value;
    return n;
}

static enum status append_varint(struct buf *out, uint64_t value)
{
    uint8_t bytes[VARINT_MAX];
    return buf_append(out, slice_of(bytes, varint_write(bytes, value)));
}

static enum status append_bytes(struct buf *out, uint32_t number, struct slice bytes)
{
    TRY(append_varint(out, number << 3 | WIRE_BYTES));
    TRY(append_varint(out, bytes.len));
    return buf_append(out, bytes);
}

enum status bench_message_put(struct buf *out, struct slice key, struct slice value)
{
    TRY(append_bytes(out, 1, key));
    return append_bytes(out, 2, value);
}

enum status bench_message_range(struct buf *out, struct slice key, struct slice range_end)
{
    TRY(append_bytes(out, 1, key));
    return range_end.len ? append_bytes(out, 2, range_end) : ST_OK;
}

static enum status append_create(struct buf *out, struct slice key, struct slice range_end,
                                 int64_t start_revision)
{
    TRY(append_bytes(out, 1, key));
    if (range_end.len)
        TRY(append_bytes(out, 2, range_end));
    if (start_revision == 0)
        return ST_OK;
    TRY(append_varint(out, 3 << 3 | WIRE_VARINT));
    return append_varint(out, (uint64_t)start_revision);
}

enum status bench_message_watch(struct buf *out, struct slice key, struct slice range_end,
                                int64_t start_revision)
{
    AUTO(buf_fini) struct buf create = {0};
    TRY(append_create(&create, key, range_end, start_revision));
    return append_bytes(out, 1, buf_slice(&create));
}

enum status bench_message_prefix_end(struct slice prefix, struct buf *ret_end)
{
    if (prefix.len == 0 || prefix.ptr[prefix.len - 1] == 0xff)
        return ST_INVALID;
    TRY(buf_append(ret_end, prefix));
    ret_end->ptr[ret_end->len - 1]++;
    return ST_OK;
}

static void drop_front(struct slice *message, size_t len)
{
    message->ptr += len;
    message->len -= len;
}

static __attribute__((noinline)) enum status long_varint_read(struct slice *message,
                                                              uint64_t *ret_value)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size_min(message->len, VARINT_MAX); i++) {
        uint8_t byte = message->ptr[i];
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (!(byte & 0x80)) {
            drop_front(message, i + 1);
            *ret_value = value;
            return ST_OK;
        }
    }
    return ST_MALFORMED;
}

/* The generator decodes millions of events a second beside the server that it measures: tags,
 * lengths and most numbers have one or two bytes, and these are read in line. */
static inline __attribute__((always_inline)) enum status varint_read(struct slice *message,
                                                                     uint64_t *ret_value)
{
    if (UNLIKELY(message->len < 2))
        return long_varint_read(message, ret_value);
    uint8_t low = message->ptr[0], high = message->ptr[1];
    if (LIKELY(low < 0x80)) {
        *ret_value = low;
        drop_front(message, 1);
        return ST_OK;
    }
    if (UNLIKELY(high >= 0x80))
        return long_varint_read(message, ret_value);
    *ret_value = (uint64_t)high << 7 | (low & 0x7f);
    drop_front(message, 2);
    return ST_OK;
}

static inline __attribute__((always_inline)) enum status next_field(struct slice *message,
                                                                    struct bench_field *ret_field)
{
    if (message->len == 0)
        return ST_END;
    uint64_t tag, len;
    TRY(varint_read(message, &tag));
    if (tag >> 3 == 0 || tag >> 32)
        return ST_MALFORMED;
    ret_field->number = (uint32_t)(tag >> 3);
    ret_field->wire_type = tag & 7;
    if (ret_field->wire_type == WIRE_VARINT)
        return varint_read(message, &ret_field->value);
    if (LIKELY(ret_field->wire_type == WIRE_BYTES))
        TRY(varint_read(message, &len));
    else if (ret_field->wire_type == WIRE_FIXED64 || ret_field->wire_type == WIRE_FIXED32)
        len = ret_field->wire_type == WIRE_FIXED64 ? 8 : 4;
    else
        return ST_MALFORMED;
    if (len > message->len)
        return ST_MALFORMED;
    ret_field->bytes = slice_of(message->ptr, len);
    drop_front(message, len);
    return ST_OK;
}

enum status bench_message_next(struct slice *message, struct bench_field *ret_field)
{
    struct bench_field field = {0};
    TRY(next_field(message, &field));
    *ret_field = field;
    return ST_OK;
}

/* The last occurrence of a field; false when it is missing. */
static inline __attribute__((always_inline)) bool find(struct slice message, uint32_t number,
                                                       struct bench_field *ret_field)
{
    struct bench_field field = {0};
    bool found = false;
    while (next_field(&message, &field) == ST_OK) {
        if (field.number == number) {
            *ret_field = field;
            found = true;
        }
    }
    return found;
}

int64_t bench_message_revision(struct slice response)
{
    struct bench_field header, revision;
    if (!find(response, 1, &header) || !find(header.bytes, 3, &revision))
        return 0;
    return (int64_t)revision.value;
}

static struct slice value_of_event(struct slice event)
{
    struct bench_field kv, value;
    if (!find(event, 2, &kv) || !find(kv.bytes, 5, &value))
        return SLICE_EMPTY;
    return value.bytes;
}

enum status bench_message_watch_answer(struct slice message,
                                       void (*on_event)(void *argument, struct slice value),
                                       void *argument, struct bench_watch_answer *ret_answer)
{
    struct bench_watch_answer answer = {0};
    struct bench_field field = {0};
    enum status status;
    while ((status = next_field(&message, &field)) == ST_OK) {
        if (field.number == 2)
            answer.watch_id = (int64_t)field.value;
        else if (field.number == 3)
            answer.created = field.value != 0;
        else if (field.number == 4)
            answer.canceled = field.value != 0;
        else if (field.number == 5)
            answer.compact_revision = (int64_t)field.value;
        else if (field.number == 11) {
            answer.events++;
            on_event(argument, value_of_event(field.bytes));
        }
    }
    if (status != ST_END)
        return status;
    *ret_answer = answer;
    return ST_OK;
}
