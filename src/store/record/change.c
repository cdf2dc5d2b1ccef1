#include "store/record/change.h"

#include "base/crc32c.h"
#include "codec/pb/wire.h"
#include "store/log/damage.h"

/* Field numbers of mvccpb.KeyValue. */
enum { KV_KEY = 1, KV_CREATE = 2, KV_MOD = 3, KV_VERSION = 4, KV_VALUE = 5, KV_LEASE = 6 };
/* The field number of the KeyValue itself in an event and in a range response. */
enum { FIELD_NUMBER = 2 };

static size_t kv_bytes(const struct change_kv *kv)
{
    return pb_bytes_size(KV_KEY, kv->key.len) +
           pb_uint_size(KV_CREATE, (uint64_t)kv->create_revision) +
           pb_uint_size(KV_MOD, (uint64_t)kv->mod_revision) +
           pb_uint_size(KV_VERSION, (uint64_t)kv->version) +
           pb_bytes_size(KV_VALUE, kv->value.len) + pb_uint_size(KV_LEASE, (uint64_t)kv->lease);
}

size_t change_bytes(size_t field_bytes)
{
    return align_up(CHANGE_HEAD_BYTES + field_bytes, CHANGE_ALIGN);
}

size_t change_bytes_max(size_t key_bytes, size_t value_bytes)
{
    /* Two lengths, three or four numbers of ten bytes, six tags, and the head of the field. */
    enum { NUMBERS_BYTES_MAX = 2 * 5 + 4 * 10 + 6 + 6 };
    return change_bytes(NUMBERS_BYTES_MAX + key_bytes + value_bytes);
}

/* The flags of an undamaged change. */
static uint32_t summed_flags(const struct change_head *head, const uint8_t *field)
{
    struct change_head bare = *head;
    bare.flags = (head->flags & CHANGE_TOMBSTONE) | CHANGE_SUMMED;
    uint32_t crc = crc32c(0, slice_of(&bare, sizeof(bare)));
    crc = crc32c(crc, slice_of(field, head->field_bytes));
    return bare.flags | crc << CHANGE_SUM_SHIFT;
}

size_t change_write(uint8_t *dst, struct change_head *head, const struct change_kv *kv)
{
    size_t message_bytes = kv_bytes(kv);
    uint8_t *field = dst + CHANGE_HEAD_BYTES;
    uint8_t *p = pb_message_head_write(field, FIELD_NUMBER, message_bytes);
    p = pb_bytes_write(p, KV_KEY, kv->key);
    p = pb_uint_write(p, KV_CREATE, (uint64_t)kv->create_revision);
    p = pb_uint_write(p, KV_MOD, (uint64_t)kv->mod_revision);
    p = pb_uint_write(p, KV_VERSION, (uint64_t)kv->version);
    p = pb_bytes_write(p, KV_VALUE, kv->value);
    p = pb_uint_write(p, KV_LEASE, (uint64_t)kv->lease);

    head->field_bytes = (uint32_t)(p - field);
    assert(head->field_bytes == pb_message_head_size(FIELD_NUMBER, message_bytes) + message_bytes);
    head->flags = summed_flags(head, field);
    memcpy(dst, head, sizeof(*head));
    size_t taken = change_bytes(head->field_bytes);
    assert(taken <= change_bytes_max(kv->key.len, kv->value.len)); /* what was reserved */
    memset(p, 0, taken - (size_t)(p - dst));
    return taken;
}

/* -- At a location -- */

/* NULL if no change can be there. */
static const struct change_head *head_at(const struct log *log, log_loc loc)
{
    struct slice rest = log_rest_at(log, loc);
    if (UNLIKELY(rest.len < CHANGE_HEAD_BYTES || loc % 8))
        return NULL;
    const struct change_head *head = change_at(rest.ptr);
    size_t room = rest.len - CHANGE_HEAD_BYTES;
    return head->field_bytes >= 2 && head->field_bytes <= room ? head : NULL;
}

static bool is_intact(const struct change_head *head)
{
    if (LIKELY(head->flags & CHANGE_SUMMED))
        return head->flags == summed_flags(head, (const uint8_t *)head + CHANGE_HEAD_BYTES);
    /* Written before changes had checksums: it must at least be what change_write writes. */
    return head->flags <= CHANGE_TOMBSTONE && change_is_sound(head);
}

enum status change_get(const struct log *log, log_loc loc, const struct change_head **ret_head)
{
    const struct change_head *head = head_at(log, loc);
    if (UNLIKELY(!head || !is_intact(head))) {
        log_note_damage(log, loc);
        return ST_DAMAGED;
    }
    *ret_head = head;
    return ST_OK;
}

enum status change_get_known(const struct log *log, log_loc loc, int64_t revision,
                             uint32_t field_bytes, const struct change_head **ret_head)
{
    if (UNLIKELY(log_is_damaged(log)))
        return change_get(log, loc, ret_head);
    const struct change_head *head = head_at(log, loc);
    if (UNLIKELY(!head || head->revision != revision || head->field_bytes != field_bytes)) {
        log_note_damage(log, loc);
        return ST_DAMAGED;
    }
    *ret_head = head;
    return ST_OK;
}

/* -- Reading changes that are known to be undamaged -- */

struct slice change_message(const struct change_head *head)
{
    struct slice field = change_field(head);
    size_t len = 0;
    const uint8_t *p = pb_len_read(field.ptr + 1, field.ptr + field.len, &len);
    assert(p);
    return slice_of(p, len);
}

/*
 * Reads a number field if there is one at p. Like the others it returns NULL if the field is
 * truncated, and for NULL.
 */
static const uint8_t *number_read(const uint8_t *p, const uint8_t *end, uint32_t number,
                                  int64_t *ret_value)
{
    *ret_value = 0;
    if (!p || p == end || *p != PB_TAG(number, PB_WIRE_VARINT))
        return p;
    uint64_t value = 0;
    p = pb_varint_read(p + 1, end, &value);
    *ret_value = (int64_t)value;
    return p;
}

static const uint8_t *bytes_read(const uint8_t *p, const uint8_t *end, uint32_t number,
                                 struct slice *ret_bytes)
{
    *ret_bytes = SLICE_EMPTY;
    if (!p || p == end || *p != PB_TAG(number, PB_WIRE_LEN))
        return p;
    size_t len = 0;
    p = pb_len_read(p + 1, end, &len);
    if (!p)
        return NULL;
    *ret_bytes = slice_of(p, len);
    return p + len;
}

/* Reads what precedes the value; returns what follows. */
static const uint8_t *key_and_numbers_read(struct slice message, struct change_kv *kv)
{
    const uint8_t *end = message.ptr + message.len;
    const uint8_t *p = bytes_read(message.ptr, end, KV_KEY, &kv->key);
    p = number_read(p, end, KV_CREATE, &kv->create_revision);
    p = number_read(p, end, KV_MOD, &kv->mod_revision);
    return number_read(p, end, KV_VERSION, &kv->version);
}

/* False if it is not what change_write has written. */
static bool kv_read(struct slice message, struct change_kv *kv)
{
    const uint8_t *end = message.ptr + message.len;
    const uint8_t *p = key_and_numbers_read(message, kv);
    p = bytes_read(p, end, KV_VALUE, &kv->value);
    p = number_read(p, end, KV_LEASE, &kv->lease);
    return p == end;
}

void change_read_kv(const struct change_head *head, struct change_kv *ret_kv)
{
    bool is_whole = kv_read(change_message(head), ret_kv);
    assert(is_whole);
}

static bool field_read(struct slice field, struct change_kv *kv)
{
    size_t len = 0;
    const uint8_t *p = pb_len_read(field.ptr + 1, field.ptr + field.len, &len);
    return p && p + len == field.ptr + field.len && kv_read(slice_of(p, len), kv) && kv->key.len;
}

bool change_is_sound(const struct change_head *head)
{
    struct change_kv kv;
    return field_read(change_field(head), &kv);
}

bool change_field_is_sound(struct slice field, struct slice key)
{
    struct change_kv kv;
    return field_read(field, &kv) && slice_equal(kv.key, key);
}

enum status change_record_next(struct log_reader *reader, uint64_t last_index,
                               struct log_record *ret_record)
{
    enum { WALKED_MAX = 256 };
    for (unsigned walked = 1;; walked++) {
        struct log_record record;
        TRY(log_reader_next(reader, last_index, &record));
        if (record.type == LOG_RECORD_KV) {
            *ret_record = record;
            return ST_OK;
        }
        /* Very many records without keys, such as those of leases: their segments are searched. */
        if (walked % WALKED_MAX == 0 && record.revision)
            log_reader_seek_revision(reader, reader->log, record.revision + 1);
    }
}

enum status change_walk_init(struct change_walk *walk, struct slice body)
{
    if (body.len < CHANGE_BODY_HEAD_BYTES)
        return ST_DAMAGED;
    *walk = (struct change_walk){.body = body, .offset = CHANGE_BODY_HEAD_BYTES};
    memcpy(&walk->left, body.ptr, sizeof(walk->left));
    return ST_OK;
}

enum status change_walk_next(struct change_walk *walk, const struct change_head **ret_head,
                             size_t *ret_offset)
{
    if (walk->left == 0) {
        *ret_head = NULL;
        return ST_OK;
    }
    assert(walk->offset <= walk->body.len);
    size_t room = walk->body.len - walk->offset;
    if (room < CHANGE_HEAD_BYTES)
        return ST_DAMAGED;
    const struct change_head *head = change_at(walk->body.ptr + walk->offset);
    if (head->field_bytes < 2 || change_bytes(head->field_bytes) > room)
        return ST_DAMAGED;
    *ret_head = head;
    *ret_offset = walk->offset;
    walk->offset += change_bytes(head->field_bytes);
    walk->left--;
    return ST_OK;
}

/* -- Compactions -- */

enum status change_compaction_read(struct slice body, struct change_compaction *ret_compaction)
{
    struct change_compaction compaction = {0};
    if (body.len != sizeof(compaction.compact_revision) && body.len != sizeof(compaction))
        return ST_DAMAGED;
    memcpy(&compaction, body.ptr, body.len);
    *ret_compaction = compaction;
    return ST_OK;
}
