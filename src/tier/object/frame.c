#include "tier/object/frame.h"

#include "codec/json/writer.h"
#include "codec/pb/wire.h"
#include "kubeclient/data/protobuf.h"

#include <stdio.h>

enum { FRAME_LENGTH_BYTES = 4, WATCH_EVENT_TYPE = 1, WATCH_EVENT_OBJECT = 2, RAW_EXTENSION = 1 };
enum { OBJECT_META_ANNOTATIONS = 12, UNSIGNED_BYTES = 24 };

static const char initial_end[] = "k8s.io/initial-events-end";

static uint8_t *put_length(uint8_t *at, uint64_t field, size_t bytes)
{
    at = pb_varint_write(at, field << 3 | PB_WIRE_LEN);
    return pb_varint_write(at, bytes);
}

static size_t field_bytes(uint64_t field, size_t bytes)
{
    return pb_varint_size(field << 3 | PB_WIRE_LEN) + pb_varint_size(bytes) + bytes;
}

/* -- Events -- */

static size_t protobuf_head(struct slice type, size_t object_bytes, uint8_t *head)
{
    size_t object = field_bytes(RAW_EXTENSION, object_bytes);
    size_t whole =
        field_bytes(WATCH_EVENT_TYPE, type.len) + field_bytes(WATCH_EVENT_OBJECT, object);
    uint8_t *at = head;
    for (int shift = 24; shift >= 0; shift -= 8)
        *at++ = (uint8_t)(whole >> shift);
    at = put_length(at, WATCH_EVENT_TYPE, type.len);
    slice_copy(at, type);
    at = put_length(at + type.len, WATCH_EVENT_OBJECT, object);
    at = put_length(at, RAW_EXTENSION, object_bytes);
    return (size_t)(at - head);
}

/* It is made for every event of every watch, so it avoids printf. */
static size_t event_head(enum tier_encoding encoding, struct slice type, size_t object_bytes,
                         uint8_t head[TIER_EVENT_HEAD_BYTES])
{
    const struct slice parts[] = {SLICE_LITERAL("{\"type\":\""), type,
                                  SLICE_LITERAL("\",\"object\":")};
    size_t len = 0;
    if (tier_encoding_is_protobuf(encoding))
        return protobuf_head(type, object_bytes, head);
    for (size_t i = 0; i < COUNT_OF(parts); len += parts[i++].len)
        slice_copy(head + len, parts[i]);
    return len;
}

size_t tier_event_head(enum tier_encoding encoding, enum tier_event event, size_t object_bytes,
                       uint8_t head[TIER_EVENT_HEAD_BYTES])
{
    static const struct slice types[] = {
        [TIER_EVENT_ADDED] = {(const uint8_t *)"ADDED", 5},
        [TIER_EVENT_MODIFIED] = {(const uint8_t *)"MODIFIED", 8},
        [TIER_EVENT_DELETED] = {(const uint8_t *)"DELETED", 7},
    };
    return event_head(encoding, types[event], object_bytes, head);
}

struct slice tier_event_tail(enum tier_encoding encoding)
{
    return tier_encoding_is_protobuf(encoding) ? SLICE_EMPTY : SLICE_LITERAL("}\n");
}

/* -- Protobuf messages that are made here -- */

static enum status append_field(struct buf *to, uint64_t field, struct slice bytes)
{
    TRY(buf_reserve(to, field_bytes(field, bytes.len)));
    uint8_t *at = put_length(to->ptr + to->len, field, bytes.len);
    slice_copy(at, bytes);
    to->len = (size_t)(at - to->ptr) + bytes.len;
    return ST_OK;
}

static struct slice write_unsigned(uint64_t number, char text[UNSIGNED_BYTES])
{
    int len = snprintf(text, UNSIGNED_BYTES, "%llu", (unsigned long long)number);
    return slice_of(text, (size_t)len);
}

/* -- Bookmarks -- */

static enum status bookmark_json(const struct tier_kind *kind, uint64_t version, bool ends_initial,
                                 struct buf *to)
{
    return buf_append_format(
        to,
        "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":\"%llu\","
        "\"creationTimestamp\":null%s}}",
        kind->kind, kind->api_version, (unsigned long long)version,
        ends_initial ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" : "");
}

static enum status bookmark_message(uint64_t version, bool ends_initial, struct buf *to)
{
    AUTO(buf_fini) struct buf metadata = {0};
    AUTO(buf_fini) struct buf annotation = {0};
    char text[UNSIGNED_BYTES];
    TRY(append_field(&metadata, OBJECT_META_VERSION, write_unsigned(version, text)));
    if (ends_initial) {
        TRY(append_field(&annotation, 1, slice_from_text(initial_end)));
        TRY(append_field(&annotation, 2, SLICE_LITERAL("true")));
        TRY(append_field(&metadata, OBJECT_META_ANNOTATIONS, buf_slice(&annotation)));
    }
    return append_field(to, OBJECT_METADATA, buf_slice(&metadata));
}

static enum status bookmark_protobuf(const struct tier_kind *kind, uint64_t version,
                                     bool ends_initial, struct buf *to)
{
    AUTO(buf_fini) struct buf message = {0};
    TRY(bookmark_message(version, ends_initial, &message));
    TRY(envelope_append_head(to, slice_from_text(kind->api_version), slice_from_text(kind->kind),
                             message.len));
    return buf_append(to, buf_slice(&message));
}

enum status tier_append_bookmark(enum tier_encoding encoding, const struct tier_kind *kind,
                                 uint64_t version, bool ends_initial, struct buf *to)
{
    AUTO(buf_fini) struct buf object = {0};
    uint8_t head[TIER_EVENT_HEAD_BYTES];
    TRY((tier_encoding_is_protobuf(encoding) ? bookmark_protobuf : bookmark_json)(
        kind, version, ends_initial, &object));
    size_t head_bytes = event_head(encoding, SLICE_LITERAL("BOOKMARK"), object.len, head);
    TRY(buf_append(to, slice_of(head, head_bytes)));
    TRY(buf_append(to, buf_slice(&object)));
    return buf_append(to, tier_event_tail(encoding));
}

/* -- Lists -- */

size_t tier_list_item_bytes(size_t message_bytes)
{
    return field_bytes(LIST_ITEMS, message_bytes);
}

size_t tier_list_item_head(size_t message_bytes, uint8_t head[TIER_ITEM_HEAD_BYTES])
{
    return (size_t)(put_length(head, LIST_ITEMS, message_bytes) - head);
}

enum status tier_append_list_meta(const struct tier_list_meta *meta, struct buf *to)
{
    TRY(buf_append_format(to, "\"metadata\":{\"resourceVersion\":\"%llu\"",
                          (unsigned long long)meta->version));
    if (meta->continue_token.len)
        TRY(buf_append_format(to, ",\"continue\":\"%.*s\"", SLICE_ARGS(meta->continue_token)));
    if (meta->remaining >= 0)
        TRY(buf_append_format(to, ",\"remainingItemCount\":%lld", (long long)meta->remaining));
    return buf_append_text(to, "}");
}

static enum status list_head_json(const struct tier_kind *kind, const struct tier_list_meta *meta,
                                  struct buf *to)
{
    TRY(buf_append_format(to, "{\"kind\":\"%s\",\"apiVersion\":\"%s\",", kind->list_kind,
                          kind->api_version));
    TRY(tier_append_list_meta(meta, to));
    return buf_append_text(to, ",\"items\":[");
}

static enum status list_meta_protobuf(const struct tier_list_meta *meta, struct buf *to)
{
    char text[UNSIGNED_BYTES];
    TRY(append_field(to, 1, SLICE_EMPTY)); /* selfLink, which Go writes although it is empty */
    TRY(append_field(to, LIST_META_VERSION, write_unsigned(meta->version, text)));
    TRY(append_field(to, LIST_META_CONTINUE, meta->continue_token));
    if (meta->remaining < 0)
        return ST_OK;
    TRY(buf_reserve(to, 20));
    uint8_t *at = pb_varint_write(to->ptr + to->len, LIST_META_REMAINING << 3 | PB_WIRE_VARINT);
    at = pb_varint_write(at, (uint64_t)meta->remaining);
    to->len = (size_t)(at - to->ptr);
    return ST_OK;
}

static enum status list_head_protobuf(const struct tier_kind *kind,
                                      const struct tier_list_meta *meta, size_t items_bytes,
                                      struct buf *to)
{
    AUTO(buf_fini) struct buf metadata = {0};
    TRY(list_meta_protobuf(meta, &metadata));
    TRY(envelope_append_head(to, slice_from_text(kind->api_version),
                             slice_from_text(kind->list_kind),
                             field_bytes(LIST_METADATA, metadata.len) + items_bytes));
    return append_field(to, LIST_METADATA, buf_slice(&metadata));
}

enum status tier_append_list_head(enum tier_encoding encoding, const struct tier_kind *kind,
                                  const struct tier_list_meta *meta, size_t items_bytes,
                                  struct buf *to)
{
    return tier_encoding_is_protobuf(encoding) ? list_head_protobuf(kind, meta, items_bytes, to)
                                               : list_head_json(kind, meta, to);
}

struct slice tier_list_tail(enum tier_encoding encoding)
{
    /* Go writes the last two fields of the envelope although they are empty. */
    return tier_encoding_is_protobuf(encoding) ? SLICE_LITERAL("\x1a\x00\x22\x00")
                                               : SLICE_LITERAL("]}\n");
}

struct slice tier_content_type(enum tier_encoding encoding, bool watch)
{
    if (!tier_encoding_is_protobuf(encoding))
        return SLICE_LITERAL("application/json");
    return watch ? SLICE_LITERAL("application/vnd.kubernetes.protobuf;stream=watch")
                 : SLICE_LITERAL("application/vnd.kubernetes.protobuf");
}
