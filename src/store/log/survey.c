#include "store/log/survey.h"

#include "store/log/recover_private.h"

#include <stdlib.h>

struct surveying {
    struct log_survey *survey;
    bool salvages;
    struct segment_order found; /* owned until they are in the log's order */
    bool nomem;
    bool blank_end; /* the segment to be written next is empty, or does not exist */
};

static void note_damage(struct surveying *s, uint64_t id, uint64_t offset)
{
    if (s->survey->damaged_segment)
        return;
    s->survey->damaged_segment = id;
    s->survey->damaged_offset = offset;
}

/* -- Files -- */

static void see_name(void *ctx, const char *name)
{
    struct surveying *s = ctx;
    struct log_survey *survey = s->survey;
    uint64_t id;
    if (!segment_name_parse(name, ".seg", &id) || id == 0 || id > SEGMENT_ID_MAX)
        return;
    uint64_t *grown = realloc(survey->ids, (survey->id_count + 1) * sizeof(*grown));
    if (!grown) {
        s->nomem = true;
        return;
    }
    survey->ids = grown;
    survey->ids[survey->id_count++] = id;
}

/*
 * Takes the numbers from all records that can be read, with holes between them: the segment ends
 * with its last byte that is not zero.
 */
static void learn_with_holes(struct segment *segment)
{
    uint64_t capacity = segment->head.capacity, end = capacity, index = 0;
    int64_t first_revision = 0, last_revision = 0;
    while (end > SEGMENT_RECORDS_OFFSET && segment->base[end - 1] == 0)
        end--;
    end = size_min(align_up(end, RECORD_ALIGN), capacity);
    for (uint64_t offset = SEGMENT_RECORDS_OFFSET; offset + RECORD_HEAD_BYTES <= end;) {
        struct record_head head;
        struct slice rest = slice_of(segment->base + offset, capacity - offset);
        if (!record_head_check(rest, segment->head.salt, &head) || head.index <= index ||
            record_check(rest, segment->head.salt, &head) != RECORD_GOOD) {
            offset += RECORD_ALIGN;
            continue;
        }
        segment->first_index = index ? segment->first_index : head.index;
        index = head.index;
        first_revision = first_revision ? first_revision : head.revision;
        last_revision = head.revision ? head.revision : last_revision;
        offset += align_up(head.len, RECORD_ALIGN);
        end = offset > end ? offset : end; /* a value may end with zeros */
    }
    atomic_store(&segment->last_index, index);
    atomic_store(&segment->first_revision, first_revision);
    atomic_store(&segment->last_revision, last_revision);
    atomic_store(&segment->written, end);
}

/* Takes the numbers from the seal, or else from the records. */
static void learn(struct surveying *s, struct segment *segment)
{
    struct segment_seal seal = segment_seal_read(segment);
    struct record_head first;
    enum status status = segment_seal_check(&seal, &segment->head);
    if (status == ST_OK) {
        segment_apply_seal(segment, &seal);
        return;
    }
    if (status == ST_DAMAGED || segment->head.flags & SEGMENT_REWRITTEN)
        note_damage(s, segment->head.id, SEGMENT_SEAL_OFFSET);
    if (s->salvages) {
        learn_with_holes(segment);
        return;
    }
    struct slice records = slice_of(segment->base + SEGMENT_RECORDS_OFFSET,
                                    segment->head.capacity - SEGMENT_RECORDS_OFFSET);
    if (record_check(records, segment->head.salt, &first) == RECORD_GOOD) {
        segment->first_index = first.index;
        (void)segment_walk_records(segment);
    } else if (bytes_first_nonzero(records) < records.len) {
        s->blank_end = false;
    }
}

/* Its locations stay readable, but it is not part of the sequence of records. */
static enum status keep_aside(struct surveying *s, struct segment *owned)
{
    struct log *log = s->survey->log;
    AUTO(segment_freep) struct segment *segment = owned;
    LOCK_SCOPE(&log->lock);
    TRY(segment_order_reserve(&log->retired));
    TRY(segment_table_put(&log->table, segment->head.id, segment));
    segment_order_add(&log->retired, TAKE(segment));
    return ST_OK;
}

static enum status open_one(struct surveying *s, uint64_t id)
{
    struct log *log = s->survey->log;
    AUTO(segment_freep) struct segment *segment = NULL;
    enum status status = s->salvages ? segment_open_damaged(log->fs, log->dir, id, &segment)
                                     : segment_open(log->fs, log->dir, id, &segment);
    if (status == ST_DAMAGED || (status != ST_OK && status != ST_NOMEM && s->salvages)) {
        s->survey->unreadable++;
        note_damage(s, id, 0);
        return ST_OK;
    }
    TRY(status);
    if (segment->head_mended) {
        s->survey->heads_mended++;
        note_damage(s, id, 0);
    }
    learn(s, segment);
    if (!segment->first_index && s->salvages &&
        atomic_load(&segment->written) > SEGMENT_RECORDS_OFFSET)
        return keep_aside(s, TAKE(segment)); /* no record is readable, single changes may be */
    if (!segment->first_index)
        return ST_OK; /* nothing was written to it */
    s->survey->has_copies |= segment->head.flags & SEGMENT_REWRITTEN;
    TRY(segment_order_reserve(&s->found));
    segment_order_add(&s->found, TAKE(segment));
    return ST_OK;
}

/* -- Their order -- */

/* If a segment has copies, the oldest is used. */
static enum status drop_copies(struct surveying *s)
{
    struct segment_order *found = &s->found;
    for (size_t i = 1; i < found->count;) {
        const struct segment *before = found->items[i - 1], *segment = found->items[i];
        if (before->first_index != segment->first_index) {
            i++;
            continue;
        }
        struct segment *copy =
            segment_order_remove(found, before->head.id > segment->head.id ? i - 1 : i);
        if (s->salvages)
            TRY(keep_aside(s, copy)); /* the checkpoint may have locations in both */
        else
            segment_free(copy);
    }
    return ST_OK;
}

static enum status place(struct surveying *s, struct segment *segment)
{
    struct log *log = s->survey->log;
    struct log_survey *survey = s->survey;
    bool full = atomic_load(&segment->full);
    uint64_t last = atomic_load(&segment->last_index);
    int64_t revision = atomic_load(&segment->last_revision);
    if (segment->head.flags & SEGMENT_REWRITTEN)
        survey->incomplete_to = survey->copied_to = last;
    else if (segment->first_index > survey->last_index + 1)
        survey->incomplete_to = segment->first_index - 1;
    if (last > survey->last_index) /* less only if something is damaged */
        survey->last_index = survey->last_seen = last;
    survey->last_revision = revision > survey->last_revision ? revision : survey->last_revision;
    s->blank_end &= full;
    LOCK_SCOPE(&log->lock);
    TRY(segment_order_reserve(&log->order));
    TRY(segment_table_put(&log->table, segment->head.id, segment));
    segment_order_add(&log->order, segment);
    return ST_OK;
}

/* The cleaner only removes sealed segments: a gap after an unsealed one is damage. */
static enum status place_all(struct surveying *s)
{
    bool full = true;
    while (s->found.count) {
        struct segment *segment = s->found.items[0];
        uint64_t expected = s->survey->last_index + 1;
        if (segment->first_index < expected || (segment->first_index > expected && !full))
            note_damage(s, segment->head.id, SEGMENT_RECORDS_OFFSET);
        full = atomic_load(&segment->full);
        TRY(place(s, segment));
        (void)segment_order_remove(&s->found, 0);
    }
    return ST_OK;
}

/* If the cleaner has left nothing of the last records, the mark still has their index. */
static void ask_mark(struct surveying *s)
{
    struct log *log = s->survey->log;
    struct mark mark;
    if (s->salvages) { /* then records up to there are lost */
        if (mark_read(log->fs, log->dir, &mark) == ST_OK && mark.index > s->survey->last_index)
            s->survey->last_index = mark.index;
        return;
    }
    if (s->blank_end && mark_read(log->fs, log->dir, &mark) == ST_OK &&
        mark.index > s->survey->last_index)
        s->survey->incomplete_to = s->survey->last_index = mark.index;
}

static enum status read_all(struct surveying *s)
{
    struct log_survey *survey = s->survey;
    struct log *log = survey->log;
    TRY(fs_list(log->fs, log->dir, see_name, s));
    if (s->nomem)
        return ST_NOMEM;
    for (size_t i = 0; i < survey->id_count; i++)
        TRY(open_one(s, survey->ids[i]));
    TRY(drop_copies(s));
    TRY(place_all(s));
    /* Readers continue in the next segment although the seal of one is lost. */
    for (size_t i = 0; s->salvages && i + 1 < log->order.count; i++)
        atomic_store(&log->order.items[i]->full, true);
    ask_mark(s);
    atomic_store(&log->written_index, survey->last_index);
    atomic_store(&log->durable_index, survey->last_index);
    return ST_OK;
}

enum status log_survey_open(struct log_survey *survey, const struct log_options *options,
                            bool salvages, struct error *ret_error)
{
    *survey = (struct log_survey){0};
    TRY(log_new(options, &survey->log, ret_error));
    struct surveying s = {.survey = survey, .salvages = salvages, .blank_end = true};
    enum status status = read_all(&s);
    for (size_t i = 0; i < s.found.count; i++)
        segment_free(s.found.items[i]);
    segment_order_fini(&s.found);
    if (status != ST_OK)
        return error_set(ret_error, status, "%s: the log cannot be read: %s", options->dir,
                         status_reason(status));
    return ST_OK;
}

void log_survey_close(struct log_survey *survey)
{
    log_close(survey->log);
    free(survey->ids);
    *survey = (struct log_survey){0};
}

bool log_survey_has(const struct log_survey *survey, uint64_t segment_id)
{
    for (size_t i = 0; i < survey->id_count; i++) {
        if (survey->ids[i] == segment_id)
            return true;
    }
    return false;
}
