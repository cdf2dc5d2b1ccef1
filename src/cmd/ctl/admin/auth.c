/* auth enable, disable and status. */
#include "cmd/ctl/admin/admin.h"
#include "codec/pb/rpc.pb.h"

#include <inttypes.h>

/* Creates the role root and gives it to the user root: authentication needs both. */
static int add_root_role(struct ctl *ctl)
{
    static const struct pb_auth_role_add_request role = {.name = SLICE_LITERAL("root")};
    static const struct pb_auth_user_grant_role_request grant = {.user = SLICE_LITERAL("root"),
                                                                 .role = SLICE_LITERAL("root")};
    const void *answer;
    int code = ctl_call(ctl, METHOD_ROLE_ADD, &role, &answer);
    if (code != CTL_OK)
        return code;
    return ctl_call(ctl, METHOD_USER_GRANT_ROLE, &grant, &answer);
}

int admin_auth_enable(struct ctl *ctl)
{
    int code;
    vigil_client *client = ctl_client(ctl, &code);
    if (!client)
        return code;
    static const struct pb_auth_enable_request request;
    const void *answer;
    vigil_error error;
    code = ctl_call_at(ctl, client, METHOD_AUTH_ENABLE, &request, &answer, &error);
    if (code != CTL_OK && strstr(error.text, "root user does not have root role") == NULL)
        return ctl_fail_with(ctl, &error);
    if (code != CTL_OK) {
        code = add_root_role(ctl);
        if (code == CTL_OK)
            code = ctl_call(ctl, METHOD_AUTH_ENABLE, &request, &answer);
    }
    if (code == CTL_OK)
        fputs("Authentication Enabled\n", ctl->out);
    return code;
}

int admin_auth_disable(struct ctl *ctl)
{
    static const struct pb_auth_disable_request request;
    const void *answer;
    int code = ctl_call(ctl, METHOD_AUTH_DISABLE, &request, &answer);
    if (code == CTL_OK)
        fputs("Authentication Disabled\n", ctl->out);
    return code;
}

static void write_status(struct ctl *ctl, const void *response)
{
    const struct pb_auth_status_response *status = response;
    fprintf(ctl->out, "Authentication Status: %s\nAuthRevision: %" PRIu64 "\n",
            status->enabled ? "true" : "false", status->auth_revision);
}

int admin_auth_status(struct ctl *ctl)
{
    static const struct ctl_shape shape = {.type = &pb_auth_status_response_table,
                                           .simple = write_status};
    static const struct pb_auth_status_request request;
    return admin_call_and_print(ctl, METHOD_AUTH_STATUS, &request, &shape);
}
