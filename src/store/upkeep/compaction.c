#include "store/upkeep/compaction.h"

#include "store/mvcc/range_walk.h"
#include "store/record/change.h"

enum { WORK_BYTES = 4096 }; /* read per unit of work */

void compaction_init(struct compaction *compaction, struct applier *applier, int64_t trimmed)
{
    *compaction = (struct compaction){.applier = applier, .trimmed = trimmed, .target = trimmed};
}

void compaction_want_release(struct compaction *compaction)
{
    int64_t target = compaction->applier->compact_revision;
    compaction->wants_release = target > 0 && compaction->released != target;
}

static bool version_before(const struct change_head *a, const struct change_head *b)
{
    return a->revision < b->revision || (a->revision == b->revision && a->sub < b->sub);
}

/*
 * The number of the item's versions that are older than the change, and their bytes. A version that
 * cannot be read is older if a later one is, because they are in order; otherwise it waits for the
 * next compaction.
 */
static uint32_t count_before(const struct applier *applier, const struct index_item *item,
                             const struct change_head *change, int64_t *ret_bytes)
{
    const uint64_t *older = index_item_older(item);
    uint32_t count = 0;
    *ret_bytes = 0;
    for (uint32_t at = 0; at < item->older_count; at++) {
        const struct change_head *version;
        if (change_get(applier->log, older[at], &version) != ST_OK)
            continue;
        if (!version_before(version, change))
            break;
        *ret_bytes += applier_db_bytes(version->field_bytes);
        count = at + 1;
    }
    return count;
}

/* Whether the version at that location is the change itself. */
static bool is_itself(const struct applier *applier, const struct index_item *item, uint32_t place,
                      const struct change_head *change)
{
    const struct change_head *version;
    return place < item->older_count &&
           change_get(applier->log, index_item_older(item)[place], &version) == ST_OK &&
           !version_before(change, version);
}

/* The bytes of the versions that a change has replaced, and of a tombstone itself. */
static int64_t replaced_bytes(const struct compaction *compaction, const struct change_head *change)
{
    const struct applier *applier = compaction->applier;
    struct change_kv kv;
    change_read_kv(change, &kv);
    const struct index_item *item = index_find(applier->index, kv.key);
    if (!item)
        return 0; /* all its versions were trimmed */
    int64_t bytes;
    uint32_t count = count_before(applier, item, change, &bytes);
    bool is_newest =
        item->newest.mod_revision == change->revision && item->newest.sub_revision == change->sub;
    if (change_is_tombstone(change) && (is_newest || is_itself(applier, item, count, change)))
        bytes += applier_db_bytes(change->field_bytes);
    return bytes;
}

/*
 * The number of the key's oldest versions that are not needed after the compaction, or the whole
 * item.
 */
struct excess {
    uint32_t drop;
    bool whole;
};

static struct excess item_excess(const struct compaction *compaction, const struct index_item *item)
{
    const struct index_version *newest = &item->newest;
    /* The newest version stays as the one that is visible at the target, unless it is a tombstone.
     */
    if (newest->mod_revision < compaction->target)
        return (struct excess){.drop = item->older_count, .whole = !index_item_live(item)};
    uint32_t place;
    const struct change_head *kept;
    /* Versions that cannot be read wait for the next compaction of the key. */
    if (item->older_count == 0 || range_older_at(compaction->applier->log, item,
                                                 compaction->target - 1, &place, &kept) != ST_OK)
        return (struct excess){0};
    return (struct excess){.drop = place + (change_is_tombstone(kept) ? 1 : 0)};
}

static void spend(unsigned *work, size_t bytes)
{
    size_t cost = 1 + bytes / WORK_BYTES;
    *work -= cost < *work ? (unsigned)cost : *work;
}

/*
 * Counts the bytes of the item's oldest versions until the work is used up, but at least one: a
 * single long change may take all the work of a step. Returns how many versions were counted.
 */
static uint32_t oldest_bytes(const struct compaction *compaction, const struct index_item *item,
                             uint32_t count, unsigned *work, int64_t *ret_bytes)
{
    const uint64_t *older = index_item_older(item);
    uint32_t at = 0;
    *ret_bytes = 0;
    for (; at < count && (*work || at == 0); at++) {
        const struct change_head *version;
        bool known = change_get(compaction->applier->log, older[at], &version) == ST_OK;
        *ret_bytes += known ? applier_db_bytes(version->field_bytes) : 0;
        spend(work, known ? version->field_bytes : 0);
    }
    return at;
}

/* False: the work is used up, and the key has more to drop. */
static bool change_trim(struct compaction *compaction, const struct change_head *change,
                        unsigned *work)
{
    struct applier *applier = compaction->applier;
    if (change->revision == compaction->counted && !compaction->resumes)
        applier->db_bytes_held -= replaced_bytes(compaction, change);
    struct change_kv kv;
    change_read_kv(change, &kv);
    const struct index_item *item = index_find(applier->index, kv.key);
    struct excess excess = item ? item_excess(compaction, item) : (struct excess){0};
    int64_t freed_bytes = 0;
    uint32_t drop = 0;
    if (excess.drop)
        drop = oldest_bytes(compaction, item, excess.drop, work, &freed_bytes);
    assert(drop <= excess.drop);
    bool whole = excess.whole && drop == excess.drop;
    const struct change_head *newest; /* the index does not have the length of a tombstone */
    if (whole && change_get(applier->log, item->newest.loc, &newest) == ST_OK)
        freed_bytes += applier_db_bytes(newest->field_bytes);
    if (drop || whole)
        index_trim(applier->index, kv.key, drop, whole);
    applier->db_bytes_in_use -= freed_bytes;
    return drop == excess.drop;
}

/* Drops only what the change has replaced: a watch from here on still receives the change. */
static void change_release(struct compaction *compaction, const struct change_head *change)
{
    struct applier *applier = compaction->applier;
    struct change_kv kv;
    change_read_kv(change, &kv);
    const struct index_item *item = index_find(applier->index, kv.key);
    if (!item)
        return;
    int64_t freed_bytes;
    uint32_t drop = count_before(applier, item, change, &freed_bytes);
    index_trim(applier->index, kv.key, drop, false);
    applier->db_bytes_in_use -= freed_bytes;
}

void compaction_release_log(struct compaction *compaction)
{
    compaction->reading = false;
    compaction->left = 0;
}

/* False: the next step continues with the same change. */
static bool change_visit(struct compaction *compaction, const struct change_head *change,
                         unsigned *work)
{
    if (!compaction->resumes)
        spend(work, change->field_bytes);
    if (!compaction->counting)
        return change_trim(compaction, change, work);
    if (compaction->releasing)
        change_release(compaction, change);
    compaction->held_bytes += replaced_bytes(compaction, change);
    return true;
}

/* Skips the changes before the next one. If that is gone, there is nothing left to trim. */
static enum status walk_to_next(struct compaction *compaction, struct change_walk *walk)
{
    for (;;) {
        struct change_walk ahead = *walk;
        const struct change_head *change;
        size_t offset;
        TRY(change_walk_next(&ahead, &change, &offset));
        if (!change || change->sub >= compaction->next_sub) {
            compaction->resumes &= change && change->sub == compaction->next_sub;
            return ST_OK;
        }
        *walk = ahead;
    }
}

/* Begins where the last step stopped in the record, or at its first change. */
static enum status walk_begin(struct compaction *compaction, struct change_walk *walk)
{
    TRY(change_walk_init(walk, compaction->record.body));
    if (compaction->left) {
        walk->offset = compaction->offset;
        walk->left = compaction->left;
        return ST_OK;
    }
    if (compaction->next_revision == compaction->record.revision)
        return walk_to_next(compaction, walk);
    compaction->resumes = false;
    return ST_OK;
}

/* Trims or counts what the record has replaced, from where the last step stopped. */
static enum status record_trim(struct compaction *compaction, unsigned *work)
{
    int64_t revision = compaction->record.revision;
    struct change_walk walk;
    TRY(walk_begin(compaction, &walk));
    compaction->next_revision = revision;
    while (*work) {
        compaction->offset = walk.offset;
        compaction->left = walk.left;
        const struct change_head *change;
        size_t offset;
        if (change_walk_next(&walk, &change, &offset) != ST_OK) {
            /* Damaged since the last step: the rest waits for the next compaction. */
            compaction->left = walk.left = 0;
            break;
        }
        if (!change)
            break;
        compaction->next_sub = change->sub;
        compaction->resumes = !change_visit(compaction, change, work);
        if (compaction->resumes)
            return ST_OK;
        compaction->next_sub = change->sub + 1;
        compaction->offset = walk.offset;
        compaction->left = walk.left;
    }
    if (!walk.left)
        compaction->next_revision = 0;
    if (!compaction->counting)
        compaction->trimmed = walk.left ? revision : revision + 1;
    return ST_OK;
}

/*
 * Finds the next record that changed keys, or the one with changes left. ST_END when there is none
 * up to revision_max.
 */
static enum status record_next(struct compaction *compaction, uint64_t last_index,
                               int64_t revision_max)
{
    if (compaction->reading && compaction->left)
        return ST_OK;
    if (!compaction->reading)
        log_reader_seek_revision(&compaction->reader, compaction->applier->log,
                                 compaction->trimmed);
    compaction->reading = true;
    enum status status;
    /* What an unreadable record has replaced stays until the key is compacted again. */
    while ((status = change_record_next(&compaction->reader, last_index, &compaction->record)) ==
           ST_DAMAGED)
        log_reader_pass_damage(&compaction->reader);
    TRY(status);
    return compaction->record.revision <= revision_max ? ST_OK : ST_END;
}

/* Drops the position: the next step finds it again. */
static void stop_reading(struct compaction *compaction)
{
    compaction_release_log(compaction);
    compaction->next_revision = 0;
    compaction->resumes = false;
}

static enum status trim_step(struct compaction *compaction, uint64_t last_index, unsigned *work)
{
    /* A pass has ended: the next one goes up to the newest compaction. */
    if (compaction->trimmed >= compaction->target)
        compaction->target = compaction->applier->compact_revision;
    assert(!compaction->counting);
    assert(compaction->trimmed < compaction->target);
    enum status status = record_next(compaction, last_index, compaction->target - 1);
    if (status == ST_END) {
        compaction->trimmed = compaction->target;
        stop_reading(compaction);
        return ST_OK;
    }
    TRY(status);
    return record_trim(compaction, work);
}

static void count_end(struct compaction *compaction)
{
    assert(compaction->counting == compaction->applier->compact_revision);
    assert(compaction->held_bytes >= 0);
    compaction->counted = compaction->counting;
    compaction->applier->db_bytes_held = compaction->held_bytes;
    applier_settle_size(compaction->applier);
    if (compaction->releasing) {
        compaction->released = compaction->counting;
        compaction->wants_release = false;
    }
    compaction->counting = 0;
    stop_reading(compaction);
}

/* Processes the one record at the compact revision, if there is one. */
static enum status count_step(struct compaction *compaction, uint64_t last_index, unsigned *work)
{
    int64_t target = compaction->applier->compact_revision;
    assert(compaction->trimmed >= target);
    if (!compaction->counting) {
        compaction->counting = target;
        compaction->releasing = compaction->wants_release;
        compaction->held_bytes = 0;
    }
    enum status status = record_next(compaction, last_index, target);
    if (status == ST_OK)
        TRY(record_trim(compaction, work));
    else if (status != ST_END)
        return status;
    if (status == ST_END || compaction->left == 0)
        count_end(compaction);
    return ST_OK;
}

enum status compaction_step(struct compaction *compaction, uint64_t last_index, unsigned work_max)
{
    if (compaction->counting && compaction->counting != compaction->applier->compact_revision) {
        compaction->counting = 0; /* a newer compaction: what was counted is trimmed now */
        stop_reading(compaction);
    }
    while (work_max && compaction->trimmed < compaction->applier->compact_revision)
        TRY(trim_step(compaction, last_index, &work_max));
    while (work_max && !compaction_done(compaction))
        TRY(count_step(compaction, last_index, &work_max));
    return ST_OK;
}
