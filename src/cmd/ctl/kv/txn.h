/*
 * Transactions as text, three parts that each end with an empty line:
 *
 *     mod("key1") > "0"               conditions: version, create, mod, value or lease
 *
 *     put key1 "overwritten"          requests if all of them hold: get, put or del, with the
 *                                     flags of these commands
 *     put key1 "created"              requests if one of them does not
 *
 */
#ifndef VIGIL_CMD_CTL_KV_TXN_H
#define VIGIL_CMD_CTL_KV_TXN_H

#include "cmd/ctl/ctl.h"

struct txn_flags {
    bool interactive;
};

int txn_run(struct ctl *ctl);

#endif
