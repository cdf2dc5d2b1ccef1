/* The completion scripts for bash, zsh and fish. They ask the program itself (complete/complete.h).
 */
#ifndef VIGIL_CMD_COMPLETION_SCRIPT_H
#define VIGIL_CMD_COMPLETION_SCRIPT_H

#include <stdbool.h>
#include <stdio.h>

/* program: vigil or etcdctl. False: there is none for this shell. */
bool completion_script_write(const char *shell, const char *program, FILE *to);

#endif
