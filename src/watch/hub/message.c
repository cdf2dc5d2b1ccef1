#include "watch/hub/message.h"

#include "codec/pb/wire.h"

enum {
    FRAME_BYTES = 5, /* a compression flag and the length of the message */
    FIELD_HEADER = 1,
    FIELD_WATCH_ID = 2,
    FIELD_CREATED = 3,
    FIELD_CANCELED = 4,
    FIELD_COMPACT_REVISION = 5,
    FIELD_REASON = 6,
    FIELD_FRAGMENT = 7,
    FIELD_EVENTS = 11,
};

void message_identity_init(struct message_identity *identity, const struct watch_identity *ids)
{
    uint8_t *end = pb_uint_write(identity->before, 1, ids->cluster_id);
    end = pb_uint_write(end, 2, ids->member_id);
    identity->before_len = (uint8_t)(end - identity->before);
    identity->after_len =
        (uint8_t)(pb_uint_write(identity->after, 4, ids->raft_term) - identity->after);
}

void message_header_make(struct message_header *header, const struct message_identity *identity,
                         int64_t revision)
{
    size_t len = identity->before_len + pb_uint_size(3, (uint64_t)revision) + identity->after_len;
    uint8_t *at = pb_message_head_write(header->bytes, FIELD_HEADER, len);
    memcpy(at, identity->before, identity->before_len);
    at = pb_uint_write(at + identity->before_len, 3, (uint64_t)revision);
    memcpy(at, identity->after, identity->after_len);
    header->revision = revision;
    header->len = (size_t)(at - header->bytes) + identity->after_len;
}

static void frame_write(uint8_t *dst, size_t message_bytes)
{
    assert(message_bytes <= UINT32_MAX);
    dst[0] = 0;
    dst[1] = (uint8_t)(message_bytes >> 24);
    dst[2] = (uint8_t)(message_bytes >> 16);
    dst[3] = (uint8_t)(message_bytes >> 8);
    dst[4] = (uint8_t)message_bytes;
}

size_t message_head_write(uint8_t dst[MESSAGE_HEAD_BYTES_MAX], const struct message *message,
                          const struct message_header *header, size_t events_bytes)
{
    uint8_t *at = dst + FRAME_BYTES;
    memcpy(at, header->bytes, header->len);
    at = pb_uint_write(at + header->len, FIELD_WATCH_ID, (uint64_t)message->watch_id);
    at = pb_uint_write(at, FIELD_CREATED, message->created);
    at = pb_uint_write(at, FIELD_CANCELED, message->canceled);
    at = pb_uint_write(at, FIELD_COMPACT_REVISION, (uint64_t)message->compact_revision);
    at = pb_bytes_write(at, FIELD_REASON, message->reason);
    at = pb_uint_write(at, FIELD_FRAGMENT, message->fragment);
    size_t len = (size_t)(at - dst);
    frame_write(dst, len - FRAME_BYTES + events_bytes);
    return len;
}

size_t message_event_head_size(const struct message_header *header, int64_t watch_id)
{
    return FRAME_BYTES + header->len + pb_uint_size(FIELD_WATCH_ID, (uint64_t)watch_id);
}

uint8_t *message_event_head_write(uint8_t *dst, const struct message_header *header,
                                  int64_t watch_id, size_t events_bytes)
{
    uint8_t *at = dst + FRAME_BYTES;
    memcpy(at, header->bytes, header->len);
    at = pb_uint_write(at + header->len, FIELD_WATCH_ID, (uint64_t)watch_id);
    frame_write(dst, (size_t)(at - dst) - FRAME_BYTES + events_bytes);
    return at;
}

static size_t event_body_size(const struct watch_event *event, struct slice prev)
{
    return (event->tombstone ? 2 : 0) + event->field.len + prev.len;
}

size_t message_event_size(const struct watch_event *event, struct slice prev)
{
    size_t body = event_body_size(event, prev);
    return pb_message_head_size(FIELD_EVENTS, body) + body;
}

size_t message_event_start(uint8_t dst[MESSAGE_EVENT_HEAD_BYTES_MAX],
                           const struct watch_event *event, struct slice prev)
{
    uint8_t *at = pb_message_head_write(dst, FIELD_EVENTS, event_body_size(event, prev));
    at = pb_uint_write(at, 1, event->tombstone);
    return (size_t)(at - dst);
}

uint8_t *message_event_write(uint8_t *dst, const struct watch_event *event, struct slice prev)
{
    dst += message_event_start(dst, event, prev);
    slice_copy(dst, event->field);
    dst += event->field.len;
    if (!prev.len)
        return dst;
    slice_copy(dst, prev);
    dst[0] = MESSAGE_PREV_TAG;
    return dst + prev.len;
}
