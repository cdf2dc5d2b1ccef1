/*
 * `vigil salvage DIR --to NEW`: makes a new data directory from everything that can be read of a
 * damaged one, which is not changed, and lists what is lost. args[0] is the name of the command.
 * Returns the exit status: 0 if nothing is lost, 1 when it failed, 2 for flags that make no sense,
 * 3 if the new directory lacks something.
 */
#ifndef VIGIL_CMD_SALVAGE_H
#define VIGIL_CMD_SALVAGE_H

#include "base/options/options.h"

int salvage_main(int count, char **args);
extern const struct options_table salvage_table;

#endif
