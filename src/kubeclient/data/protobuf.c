#include "kubeclient/data/protobuf.h"

#include "codec/pb/wire.h"
#include "kubeclient/data/json.h"

/* -- Fields -- */

vigil_pb_iterator vigil_pb_iterate(vigil_bytes message)
{
    vigil_pb_iterator iterator = {
        .at = message.data,
        .end = message.size ? (const unsigned char *)message.data + message.size : message.data,
    };
    return iterator;
}

static const uint8_t *read_fixed(const uint8_t *p, const uint8_t *end, size_t bytes,
                                 uint64_t *ret_number)
{
    uint64_t number = 0;
    if ((size_t)(end - p) < bytes)
        return NULL;
    for (size_t i = bytes; i-- > 0;)
        number = number << 8 | p[i];
    *ret_number = number;
    return p + bytes;
}

static const uint8_t *read_bytes(const uint8_t *p, const uint8_t *end, vigil_bytes *ret_bytes)
{
    size_t len;
    p = pb_len_read(p, end, &len);
    if (!p)
        return NULL;
    *ret_bytes = vigil_bytes_of(p, len);
    return p + len;
}

static const uint8_t *read_value(const uint8_t *p, const uint8_t *end, uint64_t wire,
                                 vigil_pb_value *value)
{
    value->type = VIGIL_PB_FIXED;
    switch (wire) {
    case PB_WIRE_VARINT:
        value->type = VIGIL_PB_NUMBER;
        return pb_varint_read(p, end, &value->number);
    case PB_WIRE_I64:
        return read_fixed(p, end, 8, &value->number);
    case PB_WIRE_I32:
        return read_fixed(p, end, 4, &value->number);
    case PB_WIRE_LEN:
        value->type = VIGIL_PB_BYTES;
        return read_bytes(p, end, &value->bytes);
    default:
        return NULL;
    }
}

int vigil_pb_next(vigil_pb_iterator *iterator, uint32_t *ret_field, vigil_pb_value *ret_value)
{
    uint64_t tag;
    vigil_pb_value value = {0};
    if (iterator->at == iterator->end)
        return 0;
    const uint8_t *p = pb_varint_read(iterator->at, iterator->end, &tag);
    if (p && tag >> 3 >= 1 && tag >> 3 <= PB_NUMBER_MAX)
        p = read_value(p, iterator->end, tag & 7, &value);
    else
        p = NULL;
    if (!p) {
        iterator->malformed = 1;
        iterator->at = iterator->end; /* nothing follows */
        return 0;
    }
    iterator->at = p;
    *ret_field = (uint32_t)(tag >> 3);
    *ret_value = value;
    return 1;
}

/* -- Finding -- */

int vigil_pb_is(vigil_pb_value value, const char *text)
{
    return value.type == VIGIL_PB_BYTES &&
           slice_equal(slice_of(value.bytes.data, value.bytes.size), slice_from_text(text));
}

/* The field with this number, before which so many others with it are skipped. */
static bool find_field(vigil_bytes message, uint32_t wanted, size_t skip, vigil_pb_value *ret_value)
{
    uint32_t field;
    vigil_pb_iterator iterator = vigil_pb_iterate(message);
    while (vigil_pb_next(&iterator, &field, ret_value)) {
        if (field == wanted && skip-- == 0)
            return true;
    }
    return false;
}

struct slice protobuf_bytes(struct slice message, uint32_t field)
{
    vigil_pb_value value;
    if (!find_field(vigil_bytes_of(message.ptr, message.len), field, 0, &value))
        return SLICE_EMPTY;
    return slice_of(value.bytes.data, value.bytes.size);
}

/* The value of a map's entry. A key that is empty, or an empty value, may be left out. */
static bool find_entry(vigil_bytes message, uint32_t map, struct slice key,
                       vigil_pb_value *ret_value)
{
    uint32_t field;
    vigil_pb_value value;
    vigil_pb_iterator iterator = vigil_pb_iterate(message);
    while (vigil_pb_next(&iterator, &field, &value)) {
        struct slice entry = slice_of(value.bytes.data, value.bytes.size);
        if (field != map || value.type != VIGIL_PB_BYTES ||
            !slice_equal(protobuf_bytes(entry, 1), key))
            continue;
        if (!find_field(value.bytes, 2, 0, ret_value))
            *ret_value = (vigil_pb_value){.type = VIGIL_PB_BYTES};
        return true;
    }
    return false;
}

static bool read_number(struct slice key, uint32_t *ret_number)
{
    uint64_t number;
    if (!slice_decimal(key, &number) || number > PB_NUMBER_MAX)
        return false;
    *ret_number = (uint32_t)number;
    return true;
}

/* A field, with the index or the key of an entry that may follow. */
static bool enter(vigil_bytes message, const char **at, bool first, vigil_pb_value *ret_value)
{
    struct path_step step, detail = {PATH_INDEX, .index = 0};
    uint32_t number;
    if (!path_next(at, first, &step) || step.type != PATH_KEY || !read_number(step.key, &number) ||
        (**at == '[' && !path_next(at, false, &detail)))
        return false;
    return detail.type == PATH_QUOTED ? find_entry(message, number, detail.key, ret_value)
                                      : find_field(message, number, detail.index, ret_value);
}

int vigil_pb_find(vigil_bytes message, const char *path, vigil_pb_value *ret_value)
{
    vigil_pb_value value = {.type = VIGIL_PB_BYTES, .bytes = message};
    for (const char *at = path; *at;) {
        if (!enter(value.bytes, &at, at == path, &value))
            return 0;
    }
    *ret_value = value;
    return 1;
}

/* -- Envelopes -- */

bool envelope_is_protobuf(struct slice content_type)
{
    return content_type.len == 0 ||
           slice_equal(content_type, SLICE_LITERAL("application/vnd.kubernetes.protobuf"));
}

bool envelope_read(struct slice bytes, struct envelope *ret_envelope)
{
    uint32_t field;
    vigil_pb_value value;
    struct slice parts[UNKNOWN_CONTENT_TYPE + 1] = {0};
    if (!envelope_begins(bytes))
        return false;
    vigil_pb_iterator iterator = vigil_pb_iterate(vigil_bytes_of(bytes.ptr + 4, bytes.len - 4));
    while (vigil_pb_next(&iterator, &field, &value)) {
        if (field <= UNKNOWN_CONTENT_TYPE && !parts[field].len)
            parts[field] = slice_of(value.bytes.data, value.bytes.size);
    }
    if (iterator.malformed || parts[UNKNOWN_ENCODING].len ||
        !envelope_is_protobuf(parts[UNKNOWN_CONTENT_TYPE]))
        return false;
    *ret_envelope = (struct envelope){
        .api_version = protobuf_bytes(parts[UNKNOWN_TYPE_META], TYPE_META_API_VERSION),
        .kind = protobuf_bytes(parts[UNKNOWN_TYPE_META], TYPE_META_KIND),
        .message = parts[UNKNOWN_RAW],
    };
    return true;
}

enum status envelope_append_head(struct buf *to, struct slice api_version, struct slice kind,
                                 size_t message_bytes)
{
    size_t type_meta_bytes = pb_bytes_size(TYPE_META_API_VERSION, api_version.len) +
                             pb_bytes_size(TYPE_META_KIND, kind.len);
    TRY(buf_append(to, SLICE_LITERAL("k8s\0")));
    TRY(buf_reserve(to, pb_message_head_size(UNKNOWN_TYPE_META, type_meta_bytes) + type_meta_bytes +
                            pb_message_head_size(UNKNOWN_RAW, message_bytes)));
    uint8_t *at = pb_message_head_write(to->ptr + to->len, UNKNOWN_TYPE_META, type_meta_bytes);
    at = pb_bytes_write(at, TYPE_META_API_VERSION, api_version);
    at = pb_bytes_write(at, TYPE_META_KIND, kind);
    at = pb_message_head_write(at, UNKNOWN_RAW, message_bytes);
    to->len = (size_t)(at - to->ptr);
    return ST_OK;
}
