/* Keys of etcd's v2 API, which an import leaves out: finds whether there are any, for a warning. */
#ifndef VIGIL_IMPORT_V2_H
#define VIGIL_IMPORT_V2_H

#include "io/file.h"

#include <stdbool.h>

/* Searches the newest .snap file of the directory; false if it cannot be read. */
bool import_v2_has_keys(struct fs *fs, const char *snap_dir);

#endif
