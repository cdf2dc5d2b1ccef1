#include "mirror/link/member_table.h"

#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_MAX = 999 }; /* limit on a part of a version */

void member_table_init(struct member_table *table, const char *endpoints)
{
    lock_init(&table->lock);
    table->rows = NULL;
    table->count = 0;
    table->leader = table->term = table->leader_changes = 0;
    for (const char *at = endpoints; *at; at += strspn(at, ",")) {
        size_t len = strcspn(at, ",");
        table->rows = xrealloc(table->rows, (table->count + 1) * sizeof(*table->rows));
        struct member_table_row *row = &table->rows[table->count++];
        *row = (struct member_table_row){0};
        snprintf(row->endpoint, sizeof(row->endpoint), "%.*s", (int)len, at);
        at += len;
    }
}

void member_table_fini(struct member_table *table)
{
    free(table->rows);
    lock_fini(&table->lock);
}

/* A member can say anything: a version has digits, letters, dots and the like. */
static void copy_version(char to[ENGINE_VERSION_BYTES], struct slice text)
{
    size_t len = size_min(text.len, ENGINE_VERSION_BYTES - 1);
    for (size_t i = 0; i < len; i++) {
        uint8_t c = text.ptr[i];
        to[i] = c > ' ' && c < 0x7f && c != '"' && c != '\\' ? (char)c : '?';
    }
    to[len] = '\0';
}

static void note_versions(struct engine_versions *versions, const struct pb_status_response *status)
{
    const struct pb_downgrade_info *downgrade = status->downgrade_info;
    copy_version(versions->server, status->version);
    copy_version(versions->storage, status->storage_version);
    copy_version(versions->cluster,
                 downgrade && downgrade->enabled ? downgrade->target_version : SLICE_EMPTY);
}

/* A member that is behind still names the leader of an older term. */
static void note_leader(struct member_table *table, const struct pb_status_response *status)
{
    if (!status->leader || status->raft_term < table->term)
        return;
    table->term = status->raft_term;
    table->leader_changes += table->leader != status->leader;
    table->leader = status->leader;
}

void member_table_note(struct member_table *table, size_t at,
                       const struct pb_status_response *status)
{
    LOCK_SCOPE(&table->lock);
    struct member_table_row *row = &table->rows[at];
    row->answers = status && status->header;
    if (!row->answers)
        return;
    row->member_id = status->header->member_id;
    row->has_leader = status->leader != 0;
    row->is_leader = status->leader && status->leader == row->member_id;
    row->is_learner = status->is_learner;
    row->raft_index = status->raft_index;
    row->applied_index = status->raft_applied_index;
    note_leader(table, status);
    note_versions(&row->versions, status);
}

struct member_table_row member_table_get(struct member_table *table, size_t at)
{
    LOCK_SCOPE(&table->lock);
    return table->rows[at];
}

/* The first two numbers. False: it is not a version. */
static bool parse(const char *text, uint64_t ret_numbers[2])
{
    struct slice rest = slice_from_text(text);
    for (size_t i = 0; i < 2; i++)
        if (!slice_decimal(slice_cut(&rest, '.'), &ret_numbers[i]) || ret_numbers[i] > NUMBER_MAX)
            return false;
    return true;
}

bool member_table_versions(struct member_table *table, uint64_t followed,
                           struct engine_versions *ret)
{
    uint64_t lowest[2] = {0}, numbers[2];
    const struct member_table_row *named = NULL;
    LOCK_SCOPE(&table->lock);
    for (size_t i = 0; i < table->count; i++) {
        const struct member_table_row *row = &table->rows[i];
        if (!row->member_id || !parse(row->versions.server, numbers))
            continue;
        if (!named || numbers[0] < lowest[0] || (numbers[0] == lowest[0] && numbers[1] < lowest[1]))
            memcpy(lowest, numbers, sizeof(lowest));
        if (!named || row->member_id == followed)
            named = row;
    }
    if (!named)
        return false;
    *ret = named->versions;
    if (parse(ret->cluster, numbers)) /* the target of a downgrade, which may lack a number */
        memcpy(lowest, numbers, sizeof(lowest));
    snprintf(ret->cluster, sizeof(ret->cluster), "%" PRIu64 ".%" PRIu64 ".0", lowest[0], lowest[1]);
    return true;
}

bool member_table_membership(struct member_table *table, uint64_t followed,
                             struct engine_membership *ret)
{
    LOCK_SCOPE(&table->lock);
    struct engine_membership found = {.leader_changes = table->leader_changes};
    bool is_known = false;
    for (size_t i = 0; i < table->count; i++) {
        const struct member_table_row *row = &table->rows[i];
        is_known |= row->member_id != 0;
        found.has_leader |= row->answers && row->has_leader;
        if (!row->member_id || row->member_id != followed)
            continue;
        found.is_leader = row->answers && row->is_leader;
        found.is_learner = row->answers && row->is_learner;
        found.raft_index = row->raft_index;
        found.applied_index = row->applied_index;
    }
    if (is_known)
        *ret = found;
    return is_known;
}
