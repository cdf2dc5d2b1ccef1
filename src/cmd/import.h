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

/* The order is that of --write-out. */
enum { SNAPSHOT_SIMPLE, SNAPSHOT_TABLE, SNAPSHOT_JSON, SNAPSHOT_FIELDS };

/* Shows what a snapshot contains; is_3_4: as etcdctl 3.4 does, without its version. The program is
 * named before an error. Returns the exit status. */
int snapshot_show(const char *program, const char *path, int how, bool is_3_4);
/* As etcdctl 3.4 does it: prints nothing unless it fails. Returns the exit status. */
int snapshot_restore(const char *path, const char *name, const char *data_dir,
                     bool skip_hash_check);

#endif
