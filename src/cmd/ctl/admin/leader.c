/* move-leader. */
#include "cmd/ctl/admin/admin.h"
#include "codec/pb/rpc.pb.h"

#include <inttypes.h>

struct leader {
    vigil_client *client; /* NULL: none of the endpoints is the leader's */
    uint64_t id;
};

static uint64_t leader_id; /* for the text */

static void write_moved(struct ctl *ctl, const void *response)
{
    (void)response;
    uint64_t target = 0;
    (void)admin_member_id(ctl, ctl->words[0], &target); /* it was checked before the call */
    fprintf(ctl->out, "Leadership transferred from %" PRIx64 " to %" PRIx64 "\n", leader_id,
            target);
}

static void leader_fini(struct leader *leader)
{
    vigil_client_free(leader->client);
}

/* Looks whether this endpoint is the leader's. */
static int look_at(struct ctl *ctl, const char *endpoint, struct leader *ret_leader)
{
    static const struct pb_status_request request;
    int code;
    AUTO(leader_fini) struct leader found = {.client = ctl_client_of(ctl, endpoint, &code)};
    if (!found.client)
        return code;
    const void *answer;
    vigil_error error;
    if (ctl_call_at(ctl, found.client, METHOD_STATUS, &request, &answer, &error) != VIGIL_OK)
        return ctl_fail_with(ctl, &error);
    const struct pb_status_response *status = answer;
    found.id = status->leader;
    if (status->header && status->header->member_id == status->leader) {
        *ret_leader = found;
        found.client = NULL;
    }
    return CTL_OK;
}

int admin_move_leader(struct ctl *ctl)
{
    static const struct ctl_shape shape = {.type = &pb_move_leader_response_table,
                                           .simple = write_moved};
    struct pb_move_leader_request request;
    int code = admin_member_id(ctl, ctl->words[0], &request.target_id);
    struct ctl_endpoints endpoints = ctl_endpoints(ctl);
    AUTO(leader_fini) struct leader leader = {0};
    for (size_t i = 0; code == CTL_OK && !leader.client && i < endpoints.count; i++)
        code = look_at(ctl, endpoints.texts[i], &leader);
    if (code != CTL_OK)
        return code;
    if (!leader.client)
        return ctl_refuse(ctl, "no leader endpoint given at [%s]",
                          admin_endpoints_text(&endpoints).text);
    const void *answer;
    vigil_error error;
    if (ctl_call_at(ctl, leader.client, METHOD_MOVE_LEADER, &request, &answer, &error) != VIGIL_OK)
        return ctl_fail_with(ctl, &error);
    leader_id = leader.id;
    return ctl_print(ctl, &shape, answer);
}
