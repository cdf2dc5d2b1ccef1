#include "mirror/backfill/response.h"

#include "codec/pb/wire.h"
#include "mirror/answer/possible.h"

/* Numbers of fields, as in etcd's rpc.proto and kv.proto. */
enum {
    RESPONSE_HEADER = 1,
    RESPONSE_WATCH_ID = 2,
    RESPONSE_CREATED = 3,
    RESPONSE_CANCELED = 4,
    RESPONSE_COMPACT_REVISION = 5,
    RESPONSE_CANCEL_REASON = 6,
    RESPONSE_FRAGMENT = 7,
    RESPONSE_EVENTS = 11,
    HEADER_CLUSTER_ID = 1,
    HEADER_REVISION = 3,
    EVENT_TYPE = 1,
    EVENT_KV = 2,
    EVENT_PREV_KV = 3,
    KV_KEY = 1,
    KV_CREATE_REVISION = 2,
    KV_MOD_REVISION = 3,
};

struct field {
    uint32_t number;
    const uint8_t *start; /* start of its tag */
    uint64_t value;       /* value of a varint */
    struct slice bytes;   /* bytes of a LEN field */
    bool is_bytes;
};

/* Reads a field at p. Returns the first byte behind it; NULL: it is malformed. */
static const uint8_t *field_read(const uint8_t *p, const uint8_t *end, struct field *ret_field)
{
    uint64_t tag;
    size_t len;
    *ret_field = (struct field){.start = p};
    p = pb_varint_read(p, end, &tag);
    if (!p || tag >> 3 > PB_NUMBER_MAX)
        return NULL;
    ret_field->number = (uint32_t)(tag >> 3);
    switch (tag & 7) {
    case PB_WIRE_VARINT:
        return pb_varint_read(p, end, &ret_field->value);
    case PB_WIRE_LEN:
        p = pb_len_read(p, end, &len);
        ret_field->is_bytes = true;
        ret_field->bytes = slice_of(p, p ? len : 0);
        return p ? p + len : NULL;
    case PB_WIRE_I64:
        return end - p < 8 ? NULL : p + 8;
    case PB_WIRE_I32:
        return end - p < 4 ? NULL : p + 4;
    default:
        return NULL;
    }
}

/* -- The response -- */

static bool header_read(struct slice header, struct backfill_response *response)
{
    const uint8_t *p = header.ptr, *end = p + header.len;
    struct field field;
    while (p < end) {
        p = field_read(p, end, &field);
        if (!p)
            return false;
        if (field.number == HEADER_CLUSTER_ID)
            response->cluster_id = field.value;
        else if (field.number == HEADER_REVISION)
            response->revision = (int64_t)field.value;
    }
    return true;
}

static bool response_take(const struct field *field, struct backfill_response *response)
{
    switch (field->number) {
    case RESPONSE_HEADER:
        return field->is_bytes && header_read(field->bytes, response);
    case RESPONSE_WATCH_ID:
        response->watch_id = (int64_t)field->value;
        return true;
    case RESPONSE_CREATED:
        response->created = field->value != 0;
        return true;
    case RESPONSE_CANCELED:
        response->canceled = field->value != 0;
        return true;
    case RESPONSE_COMPACT_REVISION:
        response->compact_revision = (int64_t)field->value;
        return true;
    case RESPONSE_CANCEL_REASON:
        response->cancel_reason = field->bytes;
        return field->is_bytes;
    case RESPONSE_FRAGMENT:
        response->fragment = field->value != 0;
        return true;
    case RESPONSE_EVENTS:
        response->has_events = true;
        return field->is_bytes;
    default:
        return true;
    }
}

bool backfill_response_read(struct slice message, struct backfill_response *ret_response)
{
    struct backfill_response response = {0};
    const uint8_t *p = message.ptr, *end = p + message.len;
    struct field field;
    while (p < end) {
        p = field_read(p, end, &field);
        if (!p || !response_take(&field, &response))
            return false;
    }
    *ret_response = response;
    return response.revision >= 0 && response.revision <= POSSIBLE_REVISION_MAX &&
           response.compact_revision >= 0 && response.compact_revision <= POSSIBLE_REVISION_MAX;
}

/* -- Events -- */

static bool kv_read(struct slice kv, struct watch_event *event, int64_t *ret_revision)
{
    const uint8_t *p = kv.ptr, *end = p + kv.len;
    int64_t created = 0, revision = 0;
    struct field field;
    while (p < end) {
        p = field_read(p, end, &field);
        if (!p)
            return false;
        if (field.number == KV_KEY && field.is_bytes)
            event->key = field.bytes;
        else if (field.number == KV_CREATE_REVISION)
            created = (int64_t)field.value;
        else if (field.number == KV_MOD_REVISION)
            revision = (int64_t)field.value;
    }
    event->created = !event->tombstone && created == revision;
    *ret_revision = revision;
    return event->key.len > 0 && possible_revision(revision);
}

/* The fields of an event, the previous version after the present one. */
static bool event_read(struct slice bytes, struct watch_event *event, int64_t *ret_revision)
{
    const uint8_t *p = bytes.ptr, *end = p + bytes.len;
    struct slice kv = SLICE_EMPTY;
    struct field field;
    *event = (struct watch_event){.private = backfill_event_private(0)};
    while (p < end) {
        p = field_read(p, end, &field);
        if (!p)
            return false;
        if (field.number == EVENT_TYPE)
            event->tombstone = field.value != 0;
        if (field.number == EVENT_KV && field.is_bytes) {
            kv = field.bytes;
            event->field = slice_of(field.start, (size_t)(p - field.start));
        }
        /* In the received bytes, the previous version gets the tag of a present one, so that both
         * can be sent without another copy. */
        if (field.number == EVENT_PREV_KV && field.is_bytes && event->field.len) {
            event->private = backfill_event_private((size_t)(field.start - event->field.ptr));
            *(uint8_t *)(uintptr_t)field.start = PB_TAG(EVENT_KV, PB_WIRE_LEN);
        }
    }
    return event->field.len && event->field.ptr[0] == PB_TAG(EVENT_KV, PB_WIRE_LEN) &&
           kv_read(kv, event, ret_revision);
}

enum status backfill_response_next(struct backfill_body *body, size_t *at,
                                   struct watch_event *ret_event, int64_t *ret_revision)
{
    const uint8_t *p = body->bytes + *at, *end = body->bytes + body->len;
    struct field field;
    while (p < end) {
        p = field_read(p, end, &field);
        if (!p)
            return ST_INVALID;
        *at = (size_t)(p - body->bytes);
        if (field.number == RESPONSE_EVENTS)
            return event_read(field.bytes, ret_event, ret_revision) ? ST_OK : ST_INVALID;
    }
    return ST_END;
}
