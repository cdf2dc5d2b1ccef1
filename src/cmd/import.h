/*
 * `vigil import` and `vigil snapshot`: make a data directory from the data or a snapshot of an etcd
 * or a Vigil, and show what a snapshot contains. args[0] is the name of the command. The exit
 * status is 0 for success, 1 for failure and 2 for wrong flags.
 */
#ifndef VIGIL_CMD_IMPORT_H
#define VIGIL_CMD_IMPORT_H

#include "base/options/options.h"

int import_main(int count, char **args);
extern const struct options_table import_table;

int snapshot_main(int count, char **args);
extern const struct options_table snapshot_table;

#endif
