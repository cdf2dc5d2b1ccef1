#include "store/upkeep/hash.h"

#include "base/crc32c.h"
#include "codec/pb/wire.h"
#include "store/mvcc/range.h"
#include "store/record/change.h"

enum { CHANGE_COST_BYTES = 128 }; /* the cost of looking up one change */

static void be64_write(uint8_t *dst, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        dst[i] = (uint8_t)(value >> (56 - 8 * i));
}

/*
 * The newest version of its key at keep_revision. The log may have it in two places while the
 * cleaner moves it, so it is identified by its revision.
 */
static bool is_kept(const struct store_hash *hash, const struct store_view *view,
                    const struct change_head *change)
{
    struct change_kv kv;
    change_read_kv(change, &kv);
    const struct index_item *item = index_root_find(&view->root, kv.key);
    struct range_kv newest;
    const struct change_head *version;
    /* If it cannot be read, the hash fails when it reaches it in the log. */
    return item && range_item_at(hash->log, item, hash->keep_revision, &newest) == ST_OK &&
           newest.mod_revision == change->revision &&
           change_get(hash->log, newest.loc, &version) == ST_OK && version->sub == change->sub;
}

static void hash_bytes(struct store_hash *hash, const void *bytes, size_t len)
{
    hash->crc = crc32c(hash->crc, slice_of(bytes, len));
}

/* As etcd stores it: main '_' sub, 't' for a tombstone; a tombstone's value has the key only. */
static void hash_change(struct store_hash *hash, const struct change_head *change)
{
    uint8_t name[18];
    be64_write(name, (uint64_t)change->revision);
    name[8] = '_';
    be64_write(name + 9, change->sub);
    name[17] = 't';
    if (!change_is_tombstone(change)) {
        struct slice message = change_message(change);
        hash_bytes(hash, name, 17);
        hash_bytes(hash, message.ptr, message.len);
        return;
    }
    struct change_kv kv;
    change_read_kv(change, &kv);
    uint8_t head[16];
    uint8_t *end = pb_message_head_write(head, 1, kv.key.len);
    hash_bytes(hash, name, 18);
    hash_bytes(hash, head, (size_t)(end - head));
    hash_bytes(hash, kv.key.ptr, kv.key.len);
}

static bool counts(struct store_hash *hash, const struct store_view *view,
                   const struct change_head *change)
{
    bool compacted = change->revision <= hash->compact_revision;
    if (!compacted && hash->any)
        return true;
    bool kept = !change_is_tombstone(change) && is_kept(hash, view, change);
    hash->any |= kept;
    return !compacted || kept;
}

static enum status hash_record(struct store_hash *hash, const struct store_view *view,
                               const struct log_record *record, size_t *bytes)
{
    struct change_walk walk;
    TRY(change_walk_init(&walk, record->body));
    for (;;) {
        const struct change_head *change;
        size_t offset;
        TRY(change_walk_next(&walk, &change, &offset));
        if (!change)
            return ST_OK;
        if (counts(hash, view, change))
            hash_change(hash, change);
        *bytes -= size_min(*bytes, CHANGE_COST_BYTES + change->field_bytes);
    }
}

static void rewind_to_first(struct store_hash *hash)
{
    hash->crc = 0;
    hash_bytes(hash, "key", 3);
    log_reader_init(&hash->reader, hash->log, 0);
}

/* ST_END when everything was read. */
static enum status hash_next(struct store_hash *hash, const struct store_view *view, size_t *bytes)
{
    struct log_record record;
    TRY(log_reader_next(&hash->reader, hash->log_index, &record));
    *bytes -= size_min(*bytes, CHANGE_COST_BYTES);
    if (record.type != LOG_RECORD_KV)
        return ST_OK;
    if (record.revision > hash->revision)
        return ST_END;
    return hash_record(hash, view, &record, bytes);
}

void store_hash_begin(struct store_hash *hash, const struct store_view *view, const struct log *log,
                      int64_t revision)
{
    bool newest = revision >= view->revision;
    *hash = (struct store_hash){
        .log = log,
        .compact_revision = view->compact_revision,
        .keep_revision = newest && !view->root.live_keys ? view->compact_revision : revision,
        .revision = revision,
        .log_index = view->log_index,
        .any = newest || revision <= 0,
    };
    rewind_to_first(hash);
}

void store_hash_begin_compaction(struct store_hash *hash, const struct store_view *view,
                                 const struct log *log, int64_t before, int64_t revision)
{
    *hash = (struct store_hash){
        .log = log,
        .compact_revision = before,
        .keep_revision = revision,
        .revision = revision,
        .log_index = view->log_index,
        .any = true,
    };
    rewind_to_first(hash);
}

static enum status hash_step(struct store_hash *hash, const struct store_view *view, size_t *bytes)
{
    while (*bytes) {
        enum status status = hash_next(hash, view, bytes);
        if (status != ST_END)
            TRY(status);
        else if (hash->any)
            return ST_OK;
        else {
            /* No key exists there: start again with what compaction has left. */
            hash->any = true;
            hash->keep_revision = hash->compact_revision;
            rewind_to_first(hash);
        }
    }
    return ST_AGAIN;
}

enum status store_hash_step(struct store_hash *hash, const struct store_view *view, size_t bytes,
                            uint32_t *ret_hash)
{
    if (hash->keep_revision > 0 && view->trim_target > hash->keep_revision)
        return ST_COMPACTED;
    if (!log_reader_is_current(&hash->reader))
        log_reader_init(&hash->reader, hash->log, hash->reader.next_index);
    TRY(hash_step(hash, view, &bytes));
    *ret_hash = hash->crc;
    return ST_OK;
}
