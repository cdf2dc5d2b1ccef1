/* downgrade validate, enable and cancel. */
#include "cmd/ctl/admin/admin.h"
#include "codec/pb/rpc.pb.h"

static void write_success(struct ctl *ctl, const void *response)
{
    const struct pb_downgrade_response *downgrade = response;
    const char *name = strchr(ctl->command->path, ' ') + 1; /* "validate" */
    fprintf(ctl->out, "Downgrade %s success, cluster version %.*s\n", name,
            SLICE_ARGS(downgrade->version));
}

static int downgrade(struct ctl *ctl, int32_t action, const char *version)
{
    static const struct ctl_shape shape = {.type = &pb_downgrade_response_table,
                                           .simple = write_success};
    struct pb_downgrade_request request = {.action = action, .version = slice_from_text(version)};
    return admin_call_and_print(ctl, METHOD_DOWNGRADE, &request, &shape);
}

static int downgrade_to_word(struct ctl *ctl, int32_t action)
{
    if (ctl->word_count > 1)
        return ctl_refuse(ctl, "too many arguments");
    if (!*ctl->words[0])
        return ctl_refuse(ctl, "target version not provided");
    return downgrade(ctl, action, ctl->words[0]);
}

int admin_downgrade_validate(struct ctl *ctl)
{
    return downgrade_to_word(ctl, PB_DOWNGRADE_ACTION_VALIDATE);
}

int admin_downgrade_enable(struct ctl *ctl)
{
    return downgrade_to_word(ctl, PB_DOWNGRADE_ACTION_ENABLE);
}

int admin_downgrade_cancel(struct ctl *ctl)
{
    return downgrade(ctl, PB_DOWNGRADE_ACTION_CANCEL, "");
}
