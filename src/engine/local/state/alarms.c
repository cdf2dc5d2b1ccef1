#include "engine/local/state/alarms.h"

#include "codec/pb/rpc.pb.h"
#include "store/log/prepare.h"
#include "store/record/row_values.h"

/* Reserved for alarms that the server raises itself. */
enum { OWN_ALARMS = 2 };

#define DOWNGRADE_KEY SLICE_LITERAL("downgrade")

void local_alarms_init(struct local_alarms *alarms, uint64_t member_id)
{
    alarms->member_id = member_id;
    lock_init(&alarms->lock);
}

void local_alarms_fini(struct local_alarms *alarms)
{
    lock_fini(&alarms->lock);
}

/* -- The list -- */

static int compare(const struct engine_alarm_row *a, const struct engine_alarm_row *b)
{
    if (a->type != b->type)
        return a->type < b->type ? -1 : 1;
    return (a->member_id > b->member_id) - (a->member_id < b->member_id);
}

/* Its index, or where it belongs. */
static size_t place_of(const struct local_alarms *alarms, const struct engine_alarm_row *row,
                       bool *ret_found)
{
    size_t at = 0;
    while (at < alarms->count && compare(&alarms->rows[at], row) < 0)
        at++;
    *ret_found = at < alarms->count && compare(&alarms->rows[at], row) == 0;
    return at;
}

static void alarm_add(struct local_alarms *alarms, size_t at, const struct engine_alarm_row *row)
{
    assert(alarms->count < ENGINE_ALARMS_MAX);
    memmove(&alarms->rows[at + 1], &alarms->rows[at], (alarms->count - at) * sizeof(*row));
    alarms->rows[at] = *row;
    alarms->count++;
    alarms->changed = true;
}

static void alarm_remove(struct local_alarms *alarms, size_t at)
{
    alarms->count--;
    memmove(&alarms->rows[at], &alarms->rows[at + 1],
            (alarms->count - at) * sizeof(alarms->rows[0]));
    alarms->changed = true;
}

static unsigned bits_of(const struct engine_alarm_row *rows, size_t count)
{
    unsigned bits = 0;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].type >= 0 && rows[i].type < 32)
            bits |= 1u << rows[i].type;
    }
    return bits;
}

unsigned local_alarms_bits(const struct local_alarms *alarms)
{
    return bits_of(alarms->rows, alarms->count);
}

/* Adds the alarm of a full disk to a sorted list, unless the member has raised the same one. */
static size_t add_full_disk(const struct local_alarms *alarms,
                            struct engine_alarm_row rows[ENGINE_ALARMS_MAX], size_t count)
{
    struct engine_alarm_row full = {.member_id = alarms->member_id, .type = ENGINE_ALARM_NOSPACE};
    size_t at = 0;
    while (at < count && compare(&rows[at], &full) < 0)
        at++;
    if (!local_disk_is_full(alarms) || count == ENGINE_ALARMS_MAX ||
        (at < count && compare(&rows[at], &full) == 0))
        return count;
    memmove(&rows[at + 1], &rows[at], (count - at) * sizeof(full));
    rows[at] = full;
    return count + 1;
}

/* -- Rows -- */

static enum status write_alarm(struct applier *applier, const struct engine_alarm_row *alarm,
                               bool deleted)
{
    struct alarm_row_key key = alarm_row_key_make(alarm->type, alarm->member_id);
    struct row row = alarm_row_make(&key, deleted);
    return applier_rows(applier, &row, 1, NULL, 0, NULL);
}

static enum status take_alarm(struct local_alarms *alarms, const struct row *row)
{
    struct engine_alarm_row alarm;
    TRY(alarm_row_read(row, &alarm.type, &alarm.member_id));
    bool found;
    size_t at = place_of(alarms, &alarm, &found);
    if (found && row->deleted)
        alarm_remove(alarms, at);
    if (found || row->deleted)
        return ST_OK;
    if (alarms->count == ENGINE_ALARMS_MAX)
        return ST_DAMAGED;
    alarm_add(alarms, at, &alarm);
    return ST_OK;
}

static void set_target(struct local_alarms *alarms, struct slice target)
{
    memset(alarms->downgrade_target, 0, sizeof(alarms->downgrade_target));
    slice_copy((uint8_t *)alarms->downgrade_target, target);
    alarms->changed = true;
}

enum status local_alarms_load_row(struct local_alarms *alarms, const struct row *row)
{
    if (row->table == ROW_ALARM)
        return take_alarm(alarms, row);
    if (!slice_equal(row->key, DOWNGRADE_KEY))
        return ST_OK;
    if (row->value.len >= ENGINE_VERSION_BYTES_MAX)
        return ST_DAMAGED;
    set_target(alarms, row->deleted ? SLICE_EMPTY : row->value);
    return ST_OK;
}

/* -- The writer -- */

/* *ret_show: the answer contains the alarm. */
static enum status change_one(struct local_alarms *alarms, struct applier *applier,
                              const struct engine_alarm_row *row, bool raise, bool *ret_show)
{
    bool found;
    size_t at = place_of(alarms, row, &found);
    *ret_show = raise || found;
    if (found == raise)
        return ST_OK;
    if (raise && alarms->count >= ENGINE_ALARMS_MAX - OWN_ALARMS)
        return ST_LIMIT;
    TRY(write_alarm(applier, row, !raise));
    if (raise)
        alarm_add(alarms, at, row);
    else
        alarm_remove(alarms, at);
    return ST_OK;
}

static enum status answer_with(struct engine_alarm *alarm, const struct engine_alarm_row *rows,
                               size_t count)
{
    alarm->rows = arena_calloc(alarm->op.arena, count, sizeof(*rows));
    if (!alarm->rows && count)
        return ST_NOMEM;
    for (size_t i = 0; i < count; i++)
        alarm->rows[i] = rows[i];
    alarm->row_count = count;
    return ST_OK;
}

static enum status list_some(const struct local_alarms *alarms, int32_t type,
                             struct engine_alarm *alarm)
{
    struct engine_alarm_row rows[ENGINE_ALARMS_MAX];
    memcpy(rows, alarms->rows, sizeof(rows));
    size_t first = 0, count = add_full_disk(alarms, rows, alarms->count), end = count;
    if (type != ENGINE_ALARM_NONE) {
        while (first < end && rows[first].type < type)
            first++;
        end = first;
        while (end < count && rows[end].type == type)
            end++;
    }
    return answer_with(alarm, &rows[first], end - first);
}

enum status local_alarms_execute(struct local_alarms *alarms, struct applier *applier,
                                 struct engine_alarm *alarm)
{
    const struct pb_alarm_request *request = alarm->op.request;
    struct engine_alarm_row row = {.member_id = request->member_id, .type = request->alarm};
    bool raise = request->action == PB_ALARM_ACTION_ACTIVATE;
    alarm->rows = NULL;
    alarm->row_count = 0;
    if (request->action == PB_ALARM_ACTION_GET)
        return list_some(alarms, row.type, alarm);
    if (!raise && request->action != PB_ALARM_ACTION_DEACTIVATE)
        return ST_OK; /* etcd panics */
    if (raise && row.type == ENGINE_ALARM_NONE)
        return ST_OK;
    bool show;
    TRY(change_one(alarms, applier, &row, raise, &show));
    return answer_with(alarm, &row, show ? 1 : 0);
}

void local_alarms_raise(struct local_alarms *alarms, struct applier *applier, uint64_t member_id,
                        int32_t type)
{
    struct engine_alarm_row row = {.member_id = member_id, .type = type};
    bool found;
    size_t at = place_of(alarms, &row, &found);
    if (found || alarms->count == ENGINE_ALARMS_MAX)
        return;
    enum status ignored = write_alarm(applier, &row, false);
    (void)ignored;
    alarm_add(alarms, at, &row);
}

enum status local_alarms_downgrade(struct local_alarms *alarms, struct applier *applier,
                                   const char *target)
{
    bool under_way = alarms->downgrade_target[0] != '\0';
    bool cancel = *target == '\0';
    if (cancel != under_way)
        return cancel ? ST_NO_INFLIGHT_DOWNGRADE : ST_DOWNGRADE_IN_PROCESS;
    struct slice text = slice_from_text(target);
    if (text.len >= ENGINE_VERSION_BYTES_MAX)
        return ST_LIMIT;
    struct row row = {.table = ROW_CLUSTER, .deleted = cancel, .key = DOWNGRADE_KEY, .value = text};
    TRY(applier_rows(applier, &row, 1, NULL, 0, NULL));
    set_target(alarms, text);
    return ST_OK;
}

void local_alarms_publish(struct local_alarms *alarms)
{
    alarms->changed = false;
    LOCK_SCOPE(&alarms->lock);
    memcpy(alarms->published, alarms->rows, sizeof(alarms->published));
    alarms->published_count = alarms->count;
    memcpy(alarms->published_target, alarms->downgrade_target, sizeof(alarms->published_target));
    atomic_store(&alarms->published_bits, local_alarms_bits(alarms));
    atomic_store(&alarms->has_published_target, alarms->published_target[0] != '\0');
}

/* -- A full disk -- */

void local_disk_note(struct local_alarms *alarms, struct waker *keeper)
{
    if (!atomic_exchange(&alarms->disk_full, true))
        waker_wake(keeper);
}

/* A segment could be made for others, but a large record is still refused: so that this does not
 * flicker with every request, the disk has space again after two looks that say so. */
bool local_disk_look(struct local_alarms *alarms, enum status made,
                     const struct local_report *report)
{
    if (made == ST_DISK_FULL && log_seems_short(report->log))
        atomic_store(&alarms->disk_full, true);
    bool seen_before = alarms->space_seen;
    alarms->space_seen = made == ST_OK && local_disk_is_full(alarms) && !seen_before;
    if (made != ST_OK || alarms->space_seen)
        return true;
    if (atomic_exchange(&alarms->disk_full, false) && report->on_warning)
        report->on_warning(report->ctx, "the disk of the data directory has space again: puts are "
                                        "accepted");
    return false;
}

/* -- Any thread -- */

size_t local_alarms_published(struct local_alarms *alarms,
                              struct engine_alarm_row ret_rows[ENGINE_ALARMS_MAX])
{
    LOCK_SCOPE(&alarms->lock);
    memcpy(ret_rows, alarms->published, alarms->published_count * sizeof(*ret_rows));
    return add_full_disk(alarms, ret_rows, alarms->published_count);
}

void local_alarms_published_target(struct local_alarms *alarms,
                                   char ret_target[ENGINE_VERSION_BYTES_MAX])
{
    LOCK_SCOPE(&alarms->lock);
    memcpy(ret_target, alarms->published_target, ENGINE_VERSION_BYTES_MAX);
}

/* -- Checking -- */

static void check_rows(const struct engine_alarm_row *rows, size_t count)
{
    assert(count <= ENGINE_ALARMS_MAX);
    for (size_t i = 1; i < count; i++)
        assert(compare(&rows[i - 1], &rows[i]) < 0);
}

void local_alarms_check(const struct local_alarms *alarms)
{
    check_rows(alarms->rows, alarms->count);
    check_rows(alarms->published, alarms->published_count);
    assert(memchr(alarms->downgrade_target, '\0', sizeof(alarms->downgrade_target)));
    assert(alarms->published_bits == bits_of(alarms->published, alarms->published_count));
    assert(alarms->has_published_target == (alarms->published_target[0] != '\0'));
    if (alarms->changed)
        return;
    assert(alarms->published_count == alarms->count);
    for (size_t i = 0; i < alarms->count; i++)
        assert(compare(&alarms->rows[i], &alarms->published[i]) == 0);
    assert(strcmp(alarms->published_target, alarms->downgrade_target) == 0);
}
