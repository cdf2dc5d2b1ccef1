#include "mirror/link/member_table.h"

#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_MAX = 999 }; /* limit on a part of a version */

void roster_init(struct roster *roster, const char *endpoints)
{
    lock_init(&roster->lock);
    roster->rows = NULL;
    roster->count = 0;
    roster->leader = roster->term = roster->leader_changes = 0;
    for (const char *at = endpoints; *at; at += strspn(at, ",")) {
        size_t len = strcspn(at, ",");
        roster->rows = xrealloc(roster->rows, (roster->count + 1) * sizeof(*roster->rows));
        struct roster_row *row = &roster->rows[roster->count++];
        *row = (struct roster_row){0};
        snprintf(row->endpoint, sizeof(row->endpoint), "%.*s", (int)len, at);
        at += len;
    }
}

void roster_fini(struct roster *roster)
{
    free(roster->rows);
    lock_fini(&roster->lock);
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
static void note_leader(struct roster *roster, const struct pb_status_response *status)
{
    if (!status->leader || status->raft_term < roster->term)
        return;
    roster->term = status->raft_term;
    roster->leader_changes += roster->leader != status->leader;
    roster->leader = status->leader;
}

void roster_note(struct roster *roster, size_t at, const struct pb_status_response *status)
{
    LOCK_SCOPE(&roster->lock);
    struct roster_row *row = &roster->rows[at];
    row->answers = status && status->header;
    if (!row->answers)
        return;
    row->member_id = status->header->member_id;
    row->has_leader = status->leader != 0;
    row->is_leader = status->leader && status->leader == row->member_id;
    row->is_learner = status->is_learner;
    row->raft_index = status->raft_index;
    row->applied_index = status->raft_applied_index;
    note_leader(roster, status);
    note_versions(&row->versions, status);
}

struct roster_row roster_get(struct roster *roster, size_t at)
{
    LOCK_SCOPE(&roster->lock);
    return roster->rows[at];
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

bool roster_versions(struct roster *roster, uint64_t followed, struct engine_versions *ret)
{
    uint64_t lowest[2] = {0}, numbers[2];
    const struct roster_row *named = NULL;
    LOCK_SCOPE(&roster->lock);
    for (size_t i = 0; i < roster->count; i++) {
        const struct roster_row *row = &roster->rows[i];
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

bool roster_membership(struct roster *roster, uint64_t followed, struct engine_membership *ret)
{
    LOCK_SCOPE(&roster->lock);
    struct engine_membership found = {.leader_changes = roster->leader_changes};
    bool is_known = false;
    for (size_t i = 0; i < roster->count; i++) {
        const struct roster_row *row = &roster->rows[i];
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
