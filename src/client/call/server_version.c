#include "client/call/server_version.h"

#include "client/call/call.h"
#include "codec/pb/rpc.pb.h"

#include <vigil/call.h>

enum { INQUIRY_TIMEOUT_MS = 5000 };

static bool take_number(struct slice *rest, uint64_t *ret_number)
{
    struct slice part = slice_cut(rest, '.');
    size_t digits = 0;
    while (digits < part.len && part.ptr[digits] >= '0' && part.ptr[digits] <= '9')
        digits++;
    return slice_decimal(slice_sub(part, 0, digits), ret_number);
}

bool server_version_has_progress(struct slice version)
{
    uint64_t major, minor, patch;
    if (!take_number(&version, &major) || !take_number(&version, &minor) ||
        !take_number(&version, &patch))
        return false;
    if (major != 3)
        return major > 3;
    if (minor == 4)
        return patch >= 31;
    return minor == 5 ? patch >= 13 : minor > 5;
}

/* -- The question -- */

static const struct client_method method = {
    .path = "/etcdserverpb.Maintenance/Status",
    .request = &pb_status_request_table,
    .response = &pb_status_response_table,
    .reads = true,
    .alone = true,
};

static void on_done(vigil_call *call, void *user)
{
    struct server_inquiry *inquiry = user;
    const struct pb_status_response *response = client_call_response(call, &method);
    inquiry->is_final = vigil_call_error(call)->grpc_code >= 0;
    inquiry->member_id = response && response->header ? response->header->member_id : 0;
    inquiry->version = response ? response->version : SLICE_EMPTY;
    inquiry->call = NULL;
    inquiry->answered(inquiry);
    vigil_call_free(call); /* with the version */
}

enum status server_inquiry_begin(struct server_inquiry *inquiry, struct vigil_client *client)
{
    struct pb_status_request request = {0};
    assert(!inquiry->call);
    vigil_call *call = client_call_with(client_call_new(client, &method), &request);
    if (!call)
        return ST_NOMEM;
    call->operation.object.internal = true;
    vigil_call_set_timeout(call, INQUIRY_TIMEOUT_MS);
    inquiry->call = call;
    if (vigil_call_start(call, on_done, inquiry) == VIGIL_OK)
        return ST_OK;
    server_inquiry_end(inquiry); /* the client is freed */
    return ST_CLOSED;
}

void server_inquiry_end(struct server_inquiry *inquiry)
{
    vigil_call_free(inquiry->call);
    inquiry->call = NULL;
}
