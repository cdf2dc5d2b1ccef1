/*
 * `vigil import` and `vigil snapshot`: a data directory of Vigil made of what an etcd, or a Vigil,
 * has saved; and a look into such a file. args[0] is the name of the command. Returns the exit
 * status: 0, 1 when it could not be done, 2 for flags that make no sense.
 */
#ifndef VIGIL_CMD_IMPORT_H
#define VIGIL_CMD_IMPORT_H

#include "base/options/options.h"

int import_main(int count, char **args);
extern const struct options_table import_table;

int snapshot_main(int count, char **args);
extern const struct options_table snapshot_table;

#endif
