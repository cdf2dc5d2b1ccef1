/*
 * The commands for the administration of a cluster and of its users: their flags, and the functions
 * that run them. The tables that give them their names and texts are in cluster_group.c and
 * auth_group.c; the file of each command, here or in tools/, says how its answer is shown.
 */
#ifndef VIGIL_CMD_CTL_ADMIN_ADMIN_H
#define VIGIL_CMD_CTL_ADMIN_ADMIN_H

#include "cmd/ctl/print/print.h"
#include "cmd/ctl/session.h"

/* -- Flags -- */

struct member_flags {
    const char *peer_urls;
    bool learner;
    const char *consistency;
};

struct endpoint_flags {
    bool cluster;
    int64_t revision;
    const char *data_dir; /* data directory, for defrag in 3.4 */
};

struct user_flags {
    bool interactive, no_password, detail;
    const char *password;
};

struct role_flags {
    bool prefix, from_key;
};

struct check_flags {
    const char *load, *prefix;
    bool auto_compact, auto_defrag;
};

struct restore_flags {
    const char *name, *data_dir;
    bool skip_hash_check;
};

struct mirror_flags {
    const char *prefix, *dest_prefix;
    bool no_dest_prefix;
    int64_t revision, max_txn_ops;
    const char *cert_file, *key_file, *ca_file;
    bool insecure_transport;
    const char *user, *password;
};

/* -- Commands -- */

int admin_member_list(struct ctl *ctl);
int admin_member_add(struct ctl *ctl);
int admin_member_remove(struct ctl *ctl);
int admin_member_update(struct ctl *ctl);
int admin_member_promote(struct ctl *ctl);
int admin_endpoint_health(struct ctl *ctl);
int admin_endpoint_status(struct ctl *ctl);
int admin_endpoint_hashkv(struct ctl *ctl);
int admin_alarm_list(struct ctl *ctl);
int admin_alarm_disarm(struct ctl *ctl);
int admin_defrag(struct ctl *ctl);
int admin_snapshot_save(struct ctl *ctl);
int admin_snapshot_status(struct ctl *ctl);
int admin_snapshot_restore(struct ctl *ctl);
int admin_move_leader(struct ctl *ctl);
int admin_downgrade_validate(struct ctl *ctl);
int admin_downgrade_enable(struct ctl *ctl);
int admin_downgrade_cancel(struct ctl *ctl);
int admin_check_perf(struct ctl *ctl);
int admin_check_datascale(struct ctl *ctl);
int admin_make_mirror(struct ctl *ctl);
int admin_version(struct ctl *ctl);
int admin_completion(struct ctl *ctl);

int admin_auth_enable(struct ctl *ctl);
int admin_auth_disable(struct ctl *ctl);
int admin_auth_status(struct ctl *ctl);
int admin_user_add(struct ctl *ctl);
int admin_user_delete(struct ctl *ctl);
int admin_user_get(struct ctl *ctl);
int admin_user_list(struct ctl *ctl);
int admin_user_passwd(struct ctl *ctl);
int admin_user_grant_role(struct ctl *ctl);
int admin_user_revoke_role(struct ctl *ctl);
int admin_role_add(struct ctl *ctl);
int admin_role_delete(struct ctl *ctl);
int admin_role_get(struct ctl *ctl);
int admin_role_list(struct ctl *ctl);
int admin_role_grant_permission(struct ctl *ctl);
int admin_role_revoke_permission(struct ctl *ctl);

/* -- Shared by them -- */

/* One word that is a member's id in hexadecimal. */
int admin_member_id(struct ctl *ctl, const char *word, uint64_t *ret_id);

/* The text of an error within a sentence: ctl_error_text is several lines in our style. */
const char *admin_error_text(struct ctl *ctl, const vigil_error *error);

struct admin_text {
    char text[512];
};
/* The endpoints with spaces between them, as Go prints a list of texts. */
struct admin_text admin_endpoints_text(const struct ctl_endpoints *endpoints);
/* What strerror says, in Go's words: without a capital at the beginning. */
struct admin_text admin_errno_text(int error);

/* The header of an answer of any type; NULL: the server sent none. */
const struct pb_response_header *admin_header(const void *response);
/* The `fields` of an answer that has nothing but its header. */
void admin_fields_header(struct ctl *ctl, const void *response);

/* Sends one request and prints its answer. */
int admin_call_and_print(struct ctl *ctl, enum client_method_id method, const void *request,
                         const struct ctl_shape *shape);

#endif
