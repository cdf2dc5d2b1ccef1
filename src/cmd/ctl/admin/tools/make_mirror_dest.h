/*
 * The destination of a mirror: changes of keys are collected and written as transactions, one after
 * the other and in order.
 *
 * Every change says what a key is afterwards, so a transaction whose outcome is unknown may be
 * repeated: nothing else has been written in between. Under the name etcdctl it is not repeated,
 * and the mirror ends, as etcdctl's does.
 */
#ifndef VIGIL_CMD_CTL_ADMIN_TOOLS_MAKE_MIRROR_DEST_H
#define VIGIL_CMD_CTL_ADMIN_TOOLS_MAKE_MIRROR_DEST_H

#include "cmd/ctl/admin/admin.h"

struct mirror_dest {
    struct ctl ctl; /* the command's, with the flags of the destination */
    vigil_client *client;
    struct slice from, to; /* the prefix, and what replaces it */
    size_t op_max;
    size_t bytes_max;
    vigil_txn *txn; /* what is collected; NULL: nothing */
    size_t op_count;
    size_t bytes;
    uint64_t total; /* changes that were written */
};

/* Not CTL_OK: the reason was printed. The flags are wrong, or there is no client. */
int mirror_dest_open(struct mirror_dest *dest, struct ctl *ctl);
void mirror_dest_close(struct mirror_dest *dest);

/* Both write what was collected before if this one does not fit. */
int mirror_dest_put(struct mirror_dest *dest, vigil_bytes key, vigil_bytes value);
int mirror_dest_delete(struct mirror_dest *dest, vigil_bytes key);
/* Writes what is collected. CTL_INTERRUPTED: a signal has arrived, and nothing was printed. */
int mirror_dest_flush(struct mirror_dest *dest);

#endif
