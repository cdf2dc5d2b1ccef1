/*
 * `get` of many keys: the answer comes in parts, and the formats that write one key after the other
 * (simple, jsonl) write each part as it arrives, so that memory does not depend on the number of
 * keys. The other formats are one object, for which all parts are kept.
 *
 *     --stream                    RangeStream, which Vigil and etcd 3.7 have
 *     a range, simple or jsonl    pages at one revision, of any server; not under the name etcdctl
 */
#ifndef VIGIL_CMD_CTL_KV_GET_PARTS_H
#define VIGIL_CMD_CTL_KV_GET_PARTS_H

#include "cmd/ctl/kv/kv.h"

/* Whether the answer to this request is to be read in parts. */
bool get_in_parts(const struct ctl *ctl, const struct pb_range_request *request);
/* Reads and prints it. Returns the exit code. */
int get_parts_run(struct ctl *ctl, const struct pb_range_request *request,
                  const struct ctl_shape *shape, bool *ret_any);

#endif
