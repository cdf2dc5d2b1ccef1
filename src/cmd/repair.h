/*
 * `vigil repair`: says what of a damaged data directory is lost, and drops it when that is
 * accepted. args[0] is the name of the command. Returns the exit status: 0, 1 when it could not be
 * done, 2 for flags that make no sense, 3 for damage that was not accepted.
 */
#ifndef VIGIL_CMD_REPAIR_H
#define VIGIL_CMD_REPAIR_H

#include "base/options/options.h"

int repair_main(int count, char **args);
extern const struct options_table repair_table;

/* Writes a key to stdout, quoted, and at most this many bytes of it. Also for vigil salvage. */
void repair_write_key(struct slice key, size_t bytes_max);

#endif
