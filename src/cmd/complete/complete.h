/*
 * `vigil __complete WORD… CURRENT`, which the completion scripts of the shells call: what the last
 * word, which may be empty, can become after those before it.
 *
 *     vigil __complete get --prefix /re    /registry/
 *                                          :
 *
 * One candidate per line, with a description after a tab. The last line is ":", or ":f" where the
 * shell should offer the names of files. Commands, flags and their values come from the tables;
 * keys, leases, users, roles and members come from the server (complete/ask.h). Whatever fails is
 * silent: there are fewer candidates then.
 */
#ifndef VIGIL_CMD_COMPLETE_COMPLETE_H
#define VIGIL_CMD_COMPLETE_COMPLETE_H

#include "cmd/ctl/ctl.h"

/* A command that is not one of the command line client. */
struct complete_command {
    const char *name, *help;
    const struct options_table *table; /* NULL: it has no flags */
    const char *words; /* its first word: "bash|zsh|fish"; "FILE": the name of a file; NULL: none */
};

struct complete_commands {
    const struct complete_command *all;
    size_t count;
    enum ctl_style style; /* whose commands of the client */
};

/* The arguments of `vigil __complete`, without these two words. */
void complete_write(const struct complete_commands *others, int count, char **args, FILE *to);

#endif
