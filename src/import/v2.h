/* Keys of etcd's v2 API, which an import leaves out: whether there are any to tell of. */
#ifndef VIGIL_IMPORT_V2_H
#define VIGIL_IMPORT_V2_H

#include "io/file.h"

#include <stdbool.h>

/* Looks into the newest .snap file of the directory: what cannot be read has none. */
bool import_v2_keys_are_in(struct fs *fs, const char *snap_dir);

#endif
