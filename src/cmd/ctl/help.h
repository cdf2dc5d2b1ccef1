/* Help and manual pages of the commands, made from their tables. */
#ifndef VIGIL_CMD_CTL_HELP_H
#define VIGIL_CMD_CTL_HELP_H

#include "cmd/ctl/ctl.h"

/* All commands, in groups. */
void ctl_write_commands(enum ctl_style style, FILE *to);
/* The commands of a family, for instance "lease". */
void ctl_write_family(const char *family, enum ctl_style style, FILE *to);
/* One command: what it does, its flags and examples. */
void ctl_write_help(const struct ctl_command *command, enum ctl_style style, FILE *to);
/* The flags of all commands. */
void ctl_write_options(enum ctl_style style, FILE *to);

/* The list of all commands for the page vigil(1). */
void ctl_write_man_commands(FILE *to);
/* A manual page, roff: "get", "lease" (all of the family), "snapshot-save" (the only one of its
 * family). False: there is no such page. */
bool ctl_write_man(const char *page, const char *version, const char *date, FILE *to);
/* Iterates over the names of all pages; "" after the last. */
void ctl_man_page(size_t place, char *ret_name, size_t bytes);

#endif
