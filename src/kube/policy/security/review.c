#include "kube/policy/security/review.h"

#include "kube/policy/security/checks.h"

static bool applies(const struct pod_check_row *row, enum pod_level level, int64_t minor)
{
    if (row->level > level || minor < row->since)
        return false;
    return level == row->level || minor < row->replaced;
}

static enum status append_violation(const struct pod_checked *checked, bool with_details,
                                    bool is_first, struct buf *to)
{
    enum status status = is_first ? ST_OK : buf_append_text(to, ", ");
    if (status == ST_OK)
        status = buf_append_text(to, checked->reason);
    if (status != ST_OK || !with_details || !checked->detail.len)
        return status;
    status = buf_append_text(to, " (");
    if (status == ST_OK)
        status = buf_append(to, buf_slice(&checked->detail));
    return status == ST_OK ? buf_append_text(to, ")") : status;
}

enum status pod_review(const struct pod_standard *standard, const struct json_node *metadata,
                       const struct json_node *spec, struct arena *arena, bool with_details,
                       struct buf *to)
{
    struct pod_checked checked = {
        .metadata = metadata, .spec = spec, .minor = standard->minor, .arena = arena};
    size_t before = to->len;
    enum status status = ST_OK;
    if (standard->minor == POD_VERSION_LATEST || standard->minor > POD_SECURITY_NEWEST_MINOR)
        checked.minor = POD_SECURITY_NEWEST_MINOR;
    for (const struct pod_check_row *row = pod_checks; row->name && status == ST_OK; row++) {
        if (!applies(row, standard->level, checked.minor))
            continue;
        checked.detail.len = 0;
        if (!row->passes(&checked))
            status = append_violation(&checked, with_details, to->len == before, to);
        /* Something that could not be stored may have been a violation. */
        if (checked.no_memory)
            status = ST_NOMEM;
    }
    buf_fini(&checked.detail);
    return status;
}
