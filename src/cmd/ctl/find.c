#include "cmd/ctl/find.h"

#include "base/options/words.h"
#include "cmd/ctl/globals.h"

static const struct ctl_group *const all_groups[] = {
    &ctl_kv_group, &ctl_lock_group, &ctl_cluster_group, &ctl_auth_group, &ctl_explore_group,
};

const struct ctl_group *ctl_group_at(size_t place)
{
    return place < COUNT_OF(all_groups) ? all_groups[place] : NULL;
}

const struct ctl_command *ctl_command_at(size_t place)
{
    for (size_t g = 0; g < COUNT_OF(all_groups); g++) {
        if (place < all_groups[g]->count)
            return &all_groups[g]->commands[place];
        place -= all_groups[g]->count;
    }
    return NULL;
}

bool ctl_exists(const struct ctl_command *command, enum ctl_style style)
{
    switch (style) {
    case CTL_VIGIL:
        return !command->only_etcdctl && !command->only_3_4;
    case CTL_ETCDCTL_3_7:
        return !command->ours && !command->only_3_4;
    case CTL_ETCDCTL_3_4:
        return !command->ours && !command->not_3_4;
    }
    return false;
}

bool ctl_is_of(const struct ctl_command *command, const char *family)
{
    size_t len = strlen(family);
    return strncmp(command->path, family, len) == 0 && command->path[len] == ' ';
}

/* The places of the first words that are not flags or their values. */
static void find_words(int count, char *const *args, enum ctl_style style,
                       int ret_places[CTL_NAME_WORDS])
{
    const struct options_table *table = ctl_globals_table(style);
    int found = 0;
    for (int i = 0; i < CTL_NAME_WORDS; i++)
        ret_places[i] = -1;
    for (int at = 0; at < count && found < CTL_NAME_WORDS; at++) {
        if (strcmp(args[at], "--") == 0)
            return;
        if (args[at][0] != '-' || args[at][1] == 0)
            ret_places[found++] = at;
        else if (options_flag_takes_next(table, args[at]))
            at++;
    }
}

/* The name at this level, and after the family if there is one. */
static struct slice name_of(const struct ctl_command *command, const char *family)
{
    const char *name = family ? command->path + strlen(family) + 1 : command->path;
    return slice_of(name, strcspn(name, " "));
}

/* A command whose name at this level is the word, or the only one that begins with it. */
static const struct ctl_command *match(const char *word, const char *family, enum ctl_style style)
{
    struct slice typed = slice_from_text(word);
    const struct ctl_command *command, *only = NULL;
    bool several = false;
    for (size_t i = 0; (command = ctl_command_at(i)); i++) {
        if (!ctl_exists(command, style) || (family && !ctl_is_of(command, family)))
            continue;
        struct slice name = name_of(command, family);
        if (slice_equal(name, typed))
            return command;
        if (style == CTL_VIGIL || !slice_has_prefix(name, typed))
            continue;
        several = several || (only && !slice_equal(name_of(only, family), name));
        only = command;
    }
    return several || typed.len == 0 ? NULL : only;
}

struct ctl_found ctl_find(int count, char *const *args, enum ctl_style style)
{
    struct ctl_found found = {0};
    find_words(count, args, style, found.name_at);
    const struct ctl_command *first =
        found.name_at[0] < 0 ? NULL : match(args[found.name_at[0]], NULL, style);
    if (!first)
        return found;
    if (!strchr(first->path, ' ')) {
        found.command = first;
        found.name_at[1] = -1;
        return found;
    }
    static char family[64];
    snprintf(family, sizeof(family), "%.*s", (int)strcspn(first->path, " "), first->path);
    found.family = family;
    if (found.name_at[1] >= 0)
        found.command = match(args[found.name_at[1]], family, style);
    return found;
}

unsigned ctl_has(int count, char *const *args)
{
    struct ctl_found found = ctl_find(count, args, CTL_VIGIL);
    if (found.command)
        return found.family ? 2 : 1;
    return found.family != NULL;
}
