#include "store/hash.h"

#include "base/crc32c.h"
#include "codec/pb/wire.h"
#include "store/change.h"
#include "store/range.h"

struct hasher {
    const struct store_view *view;
    const struct log *log;
    int64_t compact_revision;
    int64_t keep_revision; /* what is compacted counts if its key has it at this revision */
    int64_t revision;      /* the last one hashed */
    uint32_t crc;
};

static void be64_write(uint8_t *dst, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        dst[i] = (uint8_t)(value >> (56 - 8 * i));
}

/* The newest version of its key at keep_revision. The log may have it in two places while the
 * cleaner moves it, so it is known by its number. */
static bool is_kept(const struct hasher *hasher, const struct change_head *change)
{
    struct change_kv kv;
    change_read_kv(change, &kv);
    const struct index_item *item = index_root_find(&hasher->view->root, kv.key);
    struct range_kv newest;
    const struct change_head *version;
    /* One that cannot be read is met in the log as well, and ends the hash there. */
    return item && range_item_at(hasher->log, item, hasher->keep_revision, &newest) == ST_OK &&
           newest.mod_revision == change->revision &&
           change_get(hasher->log, newest.loc, &version) == ST_OK && version->sub == change->sub;
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

static bool counts(const struct hasher *hasher, const struct change_head *change)
{
    if (change->revision > hasher->compact_revision)
        return true;
    return !change_is_tombstone(change) && is_kept(hasher, change);
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
        if (counts(hasher, change))
            hash_change(hasher, change);
    }
}

static enum status hash_log(struct hasher *hasher, uint32_t *ret_hash)
{
    hash_bytes(hasher, "key", 3);
    struct log_reader reader;
    log_reader_init(&reader, hasher->log, 0);
    for (;;) {
        struct log_record record;
        enum status status = log_reader_next(&reader, hasher->view->log_index, &record);
        if (status == ST_END)
            break;
        TRY(status);
        if (record.type != LOG_RECORD_KV)
            continue;
        if (record.revision > hasher->revision)
            break;
        TRY(hash_record(hasher, &record));
    }
    *ret_hash = hasher->crc;
    return ST_OK;
}

static bool any_key_exists(const struct store_view *view, const struct log *log, int64_t revision)
{
    if (revision >= view->revision)
        return view->root.live_keys > 0;
    struct range_state state = {.root = view->root, .log = log};
    struct range_bounds all = {.to_end = true};
    struct range_walk walk;
    range_walk_init(&walk, &state, all, revision);
    return range_walk_next(&walk) != NULL;
}

enum status store_hash_at(const struct store_view *view, const struct log *log, int64_t revision,
                          uint32_t *ret_hash)
{
    struct hasher hasher = {
        .view = view,
        .log = log,
        .compact_revision = view->compact_revision,
        .keep_revision = revision,
        .revision = revision,
    };
    if (revision > 0 && !any_key_exists(view, log, revision))
        hasher.keep_revision = view->compact_revision;
    return hash_log(&hasher, ret_hash);
}

enum status store_hash_compaction(const struct store_view *view, const struct log *log,
                                  int64_t before, int64_t revision, uint32_t *ret_hash)
{
    if (view->trimmed > revision)
        return ST_COMPACTED;
    struct hasher hasher = {
        .view = view,
        .log = log,
        .compact_revision = before,
        .keep_revision = revision,
        .revision = revision,
    };
    return hash_log(&hasher, ret_hash);
}
