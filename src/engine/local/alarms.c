#include "engine/local/alarms.h"

#include "codec/pb/rpc.pb.h"
#include "store/row_values.h"

/* Left for what the server itself raises, however many alarms clients have thought of. */
enum { OWN_ALARMS = 2 };

#define DOWNGRADE_KEY SLICE_LITERAL("downgrade")

void local_notices_init(struct local_notices *notices)
{
    lock_init(&notices->lock);
}

void local_notices_fini(struct local_notices *notices)
{
    lock_fini(&notices->lock);
}

/* -- The list -- */

static int compare(const struct engine_alarm_row *a, const struct engine_alarm_row *b)
{
    if (a->type != b->type)
        return a->type < b->type ? -1 : 1;
    return (a->member_id > b->member_id) - (a->member_id < b->member_id);
}

/* Its place, or where it would stand. */
static size_t place_of(const struct local_notices *notices, const struct engine_alarm_row *row,
                       bool *ret_found)
{
    size_t at = 0;
    while (at < notices->alarm_count && compare(&notices->alarms[at], row) < 0)
        at++;
    *ret_found = at < notices->alarm_count && compare(&notices->alarms[at], row) == 0;
    return at;
}

static void alarm_add(struct local_notices *notices, size_t at, const struct engine_alarm_row *row)
{
    assert(notices->alarm_count < ENGINE_ALARMS_MAX);
    memmove(&notices->alarms[at + 1], &notices->alarms[at],
            (notices->alarm_count - at) * sizeof(*row));
    notices->alarms[at] = *row;
    notices->alarm_count++;
    notices->changed = true;
}

static void alarm_remove(struct local_notices *notices, size_t at)
{
    notices->alarm_count--;
    memmove(&notices->alarms[at], &notices->alarms[at + 1],
            (notices->alarm_count - at) * sizeof(notices->alarms[0]));
    notices->changed = true;
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

unsigned local_notices_bits(const struct local_notices *notices)
{
    return bits_of(notices->alarms, notices->alarm_count);
}

/* -- Rows -- */

static enum status write_alarm(struct applier *applier, const struct engine_alarm_row *alarm,
                               bool deleted)
{
    struct alarm_row_key key = alarm_row_key_make(alarm->type, alarm->member_id);
    struct row row = alarm_row_make(&key, deleted);
    return applier_rows(applier, &row, 1, NULL, 0, NULL);
}

static enum status take_alarm(struct local_notices *notices, const struct row *row)
{
    struct engine_alarm_row alarm;
    TRY(alarm_row_read(row, &alarm.type, &alarm.member_id));
    bool found;
    size_t at = place_of(notices, &alarm, &found);
    if (found && row->deleted)
        alarm_remove(notices, at);
    if (found || row->deleted)
        return ST_OK;
    if (notices->alarm_count == ENGINE_ALARMS_MAX)
        return ST_DAMAGED;
    alarm_add(notices, at, &alarm);
    return ST_OK;
}

static void set_target(struct local_notices *notices, struct slice target)
{
    memset(notices->downgrade_target, 0, sizeof(notices->downgrade_target));
    slice_copy((uint8_t *)notices->downgrade_target, target);
    notices->changed = true;
}

enum status local_notices_take_row(struct local_notices *notices, const struct row *row)
{
    if (row->table == ROW_ALARM)
        return take_alarm(notices, row);
    if (!slice_equal(row->key, DOWNGRADE_KEY))
        return ST_OK;
    if (row->value.len >= ENGINE_VERSION_BYTES_MAX)
        return ST_DAMAGED;
    set_target(notices, row->deleted ? SLICE_EMPTY : row->value);
    return ST_OK;
}

/* -- The writer -- */

/* *ret_row is what the answer shows; false: nothing. */
static enum status change_one(struct local_notices *notices, struct applier *applier,
                              const struct engine_alarm_row *row, bool raise, bool *ret_show)
{
    bool found;
    size_t at = place_of(notices, row, &found);
    *ret_show = raise || found;
    if (found == raise)
        return ST_OK;
    if (raise && notices->alarm_count >= ENGINE_ALARMS_MAX - OWN_ALARMS)
        return ST_LIMIT;
    TRY(write_alarm(applier, row, !raise));
    if (raise)
        alarm_add(notices, at, row);
    else
        alarm_remove(notices, at);
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

static enum status list_some(const struct local_notices *notices, int32_t type,
                             struct engine_alarm *alarm)
{
    size_t first = 0, end = notices->alarm_count;
    if (type != ENGINE_ALARM_NONE) {
        while (first < end && notices->alarms[first].type < type)
            first++;
        end = first;
        while (end < notices->alarm_count && notices->alarms[end].type == type)
            end++;
    }
    return answer_with(alarm, &notices->alarms[first], end - first);
}

enum status local_notices_alarm(struct local_notices *notices, struct applier *applier,
                                struct engine_alarm *alarm)
{
    const struct pb_alarm_request *request = alarm->op.request;
    struct engine_alarm_row row = {.member_id = request->member_id, .type = request->alarm};
    bool raise = request->action == PB_ALARM_ACTION_ACTIVATE;
    alarm->rows = NULL;
    alarm->row_count = 0;
    if (request->action == PB_ALARM_ACTION_GET)
        return list_some(notices, row.type, alarm);
    if (!raise && request->action != PB_ALARM_ACTION_DEACTIVATE)
        return ST_OK; /* ends etcd */
    if (raise && row.type == ENGINE_ALARM_NONE)
        return ST_OK;
    bool show;
    TRY(change_one(notices, applier, &row, raise, &show));
    return answer_with(alarm, &row, show ? 1 : 0);
}

void local_notices_raise(struct local_notices *notices, struct applier *applier, uint64_t member_id,
                         int32_t type)
{
    struct engine_alarm_row row = {.member_id = member_id, .type = type};
    bool found;
    size_t at = place_of(notices, &row, &found);
    if (found || notices->alarm_count == ENGINE_ALARMS_MAX)
        return;
    enum status ignored = write_alarm(applier, &row, false);
    (void)ignored;
    alarm_add(notices, at, &row);
}

enum status local_notices_downgrade(struct local_notices *notices, struct applier *applier,
                                    const char *target)
{
    bool under_way = notices->downgrade_target[0] != '\0';
    bool cancel = *target == '\0';
    if (cancel != under_way)
        return cancel ? ST_NO_INFLIGHT_DOWNGRADE : ST_DOWNGRADE_IN_PROCESS;
    struct slice text = slice_from_text(target);
    if (text.len >= ENGINE_VERSION_BYTES_MAX)
        return ST_LIMIT;
    struct row row = {.table = ROW_CLUSTER, .deleted = cancel, .key = DOWNGRADE_KEY, .value = text};
    TRY(applier_rows(applier, &row, 1, NULL, 0, NULL));
    set_target(notices, text);
    return ST_OK;
}

void local_notices_show(struct local_notices *notices)
{
    if (!notices->changed)
        return;
    notices->changed = false;
    LOCK_SCOPE(&notices->lock);
    memcpy(notices->shown, notices->alarms, sizeof(notices->shown));
    notices->shown_count = notices->alarm_count;
    memcpy(notices->shown_target, notices->downgrade_target, sizeof(notices->shown_target));
    atomic_store(&notices->shown_bits, local_notices_bits(notices));
    atomic_store(&notices->shows_target, notices->shown_target[0] != '\0');
}

/* -- Any thread -- */

unsigned local_notices_shown_bits(const struct local_notices *notices)
{
    return atomic_load_explicit(&notices->shown_bits, memory_order_relaxed);
}

size_t local_notices_shown(struct local_notices *notices,
                           struct engine_alarm_row ret_rows[ENGINE_ALARMS_MAX])
{
    LOCK_SCOPE(&notices->lock);
    memcpy(ret_rows, notices->shown, notices->shown_count * sizeof(*ret_rows));
    return notices->shown_count;
}

void local_notices_shown_target(struct local_notices *notices,
                                char ret_target[ENGINE_VERSION_BYTES_MAX])
{
    ret_target[0] = '\0';
    if (!atomic_load_explicit(&notices->shows_target, memory_order_relaxed))
        return;
    LOCK_SCOPE(&notices->lock);
    memcpy(ret_target, notices->shown_target, ENGINE_VERSION_BYTES_MAX);
}
