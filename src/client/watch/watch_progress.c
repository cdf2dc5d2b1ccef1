#include "client/watch/watch_progress.h"

#include "base/macros.h"
#include "codec/pb/rpc.pb.h"

static void on_version(struct server_inquiry *inquiry)
{
    struct watch_progress *progress = CONTAINER_OF(inquiry, struct watch_progress, inquiry);
    /* Without an answer the next request asks again; the answer to this one counts as early. */
    progress->is_known = inquiry->is_final;
    progress->member_id = server_version_has_progress(inquiry->version) ? inquiry->member_id : 0;
    progress->send(progress);
}

void watch_progress_request(struct watch_progress *progress, struct vigil_client *client)
{
    if (progress->inquiry.call)
        return; /* one request follows for all */
    progress->inquiry.answered = on_version;
    if (progress->is_known || server_inquiry_begin(&progress->inquiry, client) != ST_OK)
        progress->send(progress);
}

void watch_progress_created(struct watch_progress *progress, uint32_t after, int64_t revision)
{
    progress->created_after = after;
    if (revision > progress->created_revision)
        progress->created_revision = revision;
}

bool watch_progress_is_early(struct watch_progress *progress,
                             const struct pb_watch_response *response)
{
    const struct pb_response_header *header = response->header;
    uint32_t belongs_to = progress->answered + 1;
    /* The request was received after all confirmed watches, however many before it have remained
     * without an answer. */
    if (header && header->revision > progress->created_revision &&
        belongs_to <= progress->created_after)
        belongs_to = progress->created_after + 1;
    if (belongs_to <= progress->sent)
        progress->answered = belongs_to;
    return !header || !progress->member_id || header->member_id != progress->member_id;
}

void watch_progress_reset(struct watch_progress *progress)
{
    server_inquiry_end(&progress->inquiry);
    *progress = (struct watch_progress){.send = progress->send};
}
