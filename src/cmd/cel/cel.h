/*
 * `vigil cel eval|check EXPRESSION`: tries an expression of the Common Expression Language, with
 * Kubernetes' functions, limits and errors, without a server. args[0] is the name of the command.
 * The exit status is 0 for success, 1 for an expression that is wrong or fails, and 2 for wrong
 * flags.
 */
#ifndef VIGIL_CMD_CEL_CEL_H
#define VIGIL_CMD_CEL_CEL_H

#include "base/options/options.h"

int cel_main(int count, char **args);
extern const struct options_table cel_table;

#endif
