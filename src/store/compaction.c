#include "store/compaction.h"

#include "store/change.h"

void compaction_init(struct compaction *compaction, struct apply *apply, int64_t trimmed)
{
    *compaction = (struct compaction){.apply = apply, .trimmed = trimmed};
}

bool compaction_done(const struct compaction *compaction)
{
    return compaction->trimmed >= compaction->apply->compact_revision;
}

static bool version_before(const struct change_head *a, const struct change_head *b)
{
    return a->revision < b->revision || (a->revision == b->revision && a->sub < b->sub);
}

/* Drops what the change has replaced. */
static void change_trim(struct compaction *compaction, const struct change_head *change)
{
    struct apply *apply = compaction->apply;
    struct change_kv kv;
    change_read_kv(change, &kv);
    const struct index_item *item = index_find(apply->index, kv.key);
    if (!item)
        return;
    const uint64_t *older = index_item_older(item);
    uint32_t drop = 0;
    int64_t freed_bytes = 0;
    for (; drop < item->older_count; drop++) {
        const struct change_head *version = change_at(log_at(apply->log, older[drop]));
        bool is_tombstone_itself = change_is_tombstone(change) &&
                                   !version_before(change, version) &&
                                   !version_before(version, change);
        if (!version_before(version, change) && !is_tombstone_itself)
            break;
        freed_bytes += apply_db_bytes(version->field_bytes);
    }
    bool whole = change_is_tombstone(change) && item->newest.mod_revision == change->revision &&
                 item->newest.sub_revision == change->sub;
    if (drop || whole) {
        index_trim(apply->index, kv.key, drop, whole);
        apply->db_bytes_in_use -= freed_bytes + (whole ? apply_db_bytes(change->field_bytes) : 0);
    }
}

void compaction_let_go(struct compaction *compaction)
{
    compaction->reading = false;
}

/*
 * Trims what the record has replaced, from where the last step stopped in it. Its body is the same
 * as then, also if the cleaner has moved it: all of it lives until it is trimmed.
 */
static enum status record_trim(struct compaction *compaction, unsigned *changes_left)
{
    int64_t revision = compaction->record.revision;
    struct change_walk walk;
    TRY(change_walk_init(&walk, compaction->record.body));
    if (compaction->left) {
        walk.offset = compaction->offset;
        walk.left = compaction->left;
    }
    while (*changes_left) {
        const struct change_head *change;
        size_t offset;
        TRY(change_walk_next(&walk, &change, &offset));
        if (!change)
            break;
        change_trim(compaction, change);
        (*changes_left)--;
    }
    compaction->offset = walk.offset;
    compaction->left = walk.left;
    compaction->trimmed = walk.left ? revision : revision + 1;
    return ST_OK;
}

/* The next record that changed keys, or the one with changes left. ST_END at the target. */
static enum status record_next(struct compaction *compaction, uint64_t last_index)
{
    if (compaction->reading && compaction->left)
        return ST_OK;
    if (!compaction->reading)
        log_reader_seek_revision(&compaction->reader, compaction->apply->log, compaction->trimmed);
    compaction->reading = true;
    do
        TRY(log_reader_next(&compaction->reader, last_index, &compaction->record));
    while (compaction->record.type != LOG_RECORD_KV);
    return compaction->record.revision < compaction->apply->compact_revision ? ST_OK : ST_END;
}

enum status compaction_step(struct compaction *compaction, uint64_t last_index,
                            unsigned changes_max)
{
    while (changes_max && !compaction_done(compaction)) {
        enum status status = record_next(compaction, last_index);
        if (status == ST_END) {
            compaction->trimmed = compaction->apply->compact_revision;
            compaction->reading = false;
            break;
        }
        TRY(status);
        TRY(record_trim(compaction, &changes_max));
    }
    return ST_OK;
}
