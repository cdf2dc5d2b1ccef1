/* The flags of every command, and the tables that are made of them and of a command's own. */
#ifndef VIGIL_CMD_CTL_GLOBALS_H
#define VIGIL_CMD_CTL_GLOBALS_H

#include "cmd/ctl/ctl.h"

/* The flags of all commands in this style, without those of a command. */
const struct options_table *ctl_globals_table(enum ctl_style style);

/* Whether the command has this flag in this style. */
bool ctl_flag_exists(const struct ctl_command *command, const char *name, enum ctl_style style);

/* A command's table: its own flags, then those of all commands. Its configuration is a struct
 * ctl_globals, followed at ctl_flags_offset by the command's own struct. In the arena. */
struct options_table *ctl_command_table(const struct ctl_command *command, enum ctl_style style,
                                        struct arena *arena);
size_t ctl_flags_offset(void);
/* Only the command's own flags, for its own struct. In the arena. */
struct options_table *ctl_own_table(const struct ctl_command *command, enum ctl_style style,
                                    struct arena *arena);

/* The enum ctl_format of its name. */
int ctl_format_of(const char *name, enum ctl_style style);

#endif
