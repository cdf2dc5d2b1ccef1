#include "store/hash.h"

#include "base/crc32c.h"
#include "codec/pb/wire.h"
#include "store/change.h"
#include "store/range.h"

struct hasher {
    const struct store_view *view;
    const struct log *log;
    int64_t compact_revision;
    int64_t revision;
    uint32_t crc;
};

static void be64_write(uint8_t *dst, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        dst[i] = (uint8_t)(value >> (56 - 8 * i));
}

/* The newest version of its key at the hash's revision, and not a tombstone. */
static bool is_kept(const struct hasher *hasher, struct slice key, log_loc loc)
{
    const struct index_item *item = index_root_find(&hasher->view->root, key);
    struct range_kv kv;
    return item && range_item_at(hasher->log, item, hasher->revision, &kv) && kv.loc == loc;
}

static void hash_bytes(struct hasher *hasher, const void *bytes, size_t len)
{
    hasher->crc = crc32c(hasher->crc, slice_of(bytes, len));
}

/* As etcd stores it: main '_' sub, 't' for a tombstone; a tombstone's value has the key only. */
static void hash_change(struct hasher *hasher, const struct change_head *change)
{
    uint8_t name[18];
    be64_write(name, (uint64_t)change->revision);
    name[8] = '_';
    be64_write(name + 9, change->sub);
    name[17] = 't';
    if (!change_is_tombstone(change)) {
        struct slice message = change_message(change);
        hash_bytes(hasher, name, 17);
        hash_bytes(hasher, message.ptr, message.len);
        return;
    }
    struct change_kv kv;
    change_read_kv(change, &kv);
    uint8_t head[16];
    uint8_t *end = pb_message_head_write(head, 1, kv.key.len);
    hash_bytes(hasher, name, 18);
    hash_bytes(hasher, head, (size_t)(end - head));
    hash_bytes(hasher, kv.key.ptr, kv.key.len);
}

static bool counts(const struct hasher *hasher, const struct change_head *change, log_loc loc)
{
    if (change->revision > hasher->compact_revision)
        return true;
    if (change_is_tombstone(change))
        return false;
    struct change_kv kv;
    change_read_kv(change, &kv);
    return is_kept(hasher, kv.key, loc);
}

static enum status hash_record(struct hasher *hasher, const struct log_record *record)
{
    struct change_walk walk;
    TRY(change_walk_init(&walk, record->body));
    for (;;) {
        const struct change_head *change;
        size_t offset;
        TRY(change_walk_next(&walk, &change, &offset));
        if (!change)
            return ST_OK;
        if (counts(hasher, change, record->body_loc + offset))
            hash_change(hasher, change);
    }
}

enum status store_hash(const struct store_view *view, const struct log *log,
                       int64_t compact_revision, int64_t revision, uint32_t *ret_hash)
{
    struct hasher hasher = {
        .view = view,
        .log = log,
        .compact_revision = compact_revision,
        .revision = revision,
    };
    hash_bytes(&hasher, "key", 3);
    struct log_reader reader;
    log_reader_init(&reader, log, 0);
    for (;;) {
        struct log_record record;
        enum status status = log_reader_next(&reader, view->log_index, &record);
        if (status == ST_END)
            break;
        TRY(status);
        if (record.type != LOG_RECORD_KV)
            continue;
        if (record.revision > revision)
            break;
        TRY(hash_record(&hasher, &record));
    }
    *ret_hash = hasher.crc;
    return ST_OK;
}
