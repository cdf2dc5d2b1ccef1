/* Which command the words of a command line name. */
#ifndef VIGIL_CMD_CTL_FIND_H
#define VIGIL_CMD_CTL_FIND_H

#include "cmd/ctl/ctl.h"

enum { CTL_NAME_WORDS = 2 }; /* "lease grant" */

struct ctl_found {
    const struct ctl_command *command; /* NULL: none */
    const char *family;                /* "lease", if that was named; otherwise NULL */
    int name_at[CTL_NAME_WORDS];       /* the places of the words of the name; -1: none */
};

/* Flags may stand before and between the words. Under the name etcdctl, the beginning of a name is
 * enough if it is unique, as in etcdctl. */
struct ctl_found ctl_find(int count, char *const *args, enum ctl_style style);

/* Whether the command exists in this style. */
bool ctl_exists(const struct ctl_command *command, enum ctl_style style);
/* Whether the command is one of this family. */
bool ctl_is_of(const struct ctl_command *command, const char *family);

/* Iterates over all commands of all groups: NULL after the last. */
const struct ctl_command *ctl_command_at(size_t place);

#endif
