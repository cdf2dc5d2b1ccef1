#include "client/watch/watch_decoder.h"

#include "codec/pb/wire.h"

/* The first bytes of fields, of the numbers in proto/rpc.proto and proto/kv.proto. */
enum {
    RESPONSE_HEADER = PB_TAG(1, PB_WIRE_LEN),
    RESPONSE_WATCH_ID = PB_TAG(2, PB_WIRE_VARINT),
    RESPONSE_FRAGMENT = PB_TAG(7, PB_WIRE_VARINT),
    RESPONSE_EVENT = PB_TAG(11, PB_WIRE_LEN),
    EVENT_TYPE = PB_TAG(1, PB_WIRE_VARINT),
    EVENT_KV = PB_TAG(2, PB_WIRE_LEN),
    EVENT_PREV_KV = PB_TAG(3, PB_WIRE_LEN),
    KV_KEY = PB_TAG(1, PB_WIRE_LEN),
    KV_CREATE_REVISION = PB_TAG(2, PB_WIRE_VARINT),
    KV_MOD_REVISION = PB_TAG(3, PB_WIRE_VARINT),
    KV_VERSION = PB_TAG(4, PB_WIRE_VARINT),
    KV_VALUE = PB_TAG(5, PB_WIRE_LEN),
    KV_LEASE = PB_TAG(6, PB_WIRE_VARINT),
};

/* All functions here return the first byte that they did not use, or NULL if pb_decode has to
 * decide: the bytes are unusual or wrong. As there, the last value of a field wins. A sub-message
 * that occurs twice would have to be merged, so it is unusual. */

static ALWAYS_INLINE const uint8_t *read_number(const uint8_t *p, const uint8_t *end,
                                                int64_t *ret_value)
{
    uint64_t value = 0;
    p = pb_varint_read(p, end, &value);
    *ret_value = (int64_t)value;
    return p;
}

static ALWAYS_INLINE const uint8_t *read_bytes(const uint8_t *p, const uint8_t *end,
                                               struct slice *ret_bytes)
{
    size_t len = 0;
    p = pb_len_read(p, end, &len);
    *ret_bytes = slice_of(p, len);
    return p ? p + len : NULL;
}

static const uint8_t *read_kv(const uint8_t *p, const uint8_t *end, struct pb_key_value *kv)
{
    *kv = (struct pb_key_value){0};
    while (p && p < end) {
        switch (*p++) {
        case KV_KEY:
            p = read_bytes(p, end, &kv->key);
            break;
        case KV_CREATE_REVISION:
            p = read_number(p, end, &kv->create_revision);
            break;
        case KV_MOD_REVISION:
            p = read_number(p, end, &kv->mod_revision);
            break;
        case KV_VERSION:
            p = read_number(p, end, &kv->version);
            break;
        case KV_VALUE:
            p = read_bytes(p, end, &kv->value);
            break;
        case KV_LEASE:
            p = read_number(p, end, &kv->lease);
            break;
        default:
            return NULL;
        }
    }
    return p;
}

static const uint8_t *read_pair(const uint8_t *p, const uint8_t *end, struct arena *arena,
                                struct pb_key_value **at)
{
    struct slice bytes;
    p = read_bytes(p, end, &bytes);
    if (!p || *at || !(*at = arena_alloc(arena, sizeof(**at))))
        return NULL;
    return read_kv(bytes.ptr, p, *at);
}

static const uint8_t *read_event(const uint8_t *p, const uint8_t *end, struct arena *arena,
                                 struct pb_event *event)
{
    *event = (struct pb_event){0};
    while (p && p < end) {
        int64_t type;
        switch (*p++) {
        case EVENT_TYPE:
            p = read_number(p, end, &type);
            event->type = (int32_t)type;
            break;
        case EVENT_KV:
            p = read_pair(p, end, arena, &event->kv);
            break;
        case EVENT_PREV_KV:
            p = read_pair(p, end, arena, &event->prev_kv);
            break;
        default:
            return NULL;
        }
    }
    return p;
}

/* The number of events from p on, where the length of the first one is; nothing else follows. 0:
 * something does. */
static size_t count_events(const uint8_t *p, const uint8_t *end)
{
    size_t count = 1;
    struct slice ignored;
    while ((p = read_bytes(p, end, &ignored)) && p < end) {
        if (*p++ != RESPONSE_EVENT)
            return 0;
        count++;
    }
    return p ? count : 0;
}

static const uint8_t *read_events(const uint8_t *p, const uint8_t *end, struct arena *arena,
                                  struct pb_watch_response *response)
{
    size_t count = count_events(p, end);
    struct pb_event *events = count ? arena_alloc(arena, count * sizeof(events[0])) : NULL;
    if (!events)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        struct slice bytes;
        p = read_bytes(p, end, &bytes);
        if (!p || !read_event(bytes.ptr, p, arena, &events[i]))
            return NULL;
        p += i + 1 < count; /* the tag of the next one */
    }
    response->events = events;
    response->events_count = count;
    return p;
}

static bool remember_header(struct watch_decoder *decoder, struct slice bytes, struct arena *arena)
{
    decoder->header_len = 0;
    if (bytes.len == 0 || bytes.len > sizeof(decoder->header_bytes) ||
        pb_decode(&pb_response_header_table, bytes, arena, &decoder->header) != ST_OK)
        return false;
    slice_copy(decoder->header_bytes, bytes);
    decoder->header_len = (uint8_t)bytes.len;
    return true;
}

static const uint8_t *read_header(struct watch_decoder *decoder, const uint8_t *p,
                                  const uint8_t *end, struct arena *arena,
                                  struct pb_watch_response *response)
{
    struct slice bytes;
    p = read_bytes(p, end, &bytes);
    if (!p || response->header)
        return NULL;
    bool same = bytes.len && bytes.len == decoder->header_len &&
                memcmp(bytes.ptr, decoder->header_bytes, bytes.len) == 0;
    if (!same && !remember_header(decoder, bytes, arena))
        return NULL;
    response->header = &decoder->header;
    return p;
}

static const uint8_t *read_response(struct watch_decoder *decoder, const uint8_t *p,
                                    const uint8_t *end, struct arena *arena,
                                    struct pb_watch_response *response)
{
    while (p && p < end) {
        int64_t fragment;
        switch (*p++) {
        case RESPONSE_HEADER:
            p = read_header(decoder, p, end, arena, response);
            break;
        case RESPONSE_WATCH_ID:
            p = read_number(p, end, &response->watch_id);
            break;
        case RESPONSE_FRAGMENT:
            p = read_number(p, end, &fragment);
            response->fragment = fragment != 0;
            break;
        case RESPONSE_EVENT:
            p = read_events(p, end, arena, response);
            break;
        default:
            return NULL;
        }
    }
    return p;
}

enum status watch_decode(struct watch_decoder *decoder, struct slice message, struct arena *arena,
                         struct pb_watch_response *ret_response)
{
    *ret_response = (struct pb_watch_response){0};
    if (message.len &&
        read_response(decoder, message.ptr, message.ptr + message.len, arena, ret_response))
        return ST_OK;
    return pb_decode(&pb_watch_response_table, message, arena, ret_response);
}
