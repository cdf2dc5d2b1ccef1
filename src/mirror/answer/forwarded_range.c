#include "mirror/answer/forwarded_range.h"

#include "base/memory/budget.h"
#include "codec/pb/kv.pb.h"
#include "codec/pb/rpc.pb.h"
#include "codec/pb/wire.h"
#include "mirror/answer/possible.h"

enum {
    FIELDS_AT_ONCE = 8192, /* fields of one scan: about a millisecond */
    HEADER_BYTES = 256,    /* memory for the decoded header */
    HEADER_BYTES_MAX = 4096,
    NUMBER_HEADER = 1,
    NUMBER_KVS = 2,
    NUMBER_MORE = 3,
    NUMBER_COUNT = 4,
    KV_KEY = 1,
    KV_CREATE_REVISION = 2,
    KV_MOD_REVISION = 3,
    KV_VERSION = 4,
    KV_VALUE = 5,
    KV_LEASE = 6,
};

/* A field of the message. */
struct part {
    uint32_t tag;
    uint64_t number;    /* value of a varint */
    struct slice bytes; /* the content of a LEN field */
    struct slice whole; /* with the tag */
};

enum status forwarded_range_take(struct forwarded_range *range, struct account *account,
                                 struct slice message, struct slice from, struct slice end)
{
    *range = (struct forwarded_range){.account = account, .from = from, .end = end};
    if (account && !account_charge(account, message.len))
        return ST_NOMEM;
    enum status status = buf_append(&range->message, message);
    if (status != ST_OK && account)
        account_release(account, message.len);
    return status;
}

void forwarded_range_fini(struct forwarded_range *range)
{
    if (range->account)
        account_release(range->account, range->message.len);
    buf_fini(&range->message);
    *range = (struct forwarded_range){0};
}

/* -- Scanning -- */

/* The field at *at, which moves behind it. ST_END; ST_MALFORMED. */
static enum status part_read(struct slice message, size_t *at, struct part *ret)
{
    uint64_t tag;
    if (*at == message.len)
        return ST_END;
    const uint8_t *from = message.ptr + *at, *end = message.ptr + message.len;
    const uint8_t *p = pb_varint_read(from, end, &tag);
    if (!p || tag > UINT32_MAX)
        return ST_MALFORMED;
    *ret = (struct part){.tag = (uint32_t)tag};
    switch ((enum pb_wire)(tag & 7)) {
    case PB_WIRE_VARINT:
        p = pb_varint_read(p, end, &ret->number);
        break;
    case PB_WIRE_LEN:
        p = pb_len_read(p, end, &ret->bytes.len);
        ret->bytes.ptr = p;
        p = p ? p + ret->bytes.len : NULL;
        break;
    case PB_WIRE_I64:
        p = end - p >= 8 ? p + 8 : NULL;
        break;
    case PB_WIRE_I32:
        p = end - p >= 4 ? p + 4 : NULL;
        break;
    default:
        p = NULL;
    }
    if (!p)
        return ST_MALFORMED;
    ret->whole = slice_of(from, (size_t)(p - from));
    *at += ret->whole.len;
    return ST_OK;
}

static enum status take_header(struct forwarded_range *range, struct slice bytes)
{
    uint8_t first[HEADER_BYTES];
    struct arena arena;
    struct pb_response_header header;
    arena_init(&arena, first, sizeof(first), HEADER_BYTES_MAX);
    enum status status = pb_decode(&pb_response_header_table, bytes, &arena, &header);
    if (status == ST_OK)
        range->revision = header.revision;
    arena_fini(&arena);
    return status;
}

/* A field of a key-value, which must have its own wire type: those who read it do not look again.
 */
static enum status take_kv_part(const struct part *part, struct pb_key_value *kv)
{
    switch (part->tag) {
    case PB_TAG(KV_KEY, PB_WIRE_LEN):
        kv->key = part->bytes;
        return ST_OK;
    case PB_TAG(KV_CREATE_REVISION, PB_WIRE_VARINT):
        kv->create_revision = (int64_t)part->number;
        return ST_OK;
    case PB_TAG(KV_MOD_REVISION, PB_WIRE_VARINT):
        kv->mod_revision = (int64_t)part->number;
        return ST_OK;
    case PB_TAG(KV_VERSION, PB_WIRE_VARINT):
        kv->version = (int64_t)part->number;
        return ST_OK;
    case PB_TAG(KV_VALUE, PB_WIRE_LEN):
    case PB_TAG(KV_LEASE, PB_WIRE_VARINT):
        return ST_OK;
    default: {
        uint32_t number = part->tag >> 3, wire = part->tag & 7;
        bool is_known = number <= KV_LEASE; /* by its number, with another wire type */
        return is_known || (wire != PB_WIRE_LEN && wire != PB_WIRE_VARINT) ? ST_MALFORMED : ST_OK;
    }
    }
}

static enum status check_kv(struct forwarded_range *range, struct slice bytes)
{
    struct pb_key_value kv = {0};
    struct part part;
    size_t at = 0;
    enum status status;
    while ((status = part_read(bytes, &at, &part)) == ST_OK)
        TRY(take_kv_part(&part, &kv));
    if (status != ST_END || !possible_key(kv.key, range->from, range->end) ||
        !possible_numbers(kv.create_revision, kv.mod_revision, kv.version, POSSIBLE_REVISION_MAX))
        return ST_MALFORMED;
    if (kv.mod_revision > range->newest)
        range->newest = kv.mod_revision;
    return ST_OK;
}

static enum status take_part(struct forwarded_range *range, const struct part *part)
{
    switch (part->tag) {
    case PB_TAG(NUMBER_HEADER, PB_WIRE_LEN):
        return take_header(range, part->bytes);
    case PB_TAG(NUMBER_KVS, PB_WIRE_LEN):
        range->kvs++;
        range->kvs_bytes += part->whole.len;
        return check_kv(range, part->bytes);
    case PB_TAG(NUMBER_MORE, PB_WIRE_VARINT):
        range->more = part->number;
        return ST_OK;
    case PB_TAG(NUMBER_COUNT, PB_WIRE_VARINT):
        range->count = (int64_t)part->number;
        return ST_OK;
    default:
        return ST_OK; /* a field of a later version */
    }
}

enum status forwarded_range_scan(struct forwarded_range *range)
{
    struct part part;
    for (unsigned fields = 0; fields < FIELDS_AT_ONCE; fields++) {
        enum status status = part_read(buf_slice(&range->message), &range->at, &part);
        if (status == ST_END) {
            range->at = 0;
            range->in_window = range->kvs;
            bool is_possible = possible_revision(range->revision) &&
                               range->newest <= range->revision && range->count >= 0 &&
                               range->count <= POSSIBLE_REVISION_MAX;
            return is_possible ? ST_OK : ST_MALFORMED;
        }
        TRY(status);
        TRY(take_part(range, &part));
    }
    return ST_AGAIN;
}

/* -- Reading -- */

/* The key-value at or after *at, which moves behind it. False at the end. */
static bool next_kv(const struct forwarded_range *range, size_t *at, struct slice *ret_field)
{
    struct part part;
    while (part_read(buf_slice(&range->message), at, &part) == ST_OK) {
        if (part.tag == PB_TAG(NUMBER_KVS, PB_WIRE_LEN)) {
            *ret_field = part.whole;
            return true;
        }
    }
    return false;
}

void forwarded_range_window(struct forwarded_range *range, int64_t keys_max, int64_t *ret_keys,
                            uint64_t *ret_bytes)
{
    size_t at = range->at;
    struct slice field;
    assert(range->field.len == 0);
    *ret_keys = 0;
    *ret_bytes = 0;
    while (*ret_keys < keys_max && next_kv(range, &at, &field)) {
        ++*ret_keys;
        *ret_bytes += field.len;
    }
    range->in_window = *ret_keys;
}

bool forwarded_range_next(struct forwarded_range *range, struct slice *ret_field)
{
    if (range->in_window == 0)
        return false;
    range->in_window--;
    return next_kv(range, &range->at, ret_field);
}

size_t forwarded_range_fill(struct forwarded_range *range, uint8_t *dst, size_t room)
{
    size_t filled = 0;
    while (filled < room && (range->field.len || forwarded_range_next(range, &range->field))) {
        size_t n = size_min(room - filled, range->field.len);
        memcpy(dst + filled, range->field.ptr, n);
        range->field = slice_sub(range->field, n, range->field.len - n);
        filled += n;
    }
    return filled;
}
