#include "engine/cluster/link/roster.h"

#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void roster_init(struct roster *roster, const char *endpoints)
{
    lock_init(&roster->lock);
    roster->rows = NULL;
    roster->count = 0;
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

void roster_note(struct roster *roster, size_t at, const struct pb_status_response *status)
{
    LOCK_SCOPE(&roster->lock);
    struct roster_row *row = &roster->rows[at];
    row->answers = status && status->header;
    if (!row->answers)
        return;
    row->member_id = status->header->member_id;
    row->is_leader = status->leader && status->leader == row->member_id;
    row->is_learner = status->is_learner;
    note_versions(&row->versions, status);
}

struct roster_row roster_get(struct roster *roster, size_t at)
{
    LOCK_SCOPE(&roster->lock);
    return roster->rows[at];
}

/* False: it is not a version. */
static bool parse(const char *text, unsigned ret_numbers[2])
{
    return sscanf(text, "%3u.%3u", &ret_numbers[0], &ret_numbers[1]) == 2;
}

bool roster_versions(struct roster *roster, uint64_t followed, struct engine_versions *ret)
{
    unsigned lowest[2] = {0}, numbers[2];
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
    snprintf(ret->cluster, sizeof(ret->cluster), "%u.%u.0", lowest[0], lowest[1]);
    return true;
}
