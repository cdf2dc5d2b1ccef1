/* The commands about keys, leases and locks, which kv_group.c lists: their flags and functions, and
 * what they share. */
#ifndef VIGIL_CMD_CTL_KV_KV_H
#define VIGIL_CMD_CTL_KV_KV_H

#include "cmd/ctl/print/print.h"
#include "cmd/ctl/session.h"
#include "codec/pb/rpc.pb.h"

/* The flags of get, put and del; txn reads them from the lines of its input. */
struct get_flags {
    const char *consistency, *order, *sort_by;
    bool prefix, from_key, keys_only, count_only, print_value_only, stream;
    int64_t limit, revision;
    int64_t min_create_revision, max_create_revision, min_mod_revision, max_mod_revision;
};
struct put_flags {
    const char *lease;
    bool prev_kv, ignore_value, ignore_lease;
};
struct del_flags {
    bool prefix, prev_kv, from_key, range;
};

/* The flags of the others. */
struct txn_flags {
    bool interactive;
};
struct watch_flags {
    bool interactive, prefix, prev_kv, progress_notify;
    int64_t revision;
};
struct compaction_flags {
    bool physical;
};
struct timetolive_flags {
    bool keys;
};
struct keep_alive_flags {
    bool once;
};
struct lock_flags {
    int64_t ttl;
};
struct elect_flags {
    bool listen;
};

int get_run(struct ctl *ctl);
int put_run(struct ctl *ctl);
int del_run(struct ctl *ctl);
int txn_run(struct ctl *ctl);
int watch_run(struct ctl *ctl);
int compaction_run(struct ctl *ctl);
int lease_grant_run(struct ctl *ctl);
int lease_revoke_run(struct ctl *ctl);
int lease_timetolive_run(struct ctl *ctl);
int lease_list_run(struct ctl *ctl);
int lease_keep_alive_run(struct ctl *ctl);
int lock_run(struct ctl *ctl);
int elect_run(struct ctl *ctl);

/* The request of the words and flags. Not CTL_OK: the reason was printed. */
int get_request(struct ctl *ctl, struct pb_range_request *ret_request);
/* reads_input: a missing value is read from standard input. */
int put_request(struct ctl *ctl, bool reads_input, struct pb_put_request *ret_request);
int del_request(struct ctl *ctl, struct pb_delete_range_request *ret_request);

/* How the answers look. */
extern const struct ctl_shape ctl_range_shape, ctl_put_shape, ctl_del_shape;

/* The end of all keys with this prefix, in the arena. */
struct slice kv_prefix_end(struct ctl *ctl, struct slice prefix);

/* A lease's id in hexadecimal. False: the text is not an id, and ret_reason says why in the words
 * of Go. */
bool kv_parse_lease(const char *text, int64_t *ret_id, char *ret_reason, size_t bytes);
/* The same for a decimal number. */
bool kv_parse_number(const char *text, int64_t *ret_number, char *ret_reason, size_t bytes);

#endif
