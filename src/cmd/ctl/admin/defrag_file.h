/*
 * `defrag --data-dir DIR` of etcdctl 3.4: rewrites the file of an etcd that is not running,
 * DIR/member/snap/db, without its free pages. The file is replaced at once, after the new one was
 * synced; memory does not depend on its size.
 */
#ifndef VIGIL_CMD_CTL_ADMIN_DEFRAG_FILE_H
#define VIGIL_CMD_CTL_ADMIN_DEFRAG_FILE_H

#include "base/error.h"

/* Waits for an etcd that still holds the file, and says so on standard error. */
MUST_CHECK
enum status defrag_file(const char *data_dir, struct error *ret_error);

#endif
