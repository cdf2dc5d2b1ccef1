/*
 * Keys as `vigil get` shows them where etcdctl has no such format: a table with one row for each
 * key, and -w jsonl, one object per line.
 *
 *     +------------+----------+---------+------+-------+-------+
 *     |    KEY     | REVISION | VERSION | SIZE | LEASE | VALUE |
 *
 * These are functions for a struct ctl_shape of pb_range_response_table.
 */
#ifndef VIGIL_CMD_CTL_EXPLORE_KV_VIEW_H
#define VIGIL_CMD_CTL_EXPLORE_KV_VIEW_H

#include "cmd/ctl/decode/decode.h"
#include "cmd/ctl/print/print.h"

void kv_view_range_table(struct ctl *ctl, const void *response);
void kv_view_range_jsonl(struct ctl *ctl, const void *response);

/* The members of a key in jsonl: key, value, create_revision, mod_revision, version, lease. */
void kv_view_put_members(struct json_writer *writer, enum decode_kind decode, const vigil_kv *kv);

/* Writes a finished object as a line. */
void kv_view_put_line(FILE *to, const struct json_writer *writer);

/* One short line that says what a value is: "Pod default/web", or its first characters. ST_NOMEM.
 */
MUST_CHECK
enum status kv_view_summary(struct buf *to, enum decode_kind decode, struct slice value);

#endif
