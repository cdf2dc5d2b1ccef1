#include "store/snapshot.h"

#include "base/buf.h"
#include "base/xalloc.h"
#include "bolt/writer.h"
#include "store/mvcc/range_walk.h"
#include "store/record/change.h"

/* The position of a pass over everything. */
struct snapshot_pass {
    struct bolt_writer *writer;
    int bucket; /* -1: before the first; BOLT_BUCKETS: everything was passed on */
    size_t entry;
    struct log_hold_reader reader;
    struct change_walk walk; /* walk over the current record */
    int64_t revision;        /* revision of the last change examined */
    int64_t sub;
    uint64_t compacted; /* the number of changes up to the compact revision so far */
};

struct store_snapshot {
    struct log_hold *hold;          /* owned */
    struct snapshot_source *source; /* borrowed */
    int64_t revision;
    int64_t compact_revision;
    bool measured;
    unsigned restarts;
    uint64_t pages;
    struct buf kept; /* one bit for each change up to the compact revision: compaction keeps it */
    struct snapshot_pass pass;
    /* While measuring: */
    const struct store_view *view;
    const struct log *log;
};

/* -- Which changes -- */

/* The newest version of the key at the compact revision: its revision and position in it. */
static bool newest_at(const struct store_snapshot *snapshot, const struct index_item *item,
                      int64_t *ret_revision, uint32_t *ret_sub)
{
    if (item->newest.mod_revision <= snapshot->compact_revision) {
        *ret_revision = item->newest.mod_revision;
        *ret_sub = item->newest.sub_revision;
        return true;
    }
    uint32_t place;
    const struct change_head *head;
    /* If it cannot be read, the second pass fails when it reaches it in the log. */
    if (range_older_at(snapshot->log, item, snapshot->compact_revision, &place, &head) != ST_OK)
        return false;
    *ret_revision = head->revision;
    *ret_sub = head->sub;
    return true;
}

/*
 * As etcd compacts: the newest of each key stays, except for tombstones before that very revision.
 */
static bool compaction_keeps(const struct store_snapshot *snapshot,
                             const struct change_head *change)
{
    if (change_is_tombstone(change) && change->revision < snapshot->compact_revision)
        return false;
    struct change_kv kv;
    change_read_kv(change, &kv);
    const struct index_item *item = index_root_find(&snapshot->view->root, kv.key);
    int64_t revision;
    uint32_t sub;
    return item && newest_at(snapshot, item, &revision, &sub) && revision == change->revision &&
           sub == change->sub;
}

static void bit_add(struct store_snapshot *snapshot, uint64_t at, bool bit)
{
    static const uint8_t zero;
    struct buf *kept = &snapshot->kept;
    if (at % 8 == 0 && buf_append(kept, slice_of(&zero, 1)) != ST_OK)
        xalloc_check(NULL, kept->len);
    kept->ptr[at / 8] |= (uint8_t)(bit << at % 8);
}

static bool is_wanted(struct store_snapshot *snapshot, const struct change_head *change)
{
    if (change->revision > snapshot->compact_revision)
        return true;
    uint64_t at = snapshot->pass.compacted++;
    if (!snapshot->measured)
        bit_add(snapshot, at, compaction_keeps(snapshot, change));
    assert(at / 8 < snapshot->kept.len);
    return snapshot->kept.ptr[at / 8] >> at % 8 & 1;
}

/* The next change of the log, wanted or not. ST_END. */
static enum status next_change(struct snapshot_pass *pass, const struct change_head **ret_change)
{
    for (;;) {
        size_t offset;
        if (pass->walk.left) {
            TRY(change_walk_next(&pass->walk, ret_change, &offset));
            break;
        }
        struct log_record record;
        TRY(log_hold_next(&pass->reader, &record));
        if (record.type == LOG_RECORD_KV)
            TRY(change_walk_init(&pass->walk, record.body));
    }
    /*
     * The following code and the readers of the file rely on it. The first pass verifies no
     * checksum.
     */
    const struct change_head *change = *ret_change;
    if (!change_is_sound(change) || change->revision < pass->revision ||
        (change->revision == pass->revision && (int64_t)change->sub <= pass->sub))
        return ST_DAMAGED;
    pass->revision = change->revision;
    pass->sub = change->sub;
    return ST_OK;
}

/* -- Passing changes to the file -- */

/* In etcd's form. For a tombstone that is the key alone, with which ours begins. */
static void add_change(struct store_snapshot *snapshot, const struct change_head *change)
{
    struct bolt_revision revision = {change->revision, change->sub, change_is_tombstone(change)};
    uint8_t name[BOLT_TOMBSTONE_BYTES];
    size_t name_bytes = bolt_revision_write(revision, name);
    struct slice value = change_message(change);
    if (revision.is_tombstone) {
        struct change_kv kv;
        change_read_kv(change, &kv);
        value.len = (size_t)(kv.key.ptr + kv.key.len - value.ptr);
    }
    bolt_writer_add(snapshot->pass.writer, slice_of(name, name_bytes), value);
}

static void next_bucket(struct snapshot_pass *pass)
{
    pass->bucket++;
    pass->entry = 0;
    if (pass->bucket < BOLT_BUCKETS)
        bolt_writer_bucket(pass->writer, bolt_bucket_name((enum bolt_etcd_bucket)pass->bucket));
}

static enum status hand_over_change(struct store_snapshot *snapshot)
{
    const struct change_head *change;
    enum status status = next_change(&snapshot->pass, &change);
    if (status == ST_END) {
        next_bucket(&snapshot->pass);
        return ST_OK;
    }
    TRY(status);
    if (is_wanted(snapshot, change))
        add_change(snapshot, change);
    return ST_OK;
}

static void hand_over_entry(struct store_snapshot *snapshot)
{
    struct snapshot_pass *pass = &snapshot->pass;
    struct snapshot_entry entry;
    enum bolt_etcd_bucket bucket = (enum bolt_etcd_bucket)pass->bucket;
    if (pass->bucket >= 0 && snapshot->source->entry(snapshot->source, bucket, pass->entry++,
                                                     snapshot->compact_revision, &entry))
        bolt_writer_add(pass->writer, entry.key, entry.value);
    else
        next_bucket(pass);
}

/* Passes on at most one entry. ST_END when all were passed on. */
static enum status hand_over(struct store_snapshot *snapshot)
{
    struct snapshot_pass *pass = &snapshot->pass;
    if (pass->bucket == BOLT_BUCKETS)
        return ST_END;
    if (pass->bucket == BOLT_BUCKET_KEY)
        TRY(hand_over_change(snapshot));
    else
        hand_over_entry(snapshot);
    if (pass->bucket == BOLT_BUCKETS)
        snapshot->pages = bolt_writer_end(pass->writer);
    return ST_OK;
}

static void pass_begin(struct store_snapshot *snapshot)
{
    struct snapshot_pass *pass = &snapshot->pass;
    bolt_writer_free(pass->writer);
    *pass =
        (struct snapshot_pass){.writer = bolt_writer_new(snapshot->pages), .bucket = -1, .sub = -1};
    log_hold_read(snapshot->hold, snapshot->measured, &pass->reader);
}

/* -- The two passes -- */

enum status store_snapshot_measure(struct store_snapshot *snapshot, const struct store_view *view,
                                   const struct log *log, unsigned changes_max)
{
    assert(!snapshot->measured);
    if (view->compact_revision > snapshot->revision)
        return ST_COMPACTED;
    bool begun = snapshot->pass.writer;
    if (begun && view->compact_revision != snapshot->compact_revision)
        snapshot->restarts++;
    if (!begun || view->compact_revision != snapshot->compact_revision) {
        /* A compaction has removed versions that were measured. */
        snapshot->compact_revision = view->compact_revision;
        snapshot->kept.len = 0;
        pass_begin(snapshot);
    }
    snapshot->view = view;
    snapshot->log = log;
    enum status status = ST_OK;
    for (unsigned i = 0; i < changes_max && status == ST_OK; i++)
        status = hand_over(snapshot);
    snapshot->view = NULL;
    if (status == ST_OK)
        return ST_AGAIN;
    if (status != ST_END)
        return status;
    snapshot->measured = true;
    pass_begin(snapshot);
    return ST_OK;
}

enum status store_snapshot_fill(struct store_snapshot *snapshot, uint8_t *dst, size_t room,
                                size_t *ret_len)
{
    assert(snapshot->measured);
    size_t len = 0;
    for (;;) {
        len += bolt_writer_take(snapshot->pass.writer, dst + len, room - len);
        if (len == room)
            break;
        enum status status = hand_over(snapshot);
        if (status == ST_END)
            break;
        TRY(status);
    }
    *ret_len = len;
    return ST_OK;
}

log_loc store_snapshot_damage(const struct store_snapshot *snapshot)
{
    return snapshot->pass.reader.at;
}

unsigned store_snapshot_restarts(const struct store_snapshot *snapshot)
{
    return snapshot->restarts;
}

uint64_t store_snapshot_bytes(const struct store_snapshot *snapshot)
{
    assert(snapshot->measured);
    return snapshot->pages * BOLT_PAGE_BYTES;
}

/* -- Creating and freeing -- */

struct store_snapshot *store_snapshot_new(struct log_hold *hold, int64_t revision,
                                          struct snapshot_source *source)
{
    struct store_snapshot *snapshot = xcalloc(1, sizeof(*snapshot));
    snapshot->hold = hold;
    snapshot->revision = revision;
    snapshot->source = source;
    return snapshot;
}

void store_snapshot_free(struct store_snapshot *snapshot)
{
    if (!snapshot)
        return;
    bolt_writer_free(snapshot->pass.writer);
    buf_fini(&snapshot->kept);
    log_hold_free(snapshot->hold);
    free(snapshot);
}
