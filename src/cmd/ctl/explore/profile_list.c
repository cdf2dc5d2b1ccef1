/* vigil profile list, vigil profile show NAME. */
#include "cmd/ctl/explore/explore.h"
#include "cmd/ctl/profile/profile.h"

/* A missing file has no profiles. */
static int read_profiles(struct ctl *ctl, struct profiles *ret_profiles)
{
    struct error error = {0};
    const char *path = profiles_path(ctl->arena);
    *ret_profiles = (struct profiles){.path = path};
    if (!path)
        return ctl_fail(ctl, CTL_ERROR, "profiles need HOME or VIGIL_PROFILES");
    enum status status = profiles_read(ctl->arena, path, ret_profiles, &error);
    if (status == ST_OK || status == ST_NOT_FOUND)
        return CTL_OK;
    return ctl_fail(ctl, CTL_ERROR, "%s", error.text);
}

static const char *endpoints_of(const struct profile *profile)
{
    for (size_t i = 0; i < profile->count; i++)
        if (strcmp(profile->entries[i].name, "endpoints") == 0)
            return profile->entries[i].value;
    return "";
}

int explore_profile_list(struct ctl *ctl)
{
    struct profiles profiles;
    int exit = read_profiles(ctl, &profiles);
    if (exit != CTL_OK)
        return exit;
    for (size_t i = 0; i < profiles.count; i++)
        fprintf(ctl->out, "%-20s %s\n", profiles.all[i].name, endpoints_of(&profiles.all[i]));
    if (profiles.count == 0)
        fprintf(stderr, "There are no profiles in %s.\n", profiles.path);
    return CTL_OK;
}

int explore_profile_show(struct ctl *ctl)
{
    struct profiles profiles;
    int exit = read_profiles(ctl, &profiles);
    if (exit != CTL_OK)
        return exit;
    const struct profile *profile = profiles_find(&profiles, ctl->words[0]);
    if (!profile)
        return ctl_fail(ctl, CTL_ERROR, "there is no profile \"%s\" in %s", ctl->words[0],
                        profiles.path);
    for (size_t i = 0; i < profile->count; i++)
        fprintf(ctl->out, "%s: %s\n", profile->entries[i].name,
                profile->entries[i].secret ? OPTION_SECRET_SHOWN : profile->entries[i].value);
    return CTL_OK;
}
