/* Commands that watch and lock run, and the messages about their end. */
#ifndef VIGIL_CMD_CTL_KV_CHILD_H
#define VIGIL_CMD_CTL_KV_CHILD_H

#include "cmd/ctl/ctl.h"

#include <sys/types.h>

enum { CHILD_VARIABLES_MAX = 8, CHILD_REASON_BYTES = 256 };

/* Variables that are added to the environment: "NAME=value", up to a NULL. */
struct child_variables {
    const char *all[CHILD_VARIABLES_MAX + 1];
};

/* Starts a command, which is found in PATH. -1: the reason is that of Go. */
pid_t child_start(const char *const *words, size_t count, const struct child_variables *variables,
                  char ret_reason[CHILD_REASON_BYTES]);
/* Starts a program that reads ret_pipes[1] and writes ret_pipes[0], which the caller closes. */
pid_t child_start_piped(const char *word, int ret_pipes[2], char ret_reason[CHILD_REASON_BYTES]);
/* The exit code of a status of waitpid; 255 after a signal. The reason is "exit status 3" or
 * "signal: killed". */
int child_exit_code(int status, char ret_reason[CHILD_REASON_BYTES]);

#endif
