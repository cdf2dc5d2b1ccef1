#include "cmd/ctl/profile/profile.h"
#include "cmd/ctl/session.h"

int ctl_use_profile(struct ctl *ctl, struct options *options)
{
    struct error error = {0};
    const struct ctl_globals *globals = options->config;
    if (!*globals->profile)
        return CTL_OK;
    if (profile_apply(ctl->arena, globals->profile, options, &error) != ST_OK)
        return ctl_refuse(ctl, "%s", error.text);
    return CTL_OK;
}
